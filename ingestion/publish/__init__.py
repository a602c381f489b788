"""From read pages to the next generation: duplicates, embedding, writing, the guard against losses, the dry run."""

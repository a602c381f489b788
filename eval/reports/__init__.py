"""Results as HTML pages: searches, refusals and answers. `commands` calls it; it imports the rooms whose results it shows."""

"""HTML or Markdown of a page -> clean Markdown."""

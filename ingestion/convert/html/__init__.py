"""HTML pages -> Markdown: their main content, cleaned of what themes put around and into it."""

"""Markdown and MDX of generators -> plain Markdown, and its structure: headings with their ids, blocks."""

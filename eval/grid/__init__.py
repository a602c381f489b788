"""One question set over many configurations: settings, steps, prompts and models, side by side and cross-validated.

`commands` calls it; it imports `answers`, `measure` and `questions`, and `ingestion` to index pages again.
"""

"""Measures one question set with many configurations: settings, steps, prompts and models, with cross-validation.

`commands` calls it; it imports `answers`, `measure` and `questions`, and `ingestion` to index pages again.
"""

"""Retrieval and refusals measured: metrics with intervals, results that are kept, compared, gated and put in a grid.

`commands` and `answers` call it; it imports `questions`, `app` and, to index pages again, `ingestion`.
"""

"""Question sets: read and checked, their documents and evidence found in an index, and the set over our own docs.

`commands` and the rooms that measure call it; it imports `app`, and `ingestion` to index our own docs.
"""

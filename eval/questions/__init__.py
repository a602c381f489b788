"""Reads and checks question sets, finds their documents and evidence in an index, and indexes our own documentation.

`commands` and the rooms that measure call it; it imports `app`, and `ingestion` to index our documentation.
"""

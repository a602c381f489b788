"""Measures the service: retrieval over question sets, and comparisons of two runs."""

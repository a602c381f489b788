"""Measures the service: retrieval, refusals and answers over question sets, and compares results."""

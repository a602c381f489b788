"""Measures retrieval and refusals: metrics with intervals, saved results, comparisons and the gate.

`commands` and `answers` call it; it imports `questions` and `app`.
"""

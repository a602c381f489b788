"""Ranks the candidates of both legs: fusion, boosts, summaries. The same pure functions for every store.

Called by the stores, the pipeline and eval; imports app.core and app.text.
"""

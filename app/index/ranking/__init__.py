"""From the candidates of both legs to one ranking: fusion, boosts, summaries. Pure functions, the same for every store.

Called by the stores, the pipeline and eval; imports app.core and app.text.
"""

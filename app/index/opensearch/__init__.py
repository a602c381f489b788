"""The store on an OpenSearch server: generations in one index behind an alias.

Opened by app.index; imports app.core, app.text and the ranking.
"""

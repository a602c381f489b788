"""The store without a server: LanceDB tables in a directory, and a small file that says which of their versions are live.

Opened by app.index; imports app.core, app.text and the ranking.
"""

"""Conversations, answers and feedback in a database: SQLite beside the index, or PostgreSQL.

Called by the API, which decides who may see what, and by the commands, which open it. Imports only `app.core`. Only
`records` and `opening` can be imported without SQLAlchemy, which a service that keeps nothing doesn't load.
"""

"""The views and actions of operators as JSON below /v1/admin: index, pages, chunks, settings and recent problems.

Every route requires an admin key. The pages at /admin are made from these addresses.
"""

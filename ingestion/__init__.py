"""From sitemaps to a published index: crawl, convert, split, publish. `run` is the entry point, `report` its result.

Called by the command line; imports app.core, app.text, app.index and app.models.
"""

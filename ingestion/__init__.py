"""From sitemaps to a published index: crawl, convert, split, publish; `run` leads a run through them, `report` tells it.

Called by the command line; imports app.core, app.text, app.index, app.models and app.report.
"""

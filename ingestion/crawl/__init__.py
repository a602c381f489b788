"""Sources -> listed entries and their downloads: sitemaps, directories, robots.txt, pace, checked addresses.

Called by `convert` and `run`; imports no other stage.
"""

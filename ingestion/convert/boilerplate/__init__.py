"""Blocks that most pages of a site repeat around their own text (banners, breadcrumbs, pagers, feedback), found by comparing pages.

`sample` reads a page for the comparison, `compare` finds the blocks, `remove` takes them from a page.
"""

FEWEST = 5
"""Pages that must repeat a block at least: fewer say nothing of a site."""

"""Blocks that most pages of a site repeat around their own text (banners, breadcrumbs, pagers, feedback), found by comparing pages.

`sample` reads a page for the comparison, `compare` finds the blocks, `remove` takes them from a page.
"""

"""How Antora publishes the files of a component: `modules/NAME/pages/x.adoc` as `NAME/x`, and the ROOT module's as `x`."""

from __future__ import annotations

import re

_PART = re.compile(r"(?:^|/)modules/[^/]+/(?!pages/)[^/]+(?:/|$)")
_PAGES = re.compile(r"(^|/)modules/(?:ROOT|([^/]+))/pages/")


def is_part(path: str) -> bool:
    """True for a file of a module that is no page, such as one that pages include, or the navigation."""
    return _PART.search(path) is not None


def published(path: str) -> str:
    """The path of a page without the folders that only Antora needs."""
    return _PAGES.sub(lambda found: found[1] + (f"{found[2]}/" if found[2] else ""), path, count=1)

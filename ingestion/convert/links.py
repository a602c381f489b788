"""Relative links of Markdown -> absolute ones."""

from __future__ import annotations

import re
from functools import lru_cache
from urllib.parse import urljoin, urlsplit

from app.text.fences import outside_code
from ingestion.urls import public_url

_INLINE = re.compile(r"(\]\(\s*+)(<[^<>\n]*+>|(?:[^\s()]|\([^\s()]*+\))++)(?=\s*+\)|\s++[\"'(])")
_TAG = re.compile(r"(?i)<(?:a|img|video|source)\b[^<>]*+")
_ATTRIBUTE = re.compile(r"""(?i)(\b(?:href|src)\s*+=\s*+["'])([^"']*+)""")
_SCHEME = re.compile(r"(?i)\A[a-z][a-z0-9+.-]*:")


def absolute_links(text: str, base: str) -> str:
    """The text with absolute links. Links to raw Markdown of the same site point to the page instead."""
    host = urlsplit(base).netloc

    @lru_cache(maxsize=1024)  # most pages repeat their links
    def absolute(target: str) -> str:
        if not target or "\x00" in target or (_SCHEME.match(target) and not target.lower().startswith("http")):
            return target
        try:
            joined = urljoin(base, target)
            path, mark, fragment = joined.partition("#")
            return (public_url(path) if urlsplit(path).netloc == host else path) + mark + fragment
        except ValueError:  # no address at all
            return target

    def join(match: re.Match[str]) -> str:
        written = match[2]
        target = written.strip("<>").strip()
        made = absolute(target)
        if made == target:
            return match[0]
        return match[1] + (f"<{made}>" if written.startswith("<") else made)

    def change(prose: str) -> str:
        return _TAG.sub(lambda tag: _ATTRIBUTE.sub(join, tag[0], count=1), _INLINE.sub(join, prose))

    return outside_code(text, change)

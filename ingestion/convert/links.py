"""Relative links of Markdown -> absolute ones."""

from __future__ import annotations

import re
from urllib.parse import urljoin, urlsplit, urlunsplit

from ingestion.convert.fences import outside_code

_INLINE = re.compile(r"(\]\(\s*)(<[^<>\n]*>|(?:[^\s()]|\([^\s()]*\))+)")
_DEFINITION = re.compile(r"(?m)^([ ]{0,3}\[[^\]\n]+\]:[ \t]*)(<[^<>\n]*>|\S+)")
_ATTRIBUTE = re.compile(r"""(?i)(<(?:a|img|video|source)\b[^>]*?\b(?:href|src)\s*=\s*["'])([^"']*)""")
_SCHEME = re.compile(r"(?i)[a-z][a-z0-9+.-]*:")
RAW_SUFFIXES = (".md", ".mdx")


def joined(base: str, href: str) -> str:
    """The address absolute; nothing for what can't be parsed as one."""
    try:
        url = urljoin(base, href.strip())
        urlsplit(url)
    except ValueError:
        return ""
    return str(url)


def public_url(url: str) -> str:
    """The address for readers: without .md or .mdx, which give raw text, and without fragment."""
    parts = urlsplit(url)
    path = parts.path
    for suffix in RAW_SUFFIXES:
        path = path.removesuffix(suffix)
    return urlunsplit(parts._replace(path=path, fragment=""))


def absolute_links(text: str, base: str) -> str:
    """The text with every relative link joined to `base`; those to raw Markdown of the same site lead to the page instead."""

    def join(match: re.Match[str]) -> str:
        written = match[2]
        target = written.strip("<>").strip()
        if not target or "\x00" in target or _SCHEME.match(target):
            return match[0]
        try:
            joined = urljoin(base, target)
        except ValueError:  # no address at all
            return match[0]
        path, mark, fragment = joined.partition("#")
        if urlsplit(path).netloc == urlsplit(base).netloc:
            path = public_url(path)
        joined = path + mark + fragment
        return match[1] + (f"<{joined}>" if written.startswith("<") else joined)

    def change(prose: str) -> str:
        return _ATTRIBUTE.sub(join, _DEFINITION.sub(join, _INLINE.sub(join, prose)))

    return outside_code(text, change)

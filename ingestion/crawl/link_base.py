"""Where the relative links of a page's Markdown start: generators write them for the file, for the page, or for its folder."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ingestion.urls import joined, public_url, stem

_LINK = re.compile(r"\]\([ \t]*+<?([^\s<>()#]++)|^\[[^\]\n]++\]:[ \t]*+<?([^\s<>#]++)", re.MULTILINE)
_WHOLE = re.compile(r"[a-z][a-z0-9+.-]*+:|/", re.IGNORECASE)
_MOST = 200


def link_base(markdown: str, bases: Iterable[str], known: Collection[str]) -> str:
    """The first of the addresses from which most relative links lead to pages whose `stem` is known."""
    candidates = list(dict.fromkeys(base for base in bases if base))
    links = dict.fromkeys(one or other for one, other in _LINK.findall(markdown))
    relative = [link for link in links if not _WHOLE.match(link)][:_MOST]
    if not relative or not candidates:
        return candidates[0] if candidates else ""
    return max(candidates, key=lambda base: sum(stem(public_url(joined(base, link))) in known for link in relative))

"""A page's own raw Markdown beside its HTML: which of the two to take, and the anchors that only HTML knows."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import replace

from app.text.fences import outside_fences
from ingestion.convert.document import Document

SHARE = 0.5
"""Raw Markdown with a smaller share of the HTML's words lacks the content of components."""

_HEADING = re.compile(r"(?m)^(?P<marks>#{1,6})[ \t]++(?P<text>\S.*+)$")
_ANCHOR = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])$")


def prefer_raw(page: Document, raw: Document) -> Document | None:
    """The raw document with anchors, languages, dates and version of the HTML; None when it has far fewer words."""
    if len(re.findall(r"\w+", raw.markdown)) < SHARE * len(re.findall(r"\w+", page.markdown)):
        return None
    return replace(
        page,
        title=raw.title or page.title,
        markdown=with_anchors(raw.markdown, page.markdown),
        languages={**raw.languages, **page.languages},
        published=raw.published or page.published,
        modified=raw.modified or page.modified,
        version=page.version or raw.version,
    )


def with_anchors(markdown: str, other: str) -> str:
    """The Markdown with the anchors of equal headings of `other`, where the pairs are unambiguous."""
    anchors: dict[str, deque[str]] = defaultdict(deque)
    for key, anchor in _headings(other):
        anchors[key].append(anchor)
    count = Counter(key for key, _ in _headings(markdown))

    def mark(match: re.Match[str]) -> str:
        text = _open(match["text"])
        key = _key(match["marks"], text)
        if _ANCHOR.search(text) or count[key] != len(anchors[key]):
            return match[0]
        anchor = anchors[key].popleft()
        count[key] -= 1
        return f"{match['marks']} {text} {{#{anchor}}}" if anchor else match[0]

    return outside_fences(markdown, lambda prose: _HEADING.sub(mark, prose))


def _headings(markdown: str) -> list[tuple[str, str]]:
    """(level and words, anchor) of each heading."""
    found: list[tuple[str, str]] = []

    def note(match: re.Match[str]) -> str:
        text = _open(match["text"])
        anchor = _ANCHOR.search(text)
        found.append((_key(match["marks"], text), (anchor[1] or anchor[2]) if anchor else ""))
        return match[0]

    outside_fences(markdown, lambda prose: _HEADING.sub(note, prose))
    return found


def _open(text: str) -> str:
    """The heading without the number signs that may close it."""
    text = text.rstrip(" \t")
    bare = text.rstrip("#")
    return bare.rstrip(" \t") if bare.endswith((" ", "\t")) else text


def _key(marks: str, text: str) -> str:
    words = re.sub(r"\]\([^\])]*+\)", "]", _ANCHOR.sub("", text))
    return marks + " ".join(re.findall(r"\w+", words.lower()))

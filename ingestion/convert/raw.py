"""A page's own raw Markdown with what only its HTML knows: anchors, languages and dates."""

from __future__ import annotations

import re
from collections import Counter, defaultdict, deque
from dataclasses import replace

from app.text.fences import outside_fences, outside_spans
from ingestion.convert.document import Document

_HEADING = re.compile(r"(?m)^(?P<marks>#{1,6})[ \t]++(?P<text>\S.*+)$")
_ANCHOR = re.compile(r"(?:\{#([^{}\s]+)\}|\[#([^\[\]\s]+)\])$")
BLANK = "\u00a0\u200b\u2060\ufeff"
"""Characters that make a link which nobody sees."""

_SELF_LINK = re.compile(r"(?m)^(?P<heading>#{1,6}[ \t]++\S.*)\n\n\[[^\[\]\n]*+\]\(#(?P<anchor>[^()\s]++)\)[ \t]*+$")
_LINK_IN_HEADING = re.compile(
    rf"(?m)^(?P<heading>#{{1,6}}[ \t]++\S[^\n]*?)\[[{BLANK}]*+\]\(#(?P<anchor>[^()\s]++)\)[ \t]*+$"
)
_EMPTY_LINK = re.compile(rf"(?<!!)\[[{BLANK}]*+\]\(#[^()\s]*+\)")


def with_facts(raw: Document, page: Document) -> Document:
    """The raw document with anchors, languages, dates and version of the HTML."""
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


def with_linked_anchors(markdown: str) -> str:
    """The Markdown with the anchors that some generators write as a link in each heading, or in a line of its own below it.

    Links without a text that lead into the page are left out.
    """
    if "](#" not in markdown:
        return markdown
    return outside_fences(markdown, lambda prose: outside_spans(prose, _without_self_links))


def _without_self_links(prose: str) -> str:
    prose = _LINK_IN_HEADING.sub(_anchor_of_link, prose)
    return _EMPTY_LINK.sub("", _SELF_LINK.sub(_anchor_of_link, prose))


def _anchor_of_link(match: re.Match[str]) -> str:
    heading = match["heading"].rstrip(" \t")
    return heading if _ANCHOR.search(heading) else f"{heading} {{#{match['anchor']}}}"


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

"""What a page's Markdown has lost against its HTML: code, headings, tables, links, or the work of its templates."""

from __future__ import annotations

import re

from app.text.fences import blocks, code_lines, outside_code
from ingestion.convert.document import Document
from ingestion.convert.structure import headings_in
from ingestion.urls import stem

WORDS, CODE, HEADINGS, LINKS = 0.5, 0.9, 0.8, 0.5
"""The least share of the HTML's words, lines of code and headings, and of links that the HTML has too."""

FEWEST_LINKS = 4
_MOST_LINES = 300
_LEFT_OVER = re.compile(
    r"(?m)\{\{[<%].{0,200}?[%>]\}\}|\{%.{0,200}?%\}|(?<!\\)</?(?:ul|nav|button|iframe|[A-Z]\w*+)\b[^<>\n]*+>|&#\d++;|^[ \t]*+:::.*$"
)
_ROW = re.compile(r"(?m)^[ \t>]*+\|?[ \t]*+:?---[-: \t]*+\|.*$")
_TARGET = re.compile(r"(?<!!)\[[^\[\]\n]*+\]\(<?(https?://[^\s()<>#]++)")


def lost(page: Document, raw: Document) -> str:
    """Why the HTML is better, with an example; empty when the Markdown is not worse."""
    if _shows_source(page, raw):
        return ""
    return broken(page, raw) or _lost_code(page, raw) or _lost_structure(page, raw) or _dead_links(page, raw)


def broken(page: Document, raw: Document) -> str:
    """Why the Markdown can't be meant for readers, with an example; empty when it can."""
    words, others = (len(re.findall(r"\w+", one.markdown)) for one in (page, raw))
    if others < WORDS * words:
        return f"has {others} words instead of {words}"
    found, known = _left_overs(raw), _left_overs(page)
    if len(found) <= len(known):
        return ""
    return f"has left-overs of templates, as {next((one for one in found if one not in known), found[0])[:80]}"


def targets(read: Document) -> set[str]:
    """The pages that a document links to, however their addresses end."""
    return {stem(found) for found in _TARGET.findall(_prose(read))}


def has_left_overs(read: Document) -> bool:
    """True when something looks like the syntax of templates or components, outside code."""
    return bool(_left_overs(read))


def _left_overs(read: Document) -> list[str]:
    return [*read.templates, *_LEFT_OVER.findall(_prose(read))]


def _prose(read: Document) -> str:
    """The text without code, for which placeholders or nothing stand."""
    kept: list[str] = []

    def keep(prose: str) -> str:
        kept.append(prose)
        return prose

    outside_code(read.markdown, keep)
    return "\n".join(kept)


def _shows_source(page: Document, raw: Document) -> bool:
    """True when most prose of the Markdown is code in the HTML, which only shows what it is made from."""
    words, others = (len(re.findall(r"\w+", _prose(one))) for one in (page, raw))
    return words < WORDS * others


def _lost_code(page: Document, raw: Document) -> str:
    lines = [line.strip() for code, piece in blocks(page.markdown) if code for line in code_lines(piece)]
    lines = [line for line in lines if re.search(r"\w", line)][:_MOST_LINES]
    missing = [line for line in lines if line not in raw.markdown]
    if len(missing) <= (1 - CODE) * len(lines):
        return ""
    return f"lacks {len(missing)} of {len(lines)} lines of code, as {missing[0][:80]}"


def _lost_structure(page: Document, raw: Document) -> str:
    known = {_words(heading.text) for heading in headings_in(raw.markdown)}
    wanted = [heading.text for heading in headings_in(page.markdown) if heading.level > 1]
    missing = [text for text in wanted if _words(text) not in known]
    if len(missing) > (1 - HEADINGS) * len(wanted):
        return f"lacks {len(missing)} of {len(wanted)} headings, as {missing[0][:80]}"
    tables, others = (len(_ROW.findall(one.markdown)) for one in (page, raw))
    return f"has {others} tables instead of {tables}" if others < tables else ""


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.lower()))


def _dead_links(page: Document, raw: Document) -> str:
    known, found = targets(page), targets(raw)
    missing = sorted(found - known)
    if len(found) < FEWEST_LINKS or not known or len(missing) <= (1 - LINKS) * len(found):
        return ""
    return f"has {len(missing)} of {len(found)} links that the HTML doesn't have, as {missing[0]}"

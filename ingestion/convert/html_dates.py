"""The dates in a page's HTML: meta tags, JSON-LD and <time>."""

from __future__ import annotations

import re
from collections.abc import Mapping
from itertools import islice

import lxml.html

from app.core.language import Vocabulary

_PUBLISHED = ("article:published_time", "datepublished", "datecreated", "dcterms.created", "dcterms.issued", "date")
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified", "revised")
_JSON_LD = re.compile(r'"(datePublished|dateModified)"\s*:\s*"([^"]+)"')
_NEAR = 120
_LEVELS = 2
_TEXTS = 100


def html_dates(page: lxml.html.HtmlElement, meta: Mapping[str, str], words: Vocabulary) -> tuple[str, str]:
    """(published, modified) as the page has them, or empty; to be read before its footer is thrown away."""
    linked = {name.lower(): date for script in _scripts(page) for name, date in reversed(_JSON_LD.findall(script))}
    published, modified = _times(page, words)
    return (
        next((meta[key] for key in _PUBLISHED if key in meta), "") or linked.get("datepublished", "") or published,
        next((meta[key] for key in _MODIFIED if key in meta), "") or linked.get("datemodified", "") or modified,
    )


def _scripts(page: lxml.html.HtmlElement) -> list[str]:
    return [str(text) for text in page.xpath("//script[@type='application/ld+json']/text()")]


def _times(page: lxml.html.HtmlElement, words: Vocabulary) -> tuple[str, str]:
    """Dates of <time datetime> with a name or words next to them; other dates may mean anything."""
    published = modified = ""
    for element in page.iter("time"):
        date = (element.get("datetime") or "").strip()
        if not date:
            continue
        context = _context(element)
        if re.search(words.updated, context, re.IGNORECASE):
            modified = modified or date
        elif re.search(words.published, context, re.IGNORECASE) or element.get("pubdate") is not None:
            published = published or date
    return published, modified


def _context(element: lxml.html.HtmlElement) -> str:
    """The names of the element and its ancestors, and the words next to it."""
    parts = [element.get("itemprop") or ""]
    around = element
    for _ in range(_LEVELS + 1):
        parts.append(" ".join((around.get("class") or "", around.get("id") or "")))
        texts = list(islice(around.itertext(), _TEXTS + 1))
        words = " ".join("".join(texts).split())
        if len(words) <= _NEAR and len(texts) <= _TEXTS:
            parts.append(words)
        around = around.getparent()
        if around is None or around.tag in ("body", "main", "article"):
            break
    return " ".join(parts)

"""Whether a page's HTML is a shell that JavaScript fills only in a browser."""

from __future__ import annotations

import re

import lxml.html

from ingestion.convert.base import ConversionError

FEW_WORDS = 25
WAITING = 3
"""Words that an empty place may show: Loading ..."""

_PLACES = frozenset({"root", "app", "__next", "__nuxt", "___gatsby", "svelte", "q-app", "main-app", "docsify"})
_ASKS = re.compile(
    r"(?i)\b(?:enable|requires?|needs?|without|turn on|povol|zapn|vyžaduje)\w*\b[^.]{0,60}\bjavascript|javascript[^.]{0,40}\b(?:enabled?|required|disabled|povol|zapn)"
)


class MadeByScript(ConversionError):
    """A page without text of its own: a browser would make it."""


def is_shell(page: lxml.html.HtmlElement) -> bool:
    """True for a page with scripts and nearly no words that has an empty place for an application, or asks for JavaScript."""
    if not any(True for _ in page.iter("script")):
        return False
    body = page.find("body")
    words = re.findall(r"\w+", _text(body if body is not None else page))
    return len(words) <= FEW_WORDS and (_has_place(page) or _asks(page))


def _text(element: lxml.html.HtmlElement) -> str:
    return " ".join(
        str(text) for text in element.xpath(".//text()[not(ancestor::script or ancestor::style or ancestor::noscript)]")
    )


def _has_place(page: lxml.html.HtmlElement) -> bool:
    return any(
        (element.get("id") or "").lower() in _PLACES and len(_text(element).split()) <= WAITING
        for element in page.iter("div", "main")
    )


def _asks(page: lxml.html.HtmlElement) -> bool:
    return bool(_ASKS.search(" ".join(page.text_content().split())))

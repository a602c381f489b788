"""Whether a page's HTML is a shell that JavaScript fills only in a browser."""

from __future__ import annotations

import re

import lxml.html

from ingestion.errors import ConversionError

_SEEN_TEXT = "//body//text()[not(ancestor::script or ancestor::style or ancestor::noscript or ancestor::template)]"
# elements that common frameworks fill
_MOUNTS = (
    "//*[not(.//*[self::h1 or self::p]) and (self::app-root or @ng-app or @data-reactroot or"
    " contains(' root app __next __nuxt __docusaurus ___gatsby gatsby-focus-wrapper main-app q-app app-root svelte vue-app redoc"
    " swagger-ui docsify ', concat(' ', @id, ' ')))]|//redoc|//rapi-doc"
)


class NeedsJavaScript(ConversionError):
    """The page has no text before its JavaScript runs."""


def needs_script(page: lxml.html.HtmlElement, asks: str) -> bool:
    """True when the page has scripts and an element that they fill, or a text that matches `asks`."""
    if not page.xpath("//script[@src or not(@type) or contains(@type, 'javascript') or @type='module']"):
        return False
    words = sum(len(re.findall(r"\w+", text)) for text in page.xpath(_SEEN_TEXT))
    text = " ".join(page.xpath("//body//text()"))
    return words == 0 or bool(page.xpath(_MOUNTS)) or re.search(asks, text, re.IGNORECASE) is not None

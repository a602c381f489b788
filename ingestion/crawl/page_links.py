"""The links of an HTML page, and what the page says to crawlers. It runs in a worker process."""

from __future__ import annotations

import re
import string
from dataclasses import dataclass
from urllib.parse import quote

import lxml.html
from lxml.etree import LxmlError, ParserError
from lxml.html import HtmlElement

from ingestion.urls import joined

MAX_LINKS = 5_000
"""Links of one page that are looked at."""

_LONGEST = 2_000


@dataclass(frozen=True, slots=True)
class PageLinks:
    """Absolute addresses without fragments, in the page's order, each once; none with `nofollow` of the page.

    `sitemap` is the one that the page names.
    """

    links: tuple[str, ...] = ()
    canonical: str = ""
    noindex: bool = False
    sitemap: str = ""


def page_links(body: bytes, charset: str, url: str, header: str | None) -> PageLinks:
    """The links of the page at `url`, whose X-Robots-Tag is `header`; none for what isn't HTML.

    With None, neither the header nor the page itself forbids anything.
    """
    parser = lxml.html.HTMLParser(encoding=_known(charset), remove_comments=True, huge_tree=True)
    try:
        page = lxml.html.document_fromstring(body, parser=parser)
    except (ParserError, LxmlError, ValueError):
        return PageLinks()
    base = joined(url, next(iter(page.xpath("//base/@href")), "")) or url
    orders = _orders(page, header) if header is not None else set()
    canonical, sitemap = (next(iter(page.xpath(f"//link[@rel='{rel}']/@href")), "") for rel in ("canonical", "sitemap"))
    hrefs = [] if orders & {"nofollow", "none"} else page.xpath("//a[@href][not(contains(@rel, 'nofollow'))]/@href")
    found = (_absolute(base, href) for href in hrefs[:MAX_LINKS])
    return PageLinks(
        tuple(dict.fromkeys(link for link in found if link)),
        _absolute(base, canonical) if canonical else "",
        bool(orders & {"noindex", "none"}),
        _absolute(base, sitemap) if sitemap else "",
    )


def _orders(page: HtmlElement, header: str) -> set[str]:
    """What the page forbids. An agent's name before a colon addresses other crawlers."""
    said = page.xpath("//meta[translate(@name, 'ROBTS', 'robts')='robots']/@content")
    return set(re.findall(r"[\w-]+", " ".join(["" if ":" in header else header, *said]).lower()))


def _absolute(base: str, href: str) -> str:
    if len(href) > _LONGEST or href.startswith("#"):
        return ""
    link = joined(base, href).partition("#")[0]
    return quote(link, safe=string.punctuation) if re.match(r"https?://", link) and not re.search(r"\s", link) else ""


def _known(charset: str) -> str | None:
    try:
        return charset if charset and "".encode(charset) == b"" else None
    except (LookupError, UnicodeError):
        return None

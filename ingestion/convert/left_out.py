"""HTML pages that aren't for the index: stubs of redirects, pages that say `noindex`, search pages, and lists of all terms."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

from ingestion.convert.document import SourceText
from ingestion.errors import NOINDEX
from ingestion.urls import joined

STUB_WORDS = 40
"""A page with fewer words may do nothing but send readers on, or search."""

LONGEST_REFRESH = 30
"""Seconds after which a page sends readers on at the latest."""

_REFRESH = re.compile(r"\s*+(\d{1,4})[\d.]*+\s*+[;,]\s*+(?:url\s*+=)?\s*+['\"]?\s*([^'\"\s]+)", re.IGNORECASE)
_SCRIPT = re.compile(r"\blocation(?:\.href)?\s*=\s*['\"`]|\blocation\.(?:replace|assign)\(\s*['\"`]")
_ALL_TERMS = re.compile(r"(?:gen|(?:\w+-)?mod)index(?:-\w+)?|index-(?:all|\d+)|all(?:classes|packages)?(?:-index)?")
"""How generators of documentation name their lists of all terms, modules or classes."""

_MOSTLY_LINKS = 0.5


def left_out(page: HtmlElement, source: SourceText) -> str:
    """Why the page isn't for the index; empty if it is."""
    said = f"{source.robots if ':' not in source.robots else ''} {_robots(page)}".lower()
    if not source.ignores_noindex and {"noindex", "none"} & set(re.findall(r"[\w-]+", said)):
        return NOINDEX
    if target := _sends_on(page, source.url):
        return f"only sends readers on{'' if target == source.url else f' to {target}'}"
    name = source.url.partition("?")[0].rstrip("/").rpartition("/")[2].partition(".")[0].lower()
    if name == "search" or _is_itself(page, "search", source.url):
        return "is a search page" if _is_search(page) else ""
    if _ALL_TERMS.fullmatch(name) or _is_itself(page, "index", source.url):
        return "only lists all terms, with links to their pages" if _is_list(page) else ""
    return ""


def _robots(page: HtmlElement) -> str:
    found = (one for one in page.iter("meta") if (one.get("name") or "").lower() == "robots")
    return " ".join(one.get("content") or "" for one in found)


def _sends_on(page: HtmlElement, url: str) -> str:
    """Where the page leads without a click; its own address if that is in a script."""
    for meta in page.iter("meta"):
        if (meta.get("http-equiv") or "").lower() == "refresh" and (found := _REFRESH.match(meta.get("content") or "")):
            target = joined(url, found[2]).partition("#")[0]
            if int(found[1]) <= LONGEST_REFRESH and target and target != url.partition("#")[0]:
                return target
    scripts = list(page.iter("script"))
    if scripts and not any(one.get("src") for one in scripts) and _words(page) < STUB_WORDS:
        return url if any(_SCRIPT.search(one.text or "") for one in scripts) else ""
    return ""


def _is_itself(page: HtmlElement, rel: str, url: str) -> bool:
    """True when the page names itself as the site's page for this purpose."""
    links = (one for one in page.iter("link") if rel in (one.get("rel") or "").lower().split())
    return any(one.get("href") and joined(url, one.get("href")).partition("#")[0] == url for one in links)


def _is_search(page: HtmlElement) -> bool:
    return _words(page) < STUB_WORDS * 5 and next(page.iter("form", "input"), None) is not None


def _is_list(page: HtmlElement) -> bool:
    body = page.find("body")
    whole = body if body is not None else page
    linked = sum(len(link.text_content().split()) for link in whole.iter("a"))
    return linked >= _MOSTLY_LINKS * _words(page)


def _words(page: HtmlElement) -> int:
    """Words outside of scripts and navigation."""
    path = "//body//text()[not(ancestor::script or ancestor::style or ancestor::nav or ancestor::noscript)]"
    return sum(len(text.split()) for text in page.xpath(path))

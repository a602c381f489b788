"""A page's HTML -> the Markdown of its main content, and the metadata of its head."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from urllib.parse import urlsplit

import html_to_markdown
import lxml.html
from lxml.cssselect import CSSSelector
from lxml.etree import LxmlError, ParserError

from app.text.fences import outside_fences
from app.text.titles import breadcrumb
from ingestion.convert.clean import clean_root, find_root, text_of
from ingestion.convert.document import Document, SourceText
from ingestion.convert.dom import drop
from ingestion.convert.escapes import escape_marked
from ingestion.convert.html_dates import html_dates
from ingestion.convert.javascript import NeedsJavaScript, needs_script
from ingestion.convert.left_out import left_out
from ingestion.crawl.exchange import HTML_TYPES
from ingestion.errors import ConversionError, PageLeftOut
from ingestion.urls import joined

_OPTIONS = html_to_markdown.ConversionOptions(
    extract_metadata=False,
    hidden_content="all",  # inactive tabs are hidden
    compact_tables=True,
    br_in_tables=True,  # lines of neighbouring cells belong together
    preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
)
SHELL_WORDS = 20
"""A page with fewer words may be an empty shell that JavaScript fills."""

_LANGUAGE_META = ("og:locale", "content-language", "docsearch:language", "language")

_VERSION = ("docsearch:version", "docusaurus_version", "readthedocs-version-slug", "version")
"""Meta tags with the version of the documentation. `version` may mean something else, so it is the last."""

_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


class HtmlConverter:
    """Cleans the main content with lxml, then html-to-markdown turns it into Markdown."""

    def matches(self, source: SourceText) -> bool:
        """True for HTML, and for anything that looks like it."""
        return source.media_type in HTML_TYPES or source.text.lstrip("\ufeff \t\r\n").startswith("<")

    def convert(self, source: SourceText) -> Document:
        """The document of the page's main content; raises `ConversionError` when there is no text in it."""
        page = parse(source)
        meta = _meta(page)
        if reason := left_out(page, source):
            raise PageLeftOut(reason)
        published, modified = html_dates(page, meta, source.words)
        root, kept, note = content_of(page, source)
        languages = _languages(page, root, meta)  # before cleaning, which takes attributes away
        base = _base(page, source.url)
        clean_root(root, base, source.repeated, kept)
        written = html_to_markdown.convert(lxml.html.tostring(root, encoding="unicode"), _OPTIONS).content or ""
        markdown = _tidy(escape_marked(written))
        words = len(re.findall(r"\w+", markdown))
        if words < SHELL_WORDS and needs_script(
            parse(source), source.words.javascript
        ):  # anew: cleaning took the scripts away
            raise NeedsJavaScript(f"{source.url} needs JavaScript: its HTML is a shell, it is made by JavaScript")
        if not words:
            raise ConversionError(f"{source.url} holds no text: it is empty")
        title = _title(page, root, source.url, meta.get("og:site_name", ""))
        if title and not re.search(r"(?m)^# \S", markdown):
            markdown = f"# {title}\n\n{markdown}"
        return Document(
            title=title,
            markdown=markdown,
            languages=languages,
            canonical=_canonical(page, source.url),
            alternates=_alternates(page, source.url),
            markdown_url=_markdown_url(page, source.url),
            published=published,
            modified=modified,
            version=next((meta[name] for name in _VERSION if name in meta), ""),
            note=note,
        )


def content_of(
    page: lxml.html.HtmlElement, source: SourceText
) -> tuple[lxml.html.HtmlElement, frozenset[lxml.html.HtmlElement], str]:
    """The element with the page's content, by the source's selectors; what of it is kept in any case, and what is odd."""
    chosen = _chosen(page, source.content_selector)
    note = (
        f"content_selector {source.content_selector!r} found nothing" if source.content_selector and not chosen else ""
    )
    root = chosen[0] if chosen else find_root(page)
    for selector in source.drop_selectors:
        for element in _chosen(root, selector):
            drop(element)
    kept = {element for selector in source.keep_selectors for element in _chosen(root, selector)}
    inside = {one for element in kept for one in element.iter()}
    return root, frozenset(inside.union(*(element.iterancestors() for element in kept))), note


def _chosen(root: lxml.html.HtmlElement, selector: str) -> list[lxml.html.HtmlElement]:
    return list(_selector(selector)(root)) if selector else []


@cache
def _selector(selector: str) -> CSSSelector:
    return CSSSelector(selector, translator="html")


def _base(page: lxml.html.HtmlElement, url: str) -> str:
    """Where the page's relative links start from."""
    return joined(url, next(iter(page.xpath("//base/@href")), "")) or url


def parse(source: SourceText) -> lxml.html.HtmlElement:
    """The page. Raises `ConversionError` for what isn't HTML."""
    text = _NOT_XML.sub("", _XML_DECLARATION.sub("", source.text.lstrip("\ufeff")))
    try:
        # a parser of its own per call: pages are converted in threads
        page = lxml.html.document_fromstring(
            text, parser=lxml.html.HTMLParser(remove_comments=True, remove_pis=True, huge_tree=True)
        )
    except (ParserError, LxmlError, ValueError) as error:
        raise ConversionError(f"{source.url} isn't readable HTML: {error}") from error
    return page


def _tidy(markdown: str) -> str:
    return outside_fences(markdown, _without_empty_lines).strip("\n") + "\n"


def _without_empty_lines(prose: str) -> str:
    lines = [line.rstrip() if line.endswith(("\t", "   ")) else line for line in prose.split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines))


def _title(page: lxml.html.HtmlElement, root: lxml.html.HtmlElement, url: str, site: str) -> str:
    """The first heading or title that isn't just the name of the site; else the words of the address."""
    headings = (re.sub(r"\{#[^{}\s]+\}$", "", text_of(heading)) for heading in root.iter("h1"))
    titles = (*page.xpath("//head/meta[@property='og:title']/@content"), *page.xpath("//head/title/text()"))
    named = [name for text in (*headings, *titles) if (name := " ".join(str(text).split()))]
    own = [name for name in named if name.casefold() != site.casefold()]
    return next(iter(own), "") or (named and breadcrumb(url)) or next(iter(named), "")


def _meta(page: lxml.html.HtmlElement) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for element in page.iter("meta"):
        key = element.get("property") or element.get("name") or element.get("itemprop") or element.get("http-equiv")
        content = (element.get("content") or "").strip()
        if key and content:
            found.setdefault(key.lower(), content)
    return found


def _languages(page: lxml.html.HtmlElement, root: lxml.html.HtmlElement, meta: Mapping[str, str]) -> Mapping[str, str]:
    """What the page says of its language. Starlight marks the content of a page that isn't translated (`<main lang>`)."""
    around = [element for element in (root, *root.iterancestors()) if element is not page]
    declared = {
        "content lang": next((found for element in around if (found := _lang(element))), ""),
        "html lang": _lang(page),
        **{name: meta.get(name, "") for name in _LANGUAGE_META},
    }
    return {place: tag for place, tag in declared.items() if tag}


def _lang(element: lxml.html.HtmlElement) -> str:
    return (element.get("lang") or element.get("{http://www.w3.org/XML/1998/namespace}lang") or "").strip()


def _links(page: lxml.html.HtmlElement, rel: str) -> list[lxml.html.HtmlElement]:
    return [e for e in page.iter("link") if rel in (e.get("rel") or "").lower().split() and e.get("href")]


def _same_host(url: str, other: str) -> bool:
    return urlsplit(url).netloc.lower() == urlsplit(other).netloc.lower()


def _canonical(page: lxml.html.HtmlElement, url: str) -> str:
    for element in _links(page, "canonical"):
        href = joined(url, element.get("href")).partition("#")[0]
        return href if _same_host(href, url) else ""
    return ""


def _alternates(page: lxml.html.HtmlElement, url: str) -> Mapping[str, str]:
    found = {
        element.get("hreflang").strip(): joined(url, element.get("href"))
        for element in _links(page, "alternate")
        if element.get("hreflang")
    }
    return {language: href for language, href in found.items() if _same_host(href, url)}


def _markdown_url(page: lxml.html.HtmlElement, url: str) -> str:
    for element in _links(page, "alternate"):
        href = joined(url, element.get("href"))
        if (element.get("type") or "").lower() == "text/markdown" and _same_host(href, url):
            return href
    return ""

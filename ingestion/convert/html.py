"""A page's HTML -> Markdown of its main content, with what its head says of it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from urllib.parse import urljoin, urlsplit

import html_to_markdown
import lxml.html
from lxml.etree import LxmlError, ParserError

from ingestion.convert.base import HTML_TYPES, ConversionError, Document, Source
from ingestion.convert.clean import clean_root, find_root, text_of
from ingestion.convert.dates import html_dates
from ingestion.convert.scripted import MadeByScript, is_shell

_OPTIONS = html_to_markdown.ConversionOptions(
    extract_metadata=False,
    hidden_content="all",  # inactive tabs are hidden
    compact_tables=True,
    br_in_tables=True,  # lines of neighbouring cells belong together
    preprocessing=html_to_markdown.PreprocessingOptions(enabled=False),
)
_XML_DECLARATION = re.compile(r"\A\s*<\?xml[^>]*\?>")
_NOT_XML = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")


class HtmlConverter:
    """Cleans the main content with lxml, then html-to-markdown turns it into Markdown."""

    def matches(self, source: Source) -> bool:
        """True for HTML, and for anything that looks like it."""
        return source.media_type in HTML_TYPES or source.text.lstrip("\ufeff \t\r\n").startswith("<")

    def convert(self, source: Source) -> Document:
        """The document of the page's main content; raises `ConversionError` when there is no text in it."""
        page = _parse(source)
        scripted, shell = bool(page.xpath("//script")), is_shell(page)
        meta = _meta(page)
        published, modified = html_dates(page, meta)
        root = find_root(page)
        base = urljoin(source.url, next(iter(page.xpath("//base/@href")), ""))
        clean_root(root, base)
        markdown = _tidy(html_to_markdown.convert(lxml.html.tostring(root, encoding="unicode"), _OPTIONS).content or "")
        if shell or (scripted and not re.search(r"\w", markdown)):
            raise MadeByScript(f"{source.url} holds no text: it is made by JavaScript")
        if not re.search(r"\w", markdown):
            raise ConversionError(f"{source.url} holds no text: it is empty")
        title = _title(page, root)
        if title and not re.search(r"(?m)^# \S", markdown):
            markdown = f"# {title}\n\n{markdown}"
        return Document(
            title=title,
            markdown=markdown,
            languages=_languages(page),
            canonical=_canonical(page, source.url),
            alternates=_alternates(page, source.url),
            markdown_url=_markdown_url(page, source.url),
            published=published,
            modified=modified,
        )


def _parse(source: Source) -> lxml.html.HtmlElement:
    text = _NOT_XML.sub("", _XML_DECLARATION.sub("", source.text.lstrip("\ufeff")))
    try:
        # a parser of its own per call: pages are converted in threads
        page = lxml.html.document_fromstring(
            text, parser=lxml.html.HTMLParser(remove_comments=True, remove_pis=True, huge_tree=True)
        )
    except (ParserError, LxmlError, ValueError) as error:
        raise ConversionError(f"{source.url} is no readable HTML: {error}") from error
    return page


def _tidy(markdown: str) -> str:
    lines = [line.rstrip() if line.endswith(("\t", "   ")) else line for line in markdown.split("\n")]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(lines)).strip("\n") + "\n"


def _title(page: lxml.html.HtmlElement, root: lxml.html.HtmlElement) -> str:
    for heading in root.iter("h1"):
        if text := re.sub(r"\s*\{#[^}\s]+\}\s*$", "", text_of(heading)):
            return text
    for text in (*page.xpath("//head/meta[@property='og:title']/@content"), *page.xpath("//head/title/text()")):
        if str(text).strip():
            return " ".join(str(text).split())
    return ""


def _meta(page: lxml.html.HtmlElement) -> Mapping[str, str]:
    found: dict[str, str] = {}
    for element in page.iter("meta"):
        key = element.get("property") or element.get("name") or element.get("itemprop") or element.get("http-equiv")
        content = (element.get("content") or "").strip()
        if key and content:
            found.setdefault(key.lower(), content)
    return found


def _languages(page: lxml.html.HtmlElement) -> Mapping[str, str]:
    declared = (page.get("lang") or page.get("{http://www.w3.org/XML/1998/namespace}lang") or "").strip()
    return {"html lang": declared} if declared else {}


def _links(page: lxml.html.HtmlElement, rel: str) -> list[lxml.html.HtmlElement]:
    return [e for e in page.iter("link") if rel in (e.get("rel") or "").lower().split() and e.get("href")]


def _same_host(url: str, other: str) -> bool:
    return urlsplit(url).netloc.lower() == urlsplit(other).netloc.lower()


def _canonical(page: lxml.html.HtmlElement, url: str) -> str:
    for element in _links(page, "canonical"):
        href = str(urljoin(url, element.get("href").strip())).partition("#")[0]
        return href if _same_host(href, url) else ""
    return ""


def _alternates(page: lxml.html.HtmlElement, url: str) -> Mapping[str, str]:
    found = {
        element.get("hreflang").strip(): urljoin(url, element.get("href").strip())
        for element in _links(page, "alternate")
        if element.get("hreflang")
    }
    return {language: href for language, href in found.items() if _same_host(href, url)}


def _markdown_url(page: lxml.html.HtmlElement, url: str) -> str:
    for element in _links(page, "alternate"):
        href = urljoin(url, element.get("href").strip())
        if (element.get("type") or "").lower() == "text/markdown" and _same_host(href, url):
            return str(href)
    return ""

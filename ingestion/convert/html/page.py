"""A page's HTML -> the Markdown of its main content, and the metadata of its head; or why it isn't for the index."""

import re
from collections.abc import Mapping
from functools import cache
from itertools import islice

import html_to_markdown
import lxml.html
from lxml.cssselect import CSSSelector
from lxml.etree import LxmlError, ParserError
from lxml.html import HtmlElement

from app.core.language import Vocabulary
from app.text.blocks import breadcrumb
from ingestion.convert.document import Document, SourceText
from ingestion.convert.html.clean import clean_root, find_root
from ingestion.convert.html.dom import drop, escape_marked, text_of, unmarked
from ingestion.convert.html.embedded import write_embedded
from ingestion.crawl.exchange import HTML_TYPES
from ingestion.errors import NOINDEX, ConversionError, NeedsJavaScript, PageLeftOut
from ingestion.urls import host, joined

_PUBLISHED = ("article:published_time", "datepublished", "datecreated", "dcterms.created", "dcterms.issued", "date")
_MODIFIED = ("article:modified_time", "og:updated_time", "datemodified", "dcterms.modified", "last-modified", "revised")
_JSON_LD = re.compile(r'"(datePublished|dateModified)"\s*:\s*"([^"]+)"')
_NEAR = 120
_LEVELS = 2
_TEXTS = 100


def html_dates(page: lxml.html.HtmlElement, meta: Mapping[str, str], words: Vocabulary) -> tuple[str, str]:
    """(published, modified) as the page has them, or empty; to be read before its footer is thrown away."""
    scripts = page.xpath("//script[@type='application/ld+json']/text()")
    linked = {name.lower(): date for script in scripts for name, date in reversed(_JSON_LD.findall(script))}
    published, modified = _times(page, words)
    return (
        next((meta[key] for key in _PUBLISHED if key in meta), "") or linked.get("datepublished", "") or published,
        next((meta[key] for key in _MODIFIED if key in meta), "") or linked.get("datemodified", "") or modified,
    )


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


STUB_WORDS = 40
"""A page with fewer words may do nothing but send readers on, or search."""

LONGEST_REFRESH = 30
"""Seconds after which a page sends readers on at the latest."""

_REFRESH = re.compile(r"\s*+(\d{1,4})[\d.]*+\s*+[;,]\s*+(?:url\s*+=)?\s*+['\"]?\s*([^'\"\s]+)", re.IGNORECASE)
_SCRIPT = re.compile(r"\blocation(?:\.href)?\s*=\s*['\"`]|\blocation\.(?:replace|assign)\(\s*['\"`]")
_ALL_TERMS = re.compile(r"(?:gen|(?:\w+-)?mod)index(?:-\w+)?|index-(?:all|\d+)|all(?:classes|packages)?(?:-index)?")
"""Names that generators of documentation give their lists of all terms, modules or classes."""

_MOSTLY_LINKS = 0.5


def left_out(page: HtmlElement, source: SourceText) -> str:
    """The reason why the page isn't for the index; empty if it is."""
    said = f"{source.robots if ':' not in source.robots else ''} {_robots(page)}".lower()
    if not source.ignores_noindex and {"noindex", "none"} & set(re.findall(r"[\w-]+", said)):
        return NOINDEX
    if target := _sends_on(page, source.url):
        return f"only sends readers on{'' if target == source.url else f' to {target}'}"
    name = source.url.partition("?")[0].rstrip("/").rpartition("/")[2].partition(".")[0].lower()
    if name == "search" or source.url in _addresses(page, "search", source.url):
        is_search = _words(page) < STUB_WORDS * 5 and next(page.iter("form", "input"), None) is not None
        return "is a search page" if is_search else ""
    if _ALL_TERMS.fullmatch(name) or source.url in _addresses(page, "index", source.url):
        return "only lists all terms, with links to their pages" if _is_list(page) else ""
    return ""


def _addresses(page: HtmlElement, rel: str, url: str) -> list[str]:
    return [joined(url, link.get("href")).partition("#")[0] for link in _links(page, rel)]


def _robots(page: HtmlElement) -> str:
    robots = (meta for meta in page.iter("meta") if (meta.get("name") or "").lower() == "robots")
    return " ".join(meta.get("content") or "" for meta in robots)


def _sends_on(page: HtmlElement, url: str) -> str:
    """Returns the address that the page leads to without a click; its own if that is in a script."""
    for meta in page.iter("meta"):
        if (meta.get("http-equiv") or "").lower() == "refresh" and (
            refresh := _REFRESH.match(meta.get("content") or "")
        ):
            target = joined(url, refresh[2]).partition("#")[0]
            if int(refresh[1]) <= LONGEST_REFRESH and target and target != url.partition("#")[0]:
                return target
    scripts = list(page.iter("script"))
    if scripts and not any(script.get("src") for script in scripts) and _words(page) < STUB_WORDS:
        return url if any(_SCRIPT.search(script.text or "") for script in scripts) else ""
    return ""


def _is_list(page: HtmlElement) -> bool:
    body = page.find("body")
    whole = body if body is not None else page
    linked = sum(len(link.text_content().split()) for link in whole.iter("a"))
    return linked >= _MOSTLY_LINKS * _words(page)


def _words(page: HtmlElement) -> int:
    """Words outside of scripts and navigation."""
    path = "//body//text()[not(ancestor::script or ancestor::style or ancestor::nav or ancestor::noscript)]"
    return sum(len(text.split()) for text in page.xpath(path))


# elements that common frameworks fill
_MOUNTS = (
    "//*[not(.//*[self::h1 or self::p]) and (self::app-root or @ng-app or @data-reactroot or"
    " contains(' root app __next __nuxt __docusaurus ___gatsby gatsby-focus-wrapper main-app q-app app-root svelte vue-app redoc"
    " swagger-ui docsify ', concat(' ', @id, ' ')))]|//redoc|//rapi-doc"
)


def needs_script(page: lxml.html.HtmlElement, asks: str) -> bool:
    """True when the page has scripts and an element that they fill, or a text that matches `asks`."""
    if not page.xpath("//script[@src or not(@type) or contains(@type, 'javascript') or @type='module']"):
        return False
    text = " ".join(page.xpath("//body//text()"))
    return not _words(page) or bool(page.xpath(_MOUNTS)) or re.search(asks, text, re.IGNORECASE) is not None


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
        root, kept_elements, note = content_of(page, source)
        languages = _languages(page, root, meta)  # before cleaning, which takes attributes away
        base = joined(source.url, next(iter(page.xpath("//base/@href")), "")) or source.url
        clean_root(root, base, source.repeated, kept_elements)
        written = html_to_markdown.convert(lxml.html.tostring(root, encoding="unicode"), _OPTIONS).content or ""
        markdown = escape_marked(written).strip("\n") + "\n"
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
    kept_elements = {element for selector in source.keep_selectors for element in _chosen(root, selector)}
    inside = {descendant for element in kept_elements for descendant in element.iter()}
    return root, frozenset(inside.union(*(element.iterancestors() for element in kept_elements))), note


def _chosen(root: lxml.html.HtmlElement, selector: str) -> list[lxml.html.HtmlElement]:
    return list(_selector(selector)(root)) if selector else []


@cache
def _selector(selector: str) -> CSSSelector:
    return CSSSelector(selector, translator="html")


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
    write_embedded(page)
    return page


def _title(page: lxml.html.HtmlElement, root: lxml.html.HtmlElement, url: str, site: str) -> str:
    """The first heading or title that isn't just the name of the site; else the words of the address."""
    headings = (re.sub(r"\{#[^{}\s]+\}$", "", unmarked(text_of(heading))) for heading in root.iter("h1"))
    titles = (*page.xpath("//head/meta[@property='og:title']/@content"), *page.xpath("//head/title/text()"))
    named = [name for text in (*headings, *titles) if (name := " ".join(str(text).split()))]
    own = [name for name in named if name.casefold() != site.casefold()]
    return next(iter(own), "") or (named and breadcrumb(url)) or next(iter(named), "")


def _meta(page: lxml.html.HtmlElement) -> Mapping[str, str]:
    values: dict[str, str] = {}
    for element in page.iter("meta"):
        key = element.get("property") or element.get("name") or element.get("itemprop") or element.get("http-equiv")
        content = (element.get("content") or "").strip()
        if key and content:
            values.setdefault(key.lower(), content)
    return values


def _languages(page: lxml.html.HtmlElement, root: lxml.html.HtmlElement, meta: Mapping[str, str]) -> Mapping[str, str]:
    """Returns the languages that the page declares. Starlight marks content that isn't translated (`<main lang>`)."""
    around = [element for element in (root, *root.iterancestors()) if element is not page]
    declared = {
        "content lang": next((language for element in around if (language := _lang(element))), ""),
        "html lang": _lang(page),
        **{name: meta.get(name, "") for name in _LANGUAGE_META},
    }
    return {place: tag for place, tag in declared.items() if tag}


def _lang(element: lxml.html.HtmlElement) -> str:
    return (element.get("lang") or element.get("{http://www.w3.org/XML/1998/namespace}lang") or "").strip()


def _links(page: lxml.html.HtmlElement, rel: str) -> list[lxml.html.HtmlElement]:
    return [e for e in page.iter("link") if rel in (e.get("rel") or "").lower().split() and e.get("href")]


def _canonical(page: lxml.html.HtmlElement, url: str) -> str:
    for element in _links(page, "canonical"):
        href = joined(url, element.get("href")).partition("#")[0]
        return href if host(href) == host(url) else ""
    return ""


def _alternates(page: lxml.html.HtmlElement, url: str) -> Mapping[str, str]:
    alternates = {
        element.get("hreflang").strip(): joined(url, element.get("href"))
        for element in _links(page, "alternate")
        if element.get("hreflang")
    }
    return {language: href for language, href in alternates.items() if host(href) == host(url)}

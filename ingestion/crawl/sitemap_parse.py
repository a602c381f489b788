"""The body of a sitemap (XML, index, gzip, plain list or llms.txt) -> addresses. Hostile bodies are harmless."""

from __future__ import annotations

import re
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urljoin, urlsplit

from lxml import etree

from app.core.language import vocabulary

MAX_BYTES = 50 * 1024 * 1024
"""The sitemap protocol's own limit, applied before and after decompression."""

_GZIP = b"\x1f\x8b"
_BARE_AMPERSAND = re.compile(rb"&(?!#?\w{1,32};)")
_END = re.compile(
    rb"</(?:[\w.-]+:)?(?:urlset|sitemapindex)\s*>|<(?:[\w.-]+:)?(?:urlset|sitemapindex)\b[^>]*/>|</html", re.IGNORECASE
)
END = 2000
"""Bytes at the end of a sitemap in which its last tag is looked for."""

_DECLARED = re.compile(rb"""<\?xml[^>]*?\bencoding\s*=\s*["']([\w.:-]+)""")
# entities that the sitemap defines are never expanded: braces make the address invalid
_OWN_ENTITY = re.compile(rb"&(?!(?:amp|lt|gt|quot|apos);)([A-Za-z_][\w.-]*);")
_MARKDOWN_LINK = re.compile(r"\]\(<?([^()<>\s]+)")
_BOM = b"\xef\xbb\xbf"


class NotASitemap(Exception):
    """The body isn't a sitemap; the message continues a sentence that starts with its address."""


@dataclass(frozen=True, slots=True)
class ListedPage:
    """A page as listed, its address absolute and without fragment."""

    url: str
    lastmod: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ParsedSitemap:
    """What one sitemap lists: pages, further sitemaps, and (address, reason) of invalid addresses.

    `whole` is False when its end is missing, so that it may list more.
    """

    pages: tuple[ListedPage, ...] = ()
    children: tuple[str, ...] = ()
    wrong: tuple[tuple[str, str], ...] = ()
    whole: bool = True


def parse_sitemap(body: bytes, url: str) -> ParsedSitemap:
    """What the body lists; relative addresses start from `url`. Raises `NotASitemap`."""
    text = _unzipped(body).removeprefix(_BOM).lstrip()
    if not text:
        raise NotASitemap("is empty, not a sitemap")
    if text.startswith(b"<") or text[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return _xml(text, url)
    return _plain(text, url)


def _unzipped(body: bytes) -> bytes:
    for _ in range(2):  # a .gz that the server compressed once more
        if not body.startswith(_GZIP):
            break
        unpacking = zlib.decompressobj(wbits=31)
        try:
            body = unpacking.decompress(body, MAX_BYTES + 1)
        except zlib.error as error:
            raise NotASitemap(f"isn't readable gzip ({error})") from error
        if len(body) > MAX_BYTES:
            raise NotASitemap(f"is larger than {MAX_BYTES // 2**20} MB unpacked")
    return body


def _xml(text: bytes, url: str) -> ParsedSitemap:
    whole = True
    if b"\x00" not in text[:64]:
        whole = _END.search(text[-END:]) is not None
        text = _BARE_AMPERSAND.sub(b"&amp;", _OWN_ENTITY.sub(rb"{\1}", _as_declared(text)))
        if not whole:  # drop a truncated address
            text = text[: text.rfind(b"</") + 2] if text.rfind(b"<loc") > text.rfind(b"</loc") else text
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False, recover=True, remove_comments=True
    )
    try:
        root = etree.fromstring(text, parser)
    except (etree.LxmlError, ValueError) as error:
        raise NotASitemap(f"isn't readable XML ({error})") from error
    kind = _name(root) if root is not None else ""
    if kind == "sitemapindex":
        found = [_address(_child(element, "loc"), url) for element in root if _name(element) == "sitemap"]
        children = tuple(dict.fromkeys(good for good, _ in found if good))
        return ParsedSitemap(children=children, wrong=_wrong(found), whole=whole)
    if kind != "urlset":
        what = "an HTML page" if kind == "html" or b"<html" in text[:2000].lower() else f"XML of another kind ({kind})"
        raise NotASitemap(f"is {what}, not a sitemap")
    listed = [element for element in root if _name(element) == "url"]
    addresses = [_address(_child(element, "loc"), url) for element in listed]
    pages = tuple(
        ListedPage(address, _child(element, "lastmod"), _alternates(element, url))
        for element, (address, _) in zip(listed, addresses, strict=True)
        if address
    )
    return ParsedSitemap(pages, wrong=_wrong(addresses), whole=whole)


def _as_declared(text: bytes) -> bytes:
    """The text in UTF-8 where it claims to be so and isn't; else as it is."""
    if (match := _DECLARED.match(text)) and match[1].lower() != b"utf-8":
        return text
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return text.decode(vocabulary().encoding, "replace").encode()
    return text


def _plain(text: bytes, url: str) -> ParsedSitemap:
    lines = [line.strip() for line in _as_declared(text).decode("utf-8", "replace").splitlines()]
    if urlsplit(url).path.endswith("/llms.txt"):
        lines = list(dict.fromkeys(link for line in lines for link in _MARKDOWN_LINK.findall(line)))
    found = [_address(line, url) for line in lines if line and not line.startswith("#")]
    pages = tuple(ListedPage(good) for good, _ in found if good)
    if not pages and found:
        raise NotASitemap("is text, but no list of addresses")
    return ParsedSitemap(pages, wrong=_wrong(found))


def _wrong(found: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    return tuple((written or "(empty)", "isn't a web address") for good, written in found if not good)


def _address(written: str, url: str) -> tuple[str, str]:
    """(absolute address or nothing, as written)."""
    if not written or len(written) > 4000 or re.search(r"[\s<>\"{}|\\^`\x00-\x1f]", written):
        return "", written[:200]
    try:
        joined = urljoin(url, written).partition("#")[0]
        parts = urlsplit(joined)
        _ = parts.port
    except ValueError:  # a bracket or port that makes no sense
        return "", written
    return (joined, written) if parts.scheme in ("http", "https") and parts.hostname else ("", written)


def _name(element: etree._Element) -> str:
    return etree.QName(element).localname.lower() if isinstance(element.tag, str) else ""


def _child(element: etree._Element, name: str) -> str:
    for child in element:
        if _name(child) == name:
            return (child.text or "").strip() if not len(child) else ""
    return ""


def _alternates(element: etree._Element, url: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for child in element:
        if _name(child) == "link" and (child.get("rel") or "").lower() == "alternate" and child.get("hreflang"):
            address, _ = _address((child.get("href") or "").strip(), url)
            if address:
                found[child.get("hreflang", "").strip()] = address
    return found

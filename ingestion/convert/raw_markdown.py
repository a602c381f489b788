"""A fetched page -> its document: from the page's own raw Markdown where the site gives it, else from its HTML."""

from __future__ import annotations

import asyncio
import codecs
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from app.core.language import Vocabulary
from ingestion.convert import Document, SourceText, convert
from ingestion.convert.document import HTML_TYPES, decode
from ingestion.convert.raw import prefer_raw
from ingestion.crawl.directory import published_links
from ingestion.crawl.exchange import ACCEPT_HTML, ACCEPT_MARKDOWN, Fetched, PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.entry import Entry, Given
from ingestion.errors import ConversionError, PageError, PageGone, PageSkipped
from ingestion.urls import RAW_SUFFIXES, host, joined, origin
from ingestion.workers import Workers

_UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
_CONTROLS = bytes(set(range(32)) - set(b"\t\n\r\f\v\b\x1b"))


def converted(fetched: Fetched, entry: Entry, words: Vocabulary) -> Document:
    """The document of a download, with its source's selectors. Raises `ConversionError`."""
    site = entry.site
    if _is_binary(fetched.body):
        raise ConversionError(f"{entry.url} is binary, not text")
    text = decode(fetched.body, fetched.charset, words.encoding)
    document = convert(
        SourceText(fetched.url, text, fetched.media_type, site.content_selector, site.drop_selectors, words)
    )
    if entry.file:
        return replace(document, markdown=published_links(document.markdown, site))
    return _as_given(document, entry.given) if entry.given else document


def _as_given(document: Document, given: Given) -> Document:
    """The document with what its metadata says of it."""
    headed = bool(document.title) or not given.title
    return replace(
        document,
        title=given.title or document.title,
        markdown=document.markdown if headed else f"# {given.title}\n\n{document.markdown}",
        languages={**document.languages, **({"metadata": given.language} if given.language else {})},
        published=given.published or document.published,
        version=given.version or document.version,
    )


def _richer(page: Document, raw: Fetched, entry: Entry, words: Vocabulary) -> Document | None:
    return prefer_raw(page, converted(raw, entry, words))


@dataclass
class RawMarkdown:
    """Fetches pages and prefers their raw Markdown, as each source's `markdown` says.

    A site that names none is probed once per form of address for Markdown next to its pages.
    """

    fetcher: Fetcher
    workers: Workers
    words: Vocabulary
    _found: dict[tuple[str, bool], int | None] = field(default_factory=dict)
    _locks: dict[tuple[str, bool], asyncio.Lock] = field(default_factory=dict)

    async def fetch(self, entry: Entry, etag: str, last_modified: str) -> Fetched:
        """The page itself, conditionally where validators are given. Raises `PageError`."""
        mode, suffix = entry.site.markdown, entry.site.suffix
        accept = ACCEPT_HTML if mode == "off" else ACCEPT_MARKDOWN
        wanted = PageRequest(entry.url, etag=etag, last_modified=last_modified, accept=accept)
        if suffix and not _is_raw(entry.url):
            try:
                return await self.fetcher.get(replace(wanted, url=_with_suffix(entry.url, suffix)))
            except (PageGone, PageSkipped):  # without Markdown, read the HTML
                pass
        return await self.fetcher.get(wanted)

    async def document(self, fetched: Fetched, entry: Entry) -> Document:
        """The document of the page. Raises `ConversionError`."""
        read = await self.workers.run(converted, fetched, entry.without_text(), self.words)
        if entry.site.markdown != "auto" or entry.is_local or fetched.media_type not in HTML_TYPES:
            return read
        named = read.markdown_url or (joined(fetched.url, fetched.markdown_url) if fetched.markdown_url else "")
        if named and host(named) == host(fetched.url):
            return await self._better(read, named, entry)
        return await self._beside(read, fetched.url, entry)

    async def _better(self, read: Document, url: str, entry: Entry) -> Document:
        """The Markdown at this address where it is as rich as the HTML, else the HTML."""
        try:
            raw = await self.fetcher.get(PageRequest(url))
            if raw.media_type in HTML_TYPES:  # the site returns HTML for every address
                return read
            return await self.workers.run(_richer, read, raw, entry, self.words) or read
        except (PageError, ConversionError):  # the HTML is there
            return read

    async def _beside(self, read: Document, url: str, entry: Entry) -> Document:
        candidates = _candidates(url)
        key = (origin(url), urlsplit(url).path.endswith("/"))
        async with self._locks.setdefault(key, asyncio.Lock()):
            if candidates and key not in self._found:
                self._found[key] = None
                for number, candidate in enumerate(candidates):
                    better = await self._better(read, candidate, entry)
                    if better is not read:
                        self._found[key] = number
                        return better
        known = self._found.get(key)
        return read if known is None or known >= len(candidates) else await self._better(read, candidates[known], entry)


def _candidates(url: str) -> tuple[str, ...]:
    """Where the usual generators put the Markdown of a page."""
    if urlsplit(url).query or _is_raw(url):
        return ()
    if url.endswith("/"):
        return (f"{url}index.md", f"{url.rstrip('/')}.md") if urlsplit(url).path != "/" else (f"{url}index.md",)
    return tuple(_with_suffix(url, suffix) for suffix in RAW_SUFFIXES)


def _with_suffix(url: str, suffix: str) -> str:
    parts = urlsplit(url)
    path = parts.path.removesuffix(".html")
    return parts._replace(path=f"{path}index{suffix}" if path.endswith("/") else path + suffix).geturl()


def _is_raw(url: str) -> bool:
    return urlsplit(url).path.endswith(RAW_SUFFIXES)


def _is_binary(body: bytes) -> bool:
    """True when many bytes are control characters."""
    start = body[:4096]
    return not start.startswith(_UTF16) and len(start.translate(None, _CONTROLS)) < 0.95 * len(start)

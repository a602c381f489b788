"""A listed page -> its document: download, conversion, JavaScript where needed, and anchors of Markdown."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document as LlamaDocument
from pydantic import PrivateAttr

from app.core.language import Vocabulary, vocabulary
from app.core.settings import Settings
from app.text.invisible import visible
from ingestion.convert import convert
from ingestion.convert.document import Document, SourceText, decode, source_text
from ingestion.convert.markdown.structure import AnchorMode, with_anchors
from ingestion.crawl.directory import published_links, read_file
from ingestion.crawl.documents import read_document
from ingestion.crawl.exchange import FILE_FACTOR, HTML_TYPES, Fetched, PageRequest, has_login_form
from ingestion.crawl.openapi import openapi_request
from ingestion.entry import Entry, Given
from ingestion.errors import ConversionError, NeedsJavaScript, PageError
from ingestion.formats import binary_types
from ingestion.urls import joined, public_url, stem
from ingestion.workers import Workers

if TYPE_CHECKING:
    from ingestion.crawl.fetch import Fetcher
    from ingestion.crawl.render import Renderer

_LINK = re.compile(r"\]\([ \t]*+<?([^\s<>()#]++)|^\[[^\]\n]++\]:[ \t]*+<?([^\s<>#]++)", re.MULTILINE)
_WHOLE = re.compile(r"[a-z][a-z0-9+.-]*+:|/", re.IGNORECASE)
_MOST_LINKS = 200


def converted(fetched: Fetched, entry: Entry, words: Vocabulary, anchors: AnchorMode, base: str = "") -> Document:
    """The document of a download, with its source's selectors. Links start from `base`. Raises `ConversionError`."""
    document = convert(source_of(fetched, entry, words, base))
    if entry.file and fetched.media_type not in HTML_TYPES:
        document = replace(document, markdown=published_links(document.markdown, entry.site))
    elif entry.given:
        document = _as_given(document, entry.given)
    return replace(document, markdown=with_anchors(document.markdown, anchors)) if document.raw else document


def source_of(fetched: Fetched, entry: Entry, words: Vocabulary, base: str = "") -> SourceText:
    """The download as its source wants it to be read. Raises `ConversionError` for bytes that none reads."""
    site = entry.site
    return replace(
        source_text(fetched, words),
        content_selector=site.content_selector,
        drop_selectors=site.drop_selectors,
        keep_selectors=site.keep_selectors,
        repeated=entry.repeated,
        base=base,
        anchors=site.anchors,
        ignores_noindex=site.noindex == "ignore",
    )


def _as_given(document: Document, given: Given) -> Document:
    title = visible(given.title)
    return replace(
        document,
        title=title or document.title,
        markdown=document.markdown if document.title or not title else f"# {title}\n\n{document.markdown}",
        languages={**document.languages, **({"metadata": given.language} if given.language else {})},
        published=given.published or document.published,
        version=given.version or document.version,
    )


class PageDocument(LlamaDocument):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A page as clean Markdown. Its metadata has `url`, `title`, `language` (as the page declares it), `published`, `modified` and
    `version`, without those that the page doesn't say.
    """

    _made: tuple[Document, Fetched] = PrivateAttr()

    @classmethod
    def of(cls, entry: Entry, document: Document, fetched: Fetched) -> PageDocument:
        """The document of the page that the entry lists."""
        facts = {
            "url": entry.address,
            "title": document.title,
            "language": next(iter(document.languages.values()), ""),
            "published": document.published,
            "modified": document.modified or entry.lastmod,
            "version": document.version,
        }
        told = {name: fact for name, fact in facts.items() if fact}
        made = cls(id_=entry.address, text=document.markdown, metadata=told, excluded_embed_metadata_keys=[*told],
                   excluded_llm_metadata_keys=[*told])  # fmt: skip
        made._made = document, fetched
        return made

    @property
    def made(self) -> tuple[Document, Fetched]:
        """What a run goes on with, and the download that it is made of: a browser's, where JavaScript makes the page."""
        return self._made


class PageLoader(BaseReader):  # type: ignore[misc]
    """Downloads listed pages and converts them, one by one, for a run. Close it when done.

    `stems` are those of all listed pages. `notes` counts messages for the operator about the settings of whole sites.
    """

    def __init__(
        self, fetcher: Fetcher, workers: Workers, settings: Settings, stems: frozenset[str] = frozenset()
    ) -> None:
        from ingestion.crawl.render import Renderer  # with what fetches, which processes that convert don't need

        self.fetcher, self.workers, self.settings, self.stems = fetcher, workers, settings, stems
        self.notes: Counter[str] = Counter()
        self.words: Vocabulary = vocabulary(settings.languages, settings.prompts)
        self._renderer: Renderer | None = Renderer(settings, fetcher) if settings.render == "auto" else None

    async def aload_data(self, entry: Entry, fetched: Fetched) -> list[PageDocument]:
        """The page that was fetched for the entry, as one document. Raises `ConversionError`."""
        return [PageDocument.of(entry, *await self._read(entry, fetched))]

    async def fetch(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """The page itself, with status 304 where the validators still hold. Raises `PageError`."""
        wanted = PageRequest(entry.url, etag=etag, last_modified=last_modified)
        if early := self.fetcher.downloads.take(wanted):
            return early
        if entry.given:
            return await asyncio.to_thread(read_document, entry, etag, self.settings.tuning.crawl_max_bytes)
        if entry.file:
            return await asyncio.to_thread(read_file, entry, etag, self.settings.tuning.crawl_max_bytes)
        if entry.site.openapi:
            return await self.fetcher.get(openapi_request(entry.url, etag, last_modified))
        return await self.fetcher.get(wanted)

    async def fetch_early(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """Fetches early what `fetch` will give later without another request. Raises `PageError`."""
        try:
            fetched = await self.fetch(entry, etag, last_modified)
        except PageError as error:
            self.fetcher.downloads.keep(entry.url, error)
            raise
        self.fetcher.downloads.keep(entry.url, fetched)
        return fetched

    async def read(self, entry: Entry, fetched: Fetched) -> tuple[Document, Fetched]:
        """What a document is made of. Raises `ConversionError`."""
        (loaded,) = await self.aload_data(entry, fetched)
        return loaded.made

    async def _read(self, entry: Entry, fetched: Fetched) -> tuple[Document, Fetched]:
        try:
            document = await self._converted(entry, fetched)
        except NeedsJavaScript as error:
            if entry.is_local:
                raise
            if self._renderer is None:
                raise NeedsJavaScript(f"{error}; DOCS_RENDER=auto with docs-assistant[browser] can read it") from error
            html = (await self._renderer.html(fetched.url)).encode()
            # validators of the empty shell don't cover the content that scripts load
            fetched = replace(fetched, body=html, media_type="text/html", charset="utf-8", etag="", last_modified="")
            fetched = replace(fetched, login_form=has_login_form(html))
            document = await self._converted(entry, fetched)
        if document.note:
            self.notes[f"{entry.site.url}: {document.note}"] += 1
        return document, fetched

    async def close(self) -> None:
        """End the browser, if it was started."""
        if self._renderer is not None:
            await self._renderer.close()

    async def _converted(self, entry: Entry, fetched: Fetched) -> Document:
        anchors = entry.site.anchors  # of an OpenAPI document, the program that shows it
        mode: AnchorMode = anchors if anchors in ("github", "mkdocs", "none") else "auto"  # type: ignore[assignment]
        base = "" if entry.is_local or fetched.media_type in HTML_TYPES else self._link_base(fetched, entry)
        if fetched.media_type in binary_types():
            self.workers.allow(FILE_FACTOR)
        document = await self.workers.run(converted, fetched, entry.without_text(), self.words, mode, base)
        if len(document.markdown) > self.settings.tuning.crawl_max_bytes:
            raise ConversionError(
                f"becomes a text of {len(document.markdown):,} characters: divide the page, leave it out with `exclude`, or"
                " raise DOCS_TUNING__CRAWL_MAX_BYTES"
            )
        return document

    def _link_base(self, fetched: Fetched, entry: Entry) -> str:
        markdown = decode(fetched.body, fetched.charset, self.words.encoding)
        page = public_url(fetched.url)
        return link_base(markdown, (fetched.url, entry.address, page, f"{page.rstrip('/')}/"), self.stems)


def link_base(markdown: str, bases: Iterable[str], known: Collection[str]) -> str:
    """The first of the addresses from which most relative links lead to pages whose `stem` is known.

    Generators write the links of Markdown for its file, for the page, or for the folder of the page.
    """
    candidates = list(dict.fromkeys(base for base in bases if base))
    links = dict.fromkeys(first or other for first, other in _LINK.findall(markdown))
    relative = [link for link in links if not _WHOLE.match(link)][:_MOST_LINKS]
    if not relative or not candidates:
        return candidates[0] if candidates else ""
    return max(candidates, key=lambda base: sum(stem(public_url(joined(base, link))) in known for link in relative))

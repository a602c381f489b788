"""The stages of reading a page, each of which takes what a shard has kept, or else does its work and notes what it brought."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from hashlib import blake2b
from typing import Any

import numpy as np

from app.core.errors import IndexDamaged
from app.core.settings import Settings
from app.core.types import Page, Vector
from app.index.protocols import Parts
from app.models.protocols import Embedder
from ingestion.convert.document import Document
from ingestion.convert.prepare import Prepared
from ingestion.convert.reader import DocumentReader
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.keeping_embedder import KeepingEmbedder
from ingestion.page_reader import PageReader
from ingestion.publish.change import PageChange
from ingestion.sharding.reading import FINAL, Failure, Readings
from ingestion.split.chunker import Chunker


@dataclass(kw_only=True)
class KeptDocuments(DocumentReader):
    """See `DocumentReader`."""

    readings: Readings

    async def fetch(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """The page itself, or what a shard got. Raises `PageError`."""
        known = await self.readings.of(entry)
        if known.answers(etag, last_modified):
            if known.fetched is not None:
                return known.fetched
            assert known.failure is not None
            raise known.failure.error()
        self.readings.begin(entry, (etag, last_modified))
        try:
            fetched = await super().fetch(entry, etag, last_modified)
        except FINAL as error:
            self.readings.note(entry.url, failure=Failure.of(error))
            raise
        self.readings.note(entry.url, fetched=_without_body(fetched))
        return fetched

    async def fetch_early(self, entry: Entry, etag: str = "", last_modified: str = "") -> Fetched:
        """What `fetch` will give later. Raises `PageError`."""
        if (await self.readings.of(entry)).answers(etag, last_modified):
            return await self.fetch(entry, etag, last_modified)
        return await super().fetch_early(entry, etag, last_modified)

    async def read(self, entry: Entry, fetched: Fetched) -> tuple[Document, Fetched]:
        """The document and its download, or what a shard made of it. Raises `ConversionError`."""
        known = await self.readings.of(entry)
        if fetched is known.fetched:
            if known.failure is not None:
                raise known.failure.error()
            assert known.document is not None
            assert known.read_from is not None
            return known.document, known.read_from
        try:
            document, read_from = await super().read(entry, fetched)
        except FINAL as error:
            self.readings.note(entry.url, failure=Failure.of(error))
            raise
        self.readings.note(entry.url, document=document, read_from=_without_body(read_from))
        return document, read_from


@dataclass(frozen=True, kw_only=True)
class KeptChunker(Chunker):
    """See `Chunker`."""

    readings: Readings

    async def prepared(
        self, document: Document, fetched: Fetched, entry: Entry, settings: Settings, known_hash: str
    ) -> Prepared:
        """The page, or what a shard prepared of the same document for the same address."""
        known = await self.readings.of(entry)
        if known.prepared is not None and (known.addressed, known.languages) == (fetched, document.languages):
            return known.prepared
        made = await super().prepared(document, fetched, entry, settings, known_hash)
        self.readings.note(entry.url, addressed=fetched, languages=document.languages, prepared=made, finished=None)
        return made

    async def finished(self, made: Prepared) -> Prepared:
        """The page with its chunks, and what a shard asked the embedder or a language model for."""
        url = made.page.fetched_url
        known = self.readings.current(url)
        if known is not None and known.finished is not None and _key(known.finished.page) == _key(made.page):
            return replace(known.finished, page=_with_additions(made.page, known.finished.page))
        done = await super().finished(made)
        if known is not None and (not made.chunks or self.translator or self.written):
            self.readings.note(url, finished=done)
        return done


@dataclass(kw_only=True)
class KeptPageReader(PageReader):
    """See `PageReader`."""

    readings: Readings

    @classmethod
    def of(cls, reader: PageReader, readings: Readings) -> KeptPageReader:
        """This reader, with what shards have kept."""
        given, cut = reader.documents, reader.chunker
        documents = KeptDocuments(given.fetcher, given.workers, given.settings, given.samples, readings=readings)
        chunker = KeptChunker(**{one.name: getattr(cut, one.name) for one in fields(cut)}, readings=readings)
        return cls(
            documents, chunker, reader.settings, reader.states, reader.listed, reader.fresh, reader.runs,
            readings=readings,
        )  # fmt: skip

    async def read(self, entry: Entry) -> PageChange:
        """The change of the index for one entry."""
        change = await super().read(entry)
        await self.readings.done(entry)
        return change


class KeptEmbedder(KeepingEmbedder):
    """The embedder, of which no passage is asked twice in a draft."""

    def __init__(self, embedder: Embedder, parts: Parts) -> None:
        super().__init__(embedder)
        self._parts = parts

    async def _found(self, texts: Sequence[str]) -> dict[str, Vector]:
        keys = {text: self._key(text) for text in texts}
        found = await self._parts.find_all(list(keys.values()))
        return {text: _vector(found[key]) for text, key in keys.items() if key in found}

    async def _keep(self, vectors: Mapping[str, Vector]) -> None:
        await self._parts.keep_all({self._key(text): _packed(vector) for text, vector in vectors.items()})

    def _key(self, text: str) -> str:
        told = f"{self.name}\0{text}".encode("utf-8", "replace")
        return f"text-{blake2b(told, digest_size=16).hexdigest()}"


def _packed(vector: Vector) -> Mapping[str, str]:
    return {"vector": b64encode(np.asarray(vector, dtype=np.float32).tobytes()).decode()}


def _vector(values: Mapping[str, Any]) -> Vector:
    try:
        vector: list[float] = np.frombuffer(b64decode(values["vector"]), dtype=np.float32).tolist()
    except (LookupError, TypeError, ValueError) as error:
        raise IndexDamaged(
            f"A vector that a shard kept can't be read: {error}. Start the run again with another --draft."
        ) from error
    return vector


def _without_body(fetched: Fetched) -> Fetched:
    return replace(fetched, body=b"")


def _key(page: Page) -> tuple[object, ...]:
    """What the chunks of a page depend on."""
    return page.url, page.collection, page.title, page.language, page.hash, page.versions, page.modified, page.published


def _with_additions(page: Page, finished: Page) -> Page:
    return replace(
        page,
        plain=finished.plain,
        translations=finished.translations,
        summary=finished.summary,
        summary_of=finished.summary_of,
        questions_of=finished.questions_of,
    )

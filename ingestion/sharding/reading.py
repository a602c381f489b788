"""What reading one page brought, kept with the store for the process that publishes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

from pydantic import TypeAdapter

from app.core.errors import IndexDamaged
from app.index.protocols import Parts
from ingestion.convert.document import Document
from ingestion.convert.prepare import Prepared
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.errors import ConversionError, PageError, PageGone, PageLeftOut, PageSkipped

FINAL = (PageGone, PageSkipped, PageLeftOut, ConversionError)
"""Failures that the page itself is the cause of. After others, as those of the network, the page is read again."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure of `FINAL`, by the name of its class."""

    kind: str
    message: str
    status: int = 0

    @classmethod
    def of(cls, error: PageError | ConversionError) -> Failure:
        """The failure that this error is."""
        kind = next(one for one in FINAL if isinstance(error, one))
        return cls(kind.__name__, str(error), error.status if isinstance(error, PageError) else 0)

    def error(self) -> Exception:
        """The error again."""
        kind = next(one for one in FINAL if one.__name__ == self.kind)
        return kind(self.message, self.status) if issubclass(kind, PageError) else kind(self.message)


@dataclass(frozen=True, slots=True)
class Reading:
    """How one page was read.

    - `reading`: the settings and blocks by which it was read
    - `validators`: those that the request had
    - `fetched`: the download, `document` what was made of it, `read_from` the download that it was made of (a browser's, for some)
    - `addressed`: the download with the address for readers, `languages` what was said of the language; `prepared` came of both
    - `finished`: with what embedder or language model were asked for, if they were
    - `failure`: why it couldn't be fetched, or, if it was, converted

    Downloads are without body, pages without Markdown: it is the document's.
    """

    reading: str = ""
    validators: tuple[str, str] = ("", "")
    fetched: Fetched | None = None
    document: Document | None = None
    read_from: Fetched | None = None
    addressed: Fetched | None = None
    languages: Mapping[str, str] = field(default_factory=dict)
    prepared: Prepared | None = None
    finished: Prepared | None = None
    failure: Failure | None = None

    @property
    def is_complete(self) -> bool:
        """True if the page needn't be read again."""
        unchanged = self.fetched is not None and self.fetched.status == 304
        return self.document is not None or self.failure is not None or unchanged

    def answers(self, etag: str, last_modified: str) -> bool:
        """True if a request with these validators would get what is kept. A whole page answers every request."""
        if self.fetched is not None and self.fetched.status == 304:
            return bool(etag or last_modified) and self.validators == (etag, last_modified)
        return self.is_complete


_READING = TypeAdapter(Reading)


class Readings:
    """The readings of a draft's pages; those in progress are in memory. `writes` is True for a shard, False for the finishing step."""

    def __init__(self, parts: Parts, *, writes: bool) -> None:
        self._parts = parts
        self._writes = writes
        self._current: dict[str, Reading] = {}
        self._new: set[str] = set()

    async def of(self, entry: Entry) -> Reading:
        """The reading of this page; an empty one if it must be read. Raises `IndexDamaged`."""
        if entry.url not in self._current:
            found = await self._parts.find(reading_key(entry.url))
            known = _loaded(found, entry.url) if found else Reading()
            usable = known.is_complete and known.reading == entry.reading
            self._current.setdefault(entry.url, known if usable else Reading(entry.reading))
        return self._current[entry.url]

    def current(self, url: str) -> Reading | None:
        """The reading in progress of the page that is listed with this address."""
        return self._current.get(url)

    def begin(self, entry: Entry, validators: tuple[str, str]) -> None:
        """The page is requested: forget what was known of it."""
        self._current[entry.url] = Reading(entry.reading, validators)

    def note(self, url: str, **brought: Any) -> None:
        """Add what the next stage brought."""
        self._current[url] = replace(self._current[url], **brought)
        self._new.add(url)

    async def done(self, entry: Entry) -> None:
        """The page was read to its end."""
        known = self._current.pop(entry.url, None)
        if entry.url in self._new:
            self._new.discard(entry.url)
            if self._writes and known is not None and known.is_complete:
                await self._parts.keep(reading_key(entry.url), _READING.dump_python(_slim(known), mode="json"))


def reading_key(url: str) -> str:
    """The key of the page that is listed with this address."""
    return f"page-{blake2b(url.encode('utf-8', 'replace'), digest_size=16).hexdigest()}"


def _slim(known: Reading) -> Reading:
    return replace(known, prepared=_with_text(known.prepared, ""), finished=_with_text(known.finished, ""))


def _loaded(values: Mapping[str, Any], url: str) -> Reading:
    try:
        known = _READING.validate_python(values)
    except ValueError as error:
        raise IndexDamaged(
            f"What a shard kept of {url} can't be read: {error}. Start the run again with another --draft."
        ) from error
    text = known.document.markdown if known.document else ""
    return replace(known, prepared=_with_text(known.prepared, text), finished=_with_text(known.finished, text))


def _with_text(made: Prepared | None, text: str) -> Prepared | None:
    return replace(made, page=replace(made.page, markdown=text)) if made else None

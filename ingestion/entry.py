"""A listed page: what `crawl` finds in sitemaps and directories, and what every later stage works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ingestion.sources import Source
from ingestion.urls import public_url


@dataclass(frozen=True, slots=True)
class Given:
    """A document as a LlamaIndex reader gives it: its text, and what its metadata says of it, or empty."""

    text: str
    media_type: str
    title: str = ""
    language: str = ""
    published: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that a sitemap or a directory lists, or that a reader gives.

    `source` is the address of the sitemap that the operator's `site` begins with. A page of a directory is read from
    `file`, that of a reader is `given`; both send readers to `public`.
    """

    url: str
    source: str
    site: Source
    lastmod: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    public: str = ""
    given: Given | None = None

    @property
    def is_local(self) -> bool:
        """True when the page is read without a request."""
        return bool(self.file or self.given)

    def without_text(self) -> Entry:
        """The entry for another process, which gets the text of a document as its download."""
        return replace(self, given=replace(self.given, text="")) if self.given else self

    @property
    def address(self) -> str:
        """The address for readers, as long as the page has not moved."""
        return self.public or public_url(self.url)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An address that is not read, and why."""

    url: str
    reason: str


@dataclass(frozen=True, slots=True)
class Listing:
    """What the sources list, each page once, in their order.

    `sources` are the addresses of the sitemaps and directories that were read first. Only in those that are `complete`,
    because every part of them was read, does a missing page mean that it was removed. Those that `failed` list nothing,
    and their pages stay as they are. `roots` are the `sources` of each source of the operator.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    sources: frozenset[str]
    complete: frozenset[str]
    failed: tuple[Skipped, ...] = ()
    roots: Mapping[Source, frozenset[str]] = field(default_factory=dict)

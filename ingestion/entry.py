"""A listed page: what `crawl` finds in sitemaps and directories, and what every later stage works on."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.core.generation import RepeatedBlock
from ingestion.sources import LEFT_OUT, Source
from ingestion.urls import public_url


@dataclass(frozen=True, slots=True)
class Given:
    """A document that a LlamaIndex reader gives: its text, and what is said of it, or empty."""

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
    `file`, a path below `root`, that of a reader is `given`; both send readers to `public`. `links` are the addresses
    that following links found by this page first. `repeated` is what most pages of the site repeat.
    """

    url: str
    source: str
    site: Source
    lastmod: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    root: str = ""
    public: str = ""
    given: Given | None = None
    links: tuple[str, ...] = ()
    repeated: tuple[RepeatedBlock, ...] = ()

    @property
    def reading(self) -> str:
        """Everything that the page's text depends on beside the page; when it changes, the page is read again."""
        blocks = "\n".join(sorted(f"{block.kind} {block.key}" for block in self.repeated))
        left_out = f"{LEFT_OUT}{hashlib.sha256(blocks.encode()).hexdigest()[:16]}\n" if blocks else ""
        return left_out + self.site.reading

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
    """The pages that the sources list, each once, in their order.

    `sources` are the addresses of the sitemaps and directories that were read first. Only in those that are `complete`,
    because every part of them was read, does a missing page mean that it was removed. Those that `failed` list nothing,
    and their pages stay as they are. `roots` are the `sources` of each source of the operator,
    `notes` what the report says of whole sites.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    sources: frozenset[str]
    complete: frozenset[str]
    failed: tuple[Skipped, ...] = ()
    roots: Mapping[Source, frozenset[str]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, source: Source, entries: Iterable[Entry], skipped: Iterable[Skipped] = (), note: str = "") -> Listing:
        """All pages of a source that isn't a sitemap."""
        here = frozenset({source.url})
        return cls(tuple(entries), tuple(skipped), here, here, notes=(note,) if note else ())

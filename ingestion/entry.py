"""A listed page: what `crawl` finds in sitemaps and directories, and what every later stage works on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ingestion.sources import Source
from ingestion.urls import public_url


@dataclass(frozen=True, slots=True)
class Entry:
    """A page that a sitemap or a directory lists.

    `source` is the address of the sitemap that the operator's `site` begins with. A page of a directory is read from
    `file`, and readers are sent to `public`.
    """

    url: str
    source: str
    site: Source
    lastmod: str = ""
    alternates: Mapping[str, str] = field(default_factory=dict)
    file: str = ""
    public: str = ""

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
    because every part of them was read, does a missing page mean that it was removed.
    """

    entries: tuple[Entry, ...]
    skipped: tuple[Skipped, ...]
    sources: frozenset[str]
    complete: frozenset[str]

"""The address of a page for readers: its own, the target of a redirect, or its canonical one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from app.core.types import Page
from ingestion.convert import Document
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.urls import host, public_url


@dataclass
class _Claim:
    entry: Entry
    text: int


@dataclass
class Addresses:
    """The addresses that a run assigns. `listed` are those of all entries, `states` the pages of the index.

    A canonical address is used when it is on the page's host, is not listed itself, and only one text names it:
    a site that names its home page everywhere must not lose all other pages.
    """

    listed: frozenset[str]
    states: Mapping[str, Page]
    _moved: dict[str, str] = field(default_factory=dict)
    _claims: dict[str, _Claim] = field(default_factory=dict)
    _disputed: set[str] = field(default_factory=set)

    def conflict(self, entry: Entry, fetched: Fetched, collection: str) -> str:
        """Why the page can't be indexed under its address: another page or collection has it. Empty when it can."""
        url = _arrived(entry, fetched)
        if fetched.redirects:
            if url != entry.address and url in self.listed:
                return f"redirects to {url}, which is listed too"
            if self._moved.setdefault(url, entry.url) != entry.url:
                return f"redirects to {url}, as {self._moved[url]} does"
        other = self.states.get(url)
        if other is not None and other.collection != collection:
            return f"is in the index already, in the collection {other.collection}"
        return ""

    def addressed(self, entry: Entry, fetched: Fetched, read: Document) -> Fetched:
        """The download as if it came from the address for readers."""
        url = _arrived(entry, fetched)
        url = self._canonical(entry, url, read) or url
        if url == public_url(fetched.url if fetched.redirects else entry.url):
            return fetched
        return replace(fetched, url=url, redirects=fetched.redirects or (entry.url,))

    def holds(self, entry: Entry, fetched: Fetched, known: Page) -> bool:
        """True when a page that didn't change belongs where it is known."""
        if _arrived(entry, fetched) == known.url:
            return True
        return known.url == known.canonical and known.url not in self.listed and not fetched.redirects

    def disputed(self) -> list[tuple[Entry, str]]:
        """Pages to read again under their own address, and the canonical address that they were given."""
        return [(self._claims[url].entry, url) for url in sorted(self._disputed)]

    def _canonical(self, entry: Entry, own: str, read: Document) -> str:
        """The address that the page names, where it may have it."""
        url = public_url(read.canonical)
        if entry.is_local or not url or url == own or host(url) != host(own):
            return ""
        other = self.states.get(url)
        if url in self.listed or (other is not None and other.fetched_url != entry.url):
            return ""
        claim = self._claims.setdefault(url, _Claim(entry, hash(read.markdown)))
        if claim.entry.url != entry.url:
            if claim.text != hash(read.markdown):
                self._disputed.add(url)
            return ""
        return "" if url in self._disputed else url


def _arrived(entry: Entry, fetched: Fetched) -> str:
    return public_url(fetched.url) if fetched.redirects and not entry.public else entry.address

"""A converted page -> a Page: address, language, dates, hash. It runs in a worker process."""

import datetime as dt
import hashlib
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from urllib.parse import unquote, urlsplit

from app.core.generation import said_versions
from app.core.language import vocabulary, with_words
from app.core.settings import Settings
from app.core.types import Chunk, Page, PageFetch
from app.text.blocks import outside_fences, outside_spans, plain_title
from app.text.marks import fingerprint
from ingestion.convert import Document
from ingestion.convert.language import Languages, page_language
from ingestion.convert.markdown.structure import LONGEST_HEADING
from ingestion.crawl.exchange import Fetched, parse_date
from ingestion.crawl.lastmods import settled
from ingestion.entry import Entry
from ingestion.urls import host, public_url

EARLIEST = dt.datetime(1993, 1, 1, tzinfo=dt.UTC)
"""No page is older than the web: earlier dates are zeros of some program."""

CLOCKS = dt.timedelta(days=1)
"""The time that a date may be in the future, because clocks and time zones differ."""

BUILD = dt.timedelta(days=1)
FEWEST = 3


def page_dates(entry: Entry, read: Document, fetched: Fetched) -> tuple[str, str]:
    """(published, modified), each may be empty; from the sitemap, then front matter or meta tags, then Last-Modified."""
    modified = (entry.lastmod, read.modified, fetched.last_modified)
    return iso_date(read.published), next((date for date in map(iso_date, modified) if date), "")


def iso_date(value: str) -> str:
    """An ISO or HTTP date as ISO 8601, a day or a time in UTC; empty when it is invalid, in the future, or before the web."""
    text = value.strip()
    date = parse_date(text)
    if date is None or not EARLIEST <= date <= dt.datetime.now(dt.UTC) + CLOCKS:
        return ""
    return date.date().isoformat() if len(text) == 10 else date.isoformat(timespec="seconds")


def without_build_dates(entries: Sequence[Entry]) -> list[Entry]:
    """The entries, without dates where all pages of a sitemap have the same day: then it is the day of the build."""
    dates: dict[str, list[dt.datetime | None]] = defaultdict(list)
    for entry in entries:
        dates[entry.source].append(parse_date(entry.lastmod))
    built = {source for source, days in dates.items() if _is_build(days)}
    return [replace(entry, lastmod="") if entry.source in built else entry for entry in entries]


def _is_build(found: Iterable[dt.datetime | None]) -> bool:
    known = [date for date in found if date is not None]
    return len(known) >= FEWEST and max(known) - min(known) < BUILD


@dataclass
class Addresses:
    """The addresses that a run assigns. `listed` are those of all entries, `states` the pages of the index.

    A canonical address is used when it is on the page's host, is not listed itself, and only one text names it:
    a site that names its home page everywhere must not lose all other pages.
    """

    listed: frozenset[str]
    states: Mapping[str, Page]
    _moved: dict[str, str] = field(default_factory=dict)
    _claims: dict[str, tuple[Entry, int]] = field(default_factory=dict)
    _disputed: set[str] = field(default_factory=set)

    def conflict(self, entry: Entry, fetched: Fetched, collection: str) -> str:
        """The reason why the page can't be indexed under its address: another page or collection has it. Empty when it can."""
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
        return [(self._claims[url][0], url) for url in sorted(self._disputed)]

    def _canonical(self, entry: Entry, own: str, read: Document) -> str:
        """The address that the page names, where it may have it."""
        url = public_url(read.canonical)
        if entry.is_local or not url or url == own or host(url) != host(own):
            return ""
        other = self.states.get(url)
        if url in self.listed or (other is not None and other.fetch.fetched_url != entry.url):
            return ""
        first, text = self._claims.setdefault(url, (entry, hash(read.markdown)))
        if first.url != entry.url:
            if text != hash(read.markdown):
                self._disputed.add(url)
            return ""
        return "" if url in self._disputed else url


def _arrived(entry: Entry, fetched: Fetched) -> str:
    return public_url(fetched.url) if fetched.redirects and not entry.public else entry.address


_TARGET = re.compile(r"\]\((?:<[^<>\n]*+>|(?:[^()\s]|\([^()\s]*+\))*+)")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A page, with its chunks where it has to be written; `note` is for the report.

    `translated` are the languages of its translations.
    """

    page: Page
    chunks: tuple[Chunk, ...] = ()
    note: str = ""
    translated: tuple[str, ...] = ()


def prepare(read: Document, fetched: Fetched, entry: Entry, settings: Settings) -> Prepared:
    """The page, not yet cut; its `fetched_url` is the address that the sitemap lists."""
    url = entry.public if entry.given else public_url(fetched.url if fetched.redirects else entry.url)
    alternates = {code: public_url(href) for code, href in (entry.alternates or read.alternates).items()}
    declared = {
        "hreflang": next((code for code, href in alternates.items() if href == url and code != "x-default"), ""),
        **read.languages,
        "Content-Language": fetched.language.partition(",")[0],
    }
    words = vocabulary(with_words(settings.languages, settings.prompts), settings.prompts)
    languages = Languages(settings.languages, settings.default_language, words)
    language = page_language(read.markdown, entry.url, declared, languages)
    published, modified = page_dates(entry, read, fetched)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    page = Page(
        url=url,
        collection=settings.tuning.collection,
        title=plain_title(read.title)[:LONGEST_HEADING] or _file(url) or url,
        language=language.code,
        markdown=read.markdown,
        hash=text_hash(read.markdown),
        canonical=read.canonical,
        alternates=alternates,
        file=_file(entry.url),
        published=published,
        modified=modified,
        versions=said_versions(url, read.version),
        fingerprint=fingerprint(read.markdown),
        fetch=PageFetch(
            fetched_url=entry.url,
            source=entry.source,
            reading=entry.reading,
            etag=fetched.etag,
            last_modified=fetched.last_modified,
            lastmod=settled(entry.lastmod),
            links=entry.links,
            fetched_at=now,
            last_ok=now,
        ),
    )
    return Prepared(page, note=language.note)


def text_hash(markdown: str) -> str:
    """A hash in two halves: of the text without the addresses of its links (`same_text`), and of all."""
    halves = without_targets(markdown), markdown
    return "".join(hashlib.sha256(half.encode()).hexdigest()[:32] for half in halves)


def without_targets(markdown: str) -> str:
    """The text without the addresses of its links."""
    return outside_fences(markdown, _without_targets)


def _without_targets(prose: str) -> str:
    # most prose between fences has no link, and looking for one is faster than for code spans
    return outside_spans(prose, lambda text: _TARGET.sub("](", text)) if "](" in prose else prose


def same_text(hashed: str) -> str:
    """Returns the part of the hash that pages with the same text share, wherever their links lead."""
    return hashed[:32]


def _file(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])

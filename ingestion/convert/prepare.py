"""A converted page -> a Page: address, language, dates, hash. It runs in a worker process."""

from __future__ import annotations

import datetime as dt
import hashlib
import re
from dataclasses import dataclass, replace
from urllib.parse import unquote, urlsplit

from app.core.language import vocabulary, with_words
from app.core.settings import Settings
from app.core.types import Chunk, Page
from app.core.versions import said_versions
from app.text.fences import outside_fences, outside_spans
from app.text.marks import fingerprint
from app.text.titles import plain_title
from ingestion.convert import Document
from ingestion.convert.language import Languages, page_language
from ingestion.convert.page_dates import page_dates
from ingestion.convert.structure import LONGEST_HEADING
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry
from ingestion.urls import public_url

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
    found = page_language(read.markdown, entry.url, declared, languages)
    published, modified = page_dates(entry, read, fetched)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    page = Page(
        url=url,
        collection=settings.collection,
        title=plain_title(read.title)[:LONGEST_HEADING] or _file(url) or url,
        language=found.code,
        markdown=read.markdown,
        hash=text_hash(read.markdown),
        fetched_url=entry.url,
        source=entry.source,
        canonical=read.canonical,
        alternates=alternates,
        file=_file(entry.url),
        published=published,
        modified=modified,
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        fetched_at=now,
        last_ok=now,
        versions=said_versions(url, read.version),
        reading=entry.reading,
        fingerprint=fingerprint(read.markdown),
    )
    return Prepared(page, note=found.note)


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
    """What the hashes of pages have in common that say the same, wherever their links lead."""
    return hashed[:32]


def dated_as(page: Page, known: Page) -> Page:
    """The page with the dates of its known state: deploying an unchanged page doesn't change its date."""
    return replace(page, published=known.published, modified=known.modified)


def _file(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])

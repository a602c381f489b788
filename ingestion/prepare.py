"""A downloaded page -> a Page with its chunks. Only computing: runs in a thread, beside the event loop."""

from __future__ import annotations

import datetime as dt
import hashlib
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from urllib.parse import unquote, urlsplit

from app.core.settings import Settings
from app.core.types import Chunk, Page
from ingestion.convert import Document, Source, convert
from ingestion.convert.base import decode
from ingestion.convert.links import public_url
from ingestion.fetch import Fetched
from ingestion.language import page_language
from ingestion.sitemap import Entry
from ingestion.split import split


@dataclass(frozen=True, slots=True)
class Prepared:
    """A page ready for the index; `note` says what is odd about its language."""

    page: Page
    chunks: tuple[Chunk, ...]
    note: str = ""


def document(fetched: Fetched) -> Document:
    """The document of a download. Raises `ConversionError`."""
    return convert(Source(fetched.url, decode(fetched.body, fetched.charset), fetched.media_type))


def prepare(read: Document, fetched: Fetched, entry: Entry, settings: Settings) -> Prepared:
    """The page and its chunks; the page's `fetched_url` is the address that the sitemap lists."""
    url = public_url(fetched.url if fetched.redirects else entry.url)
    alternates = {code: public_url(href) for code, href in (entry.alternates or read.alternates).items()}
    declared = {
        "hreflang": next((code for code, href in alternates.items() if href == url and code != "x-default"), ""),
        **read.languages,
        "Content-Language": fetched.language.partition(",")[0],
    }
    found = page_language(read.markdown, entry.url, declared, settings.languages, settings.default_language)
    now = dt.datetime.now(dt.UTC).isoformat(timespec="seconds")
    page = Page(
        url=url,
        collection=settings.collection,
        title=read.title or _file(url) or url,
        language=found.code,
        markdown=read.markdown,
        hash=hashlib.sha256(read.markdown.encode()).hexdigest(),
        fetched_url=entry.url,
        source=entry.source,
        canonical=read.canonical,
        alternates=alternates,
        file=_file(entry.url),
        published=iso_date(read.published),
        modified=next((d for d in map(iso_date, (entry.lastmod, read.modified, fetched.last_modified)) if d), ""),
        etag=fetched.etag,
        last_modified=fetched.last_modified,
        fetched_at=now,
        last_ok=now,
    )
    return Prepared(page, split(page, settings.chunk_size), found.note)


def dated_as(prepared: Prepared, known: Page) -> Prepared:
    """The same with the dates of a known page: what didn't change has no new date, whatever a deploy set."""
    published, modified = known.published, known.modified
    chunks = tuple(replace(chunk, published=published, modified=modified) for chunk in prepared.chunks)
    return Prepared(replace(prepared.page, published=published, modified=modified), chunks, prepared.note)


def iso_date(value: str) -> str:
    """An ISO or HTTP date as ISO 8601: a day, or a time in UTC; empty for anything else."""
    text = value.strip()
    if not text:
        return ""
    try:
        if len(text) == 10:
            return dt.date.fromisoformat(text).isoformat()
        moment = dt.datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except ValueError:
            return ""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=dt.UTC)
    return aware.astimezone(dt.UTC).isoformat(timespec="seconds")


def _file(url: str) -> str:
    return unquote(urlsplit(url).path.rstrip("/").rpartition("/")[2])

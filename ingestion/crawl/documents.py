"""A LlamaIndex reader as a source: its documents with their metadata are pages."""

import asyncio
import datetime as dt
import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from app.core.errors import ReaderError, SettingsError
from app.core.log_message import masked, names_secret
from app.core.plugins import made
from ingestion.crawl.exchange import Fetched
from ingestion.entry import Entry, Given, Listing, Skipped
from ingestion.errors import PageSkipped
from ingestion.sources import Source

LONGEST = 2 * 3600.0
"""Seconds that a reader may take. One that hangs must not keep the pages of the other sources from being published."""

ADDRESSES = ("url", "URL", "source_url", "link", "web_url", "html_url", "permalink", "source")
TITLES = ("title", "Title", "page_title", "subject")
LANGUAGES = ("language", "lang", "locale")
MODIFIED = ("last_modified_date", "last_modified", "modified", "updated_at", "updated", "last_edited_time", "lastmod")
PUBLISHED = ("published", "published_at", "published_date", "date", "created_at", "created", "creation_date")
VERSIONS = ("version",)
"""Keys of the metadata, as the readers of LlamaHub name these facts, the surest first."""

_PLACEHOLDER = re.compile(r"\{([^{}]+)\}")
_LONGEST_MESSAGE = 500


async def list_documents(source: Source) -> Listing:
    """The reader's documents as pages, those of one address as one page. Raises `ReaderError`, whatever happens in the
    reader; the source's pages then stay as they are.
    """
    from app.models.threads import in_thread

    def read() -> Sequence[Any]:
        try:
            return _documents(source)
        except BaseException as error:  # also a reader that calls sys.exit
            raise _named(source, error) from error

    try:
        async with asyncio.timeout(LONGEST):
            documents = await in_thread(read)
    except TimeoutError as error:
        raise ReaderError(f"{source.reader} did not end within {LONGEST:.0f} s.") from error
    by_address, skipped = _by_address(documents, source)
    if not by_address:
        reason = f": {skipped[0].url}: {skipped[0].reason}" if skipped else ""
        raise ReaderError(f"{source.reader} gives no document that can be read{reason}.")
    return Listing.of(source, (_entry(address, parts, source) for address, parts in by_address.items()), skipped)


def read_document(entry: Entry, etag: str, most: int) -> Fetched:
    """The text of a document as if it had been downloaded: 304 when all that is given is that of `etag`.

    Raises `PageSkipped` for a text that is larger than `most` bytes.
    """
    document = entry.given
    assert document is not None
    digest = hashlib.sha256(repr(document).encode(errors="replace")).hexdigest()
    if digest == etag:
        return Fetched(entry.url, 304, etag=digest)
    body = document.text.encode(errors="replace")
    if len(body) > most:
        raise PageSkipped(f"is larger than {most:,} bytes")
    return Fetched(entry.url, 200, body, document.media_type, "utf-8", etag=digest)


def _documents(source: Source) -> Sequence[Any]:
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.schema import Document

    making, loading = source.arguments
    documents = list(made(source.reader, BaseReader, making, "reader").load_data(**loading))
    if wrong := next((document for document in documents if not isinstance(document, Document)), None):
        raise TypeError(f"it gives a {type(wrong).__name__} instead of a Document")
    return documents


def _named(source: Source, error: BaseException) -> ReaderError:
    """The reader's error as ours, in one line, without the secrets among its arguments."""
    told = " ".join(masked(str(error)).split())
    making, loading = source.arguments
    for name, value in {**making, **loading}.items():
        if names_secret(name) and isinstance(value, str) and value:
            told = told.replace(value, "…")
    told = told[:_LONGEST_MESSAGE]
    if not isinstance(error, SettingsError):
        told = f"{source.reader} failed ({type(error).__name__}: {told})"
    return ReaderError(told)


def _by_address(documents: Iterable[Any], source: Source) -> tuple[dict[str, list[Any]], list[Skipped]]:
    by_address: dict[str, list[Any]] = {}
    skipped: list[Skipped] = []
    for document in documents:
        address, reason = _address(document, source)
        reason = reason or ("" if (document.text or "").strip() else "has no text") or source.left_out(address)
        if reason:
            skipped.append(Skipped(address or f"{source.url}: document {document.id_}", reason))
        else:
            by_address.setdefault(address, []).append(document)
    return by_address, skipped


def _address(document: Any, source: Source) -> tuple[str, str]:
    """(address, why there is none): that of the metadata, else the id that is one, else the one that `link` makes."""
    has_id = "id_" in document.model_fields_set  # else LlamaIndex has made a random one
    for value in (*(document.metadata.get(key) for key in ADDRESSES), document.id_ if has_id else ""):
        if isinstance(value, str) and (address := _web_address(value)):
            return address, ""
    there = ", ".join(map(str, document.metadata)) or "nothing"
    if not source.link:
        return (
            "",
            f'has no web address in its metadata ({there}): set link, as "https://docs.example.org/{{file_name}}"',
        )
    values = {**document.metadata, **({"id": document.id_} if has_id else {})}
    if missing := next((name for name in _PLACEHOLDER.findall(source.link) if values.get(name) in (None, "")), ""):
        if missing == "id":
            return "", f"has a random id, so {{id}} in link would be new in each run; its metadata has: {there}"
        return "", f"has no {missing}, which link names; its metadata has: {there}"
    address = _PLACEHOLDER.sub(lambda match: quote(str(values[match[1]]), safe="/"), source.link)
    return _web_address(address), ""


def _web_address(value: str) -> str:
    """The address without login and fragment; empty if it isn't a web address."""
    try:
        parts = urlsplit(value.strip())
    except ValueError:
        return ""
    if parts.scheme not in ("http", "https") or not parts.hostname or any(map(str.isspace, value.strip())):
        return ""
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], fragment="").geturl()


def _entry(address: str, documents: Sequence[Any], source: Source) -> Entry:
    facts = documents[0].metadata
    text = "\n\n".join(document.text.strip("\n") for document in documents)
    begins = text.lstrip("\ufeff \t\r\n")[:15].lower()
    mime = getattr(getattr(documents[0], "text_resource", None), "mimetype", None)
    is_html = mime == "text/html" or begins.startswith(("<!doctype html", "<html"))
    document = Given(
        text=text,
        media_type="text/html" if is_html else "text/markdown",
        title=_fact(facts, TITLES),
        language=_fact(facts, LANGUAGES),
        published=_fact(facts, PUBLISHED),
        version=_fact(facts, VERSIONS),
    )
    modified = max(_fact(document.metadata, MODIFIED) for document in documents)
    return Entry(address, source.url, source, lastmod=modified, public=address, given=document)


def _fact(metadata: Mapping[str, Any], keys: Sequence[str]) -> str:
    """The first of these facts as a line of text; empty if there is none."""
    for key in keys:
        value = metadata.get(key)
        if isinstance(value, dt.date):
            return value.isoformat()
        if isinstance(value, str | int | float) and not isinstance(value, bool) and str(value).strip():
            return " ".join(str(value).split())
    return ""

"""Tries the answers of `docs-assistant init` on the real site, store, model and port. Failures are `AssistantError`s."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from app.cli.dialogue import UnusableAnswer
from app.cli.options import opened_store
from app.cli.serve import bind
from app.core.errors import ModelError, ModelUnavailable, NoIndex, SettingsError, StoreError
from app.core.settings import Settings

SECONDS = 10.0


class KeyRefused(ModelError):
    """The server wants another key."""


def pages_of(sites: Sequence[str], settings: Settings) -> tuple[int, str]:
    """The number of pages that the sites list, and the address of the first, which was read."""
    return asyncio.run(_pages_of(sites, settings))


async def _pages_of(sites: Sequence[str], settings: Settings) -> tuple[int, str]:
    from ingestion.crawl.exchange import PageRequest
    from ingestion.crawl.fetch import Fetcher
    from ingestion.crawl.listing import list_pages
    from ingestion.errors import PageError
    from ingestion.sources import as_sources
    from ingestion.workers import Workers

    limited = settings.model_copy(update={"crawl_timeout": min(settings.crawl_timeout, SECONDS)})
    async with Fetcher(limited) as fetcher, Workers() as workers:
        listing = await list_pages(as_sources(sites), fetcher, workers)
        first = listing.entries[0]
        if first.site.is_site:
            try:
                await fetcher.get(PageRequest(first.url))
            except PageError as error:
                raise PageError(f"Its first page {first.url} can't be read: {error}.") from error
    return len(listing.entries), first.url


def pages_in_store(settings: Settings) -> int | None:
    """The number of pages in the store's live index; None if it is empty and can be written to."""
    return asyncio.run(_pages_in_store(settings))


async def _pages_in_store(settings: Settings) -> int | None:
    from app.index import directory_of

    if (directory := directory_of(settings)) is not None:
        _check_writable(directory)
    async with opened_store(settings) as store:
        try:
            return (await store.live()).info.pages
        except NoIndex:
            return None


def _check_writable(directory: Path) -> None:
    there = next(path for path in (directory.absolute(), *directory.absolute().parents) if path.exists())
    try:
        tempfile.TemporaryFile(dir=there).close()
    except OSError as error:
        raise StoreError(f"{directory} can't be written to: {error.strerror or error} ({there}).") from error


def model_names(url: str, key: str) -> tuple[str, list[str]]:
    """The address of the API, to which /v1 is added where that is missing, and the names of its models."""
    if not url.startswith(("http://", "https://")):
        raise UnusableAnswer(f"{url!r} isn't a web address: write it as http://localhost:11434/v1.")
    longer = f"{url.rstrip('/')}/v1"
    candidates = [url.rstrip("/")] if urlsplit(url).path.rstrip("/").endswith("/v1") else [url.rstrip("/"), longer]
    failure: ModelError | None = None
    for address in candidates:
        try:
            return address, _listed(address, key)
        except (KeyRefused, ModelUnavailable):
            raise
        except ModelError as error:
            failure = failure or error
    assert failure
    raise failure


def _listed(url: str, key: str) -> list[str]:
    address = f"{url}/models"
    try:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        response = httpx.get(address, headers=headers, timeout=SECONDS, follow_redirects=True)
    except (httpx.TransportError, httpx.InvalidURL, UnicodeError) as error:
        raise ModelUnavailable(
            f"{address} can't be reached: {error or type(error).__name__}. Is the server running, and is this its address?"
        ) from error
    if response.status_code in (401, 403):
        raise KeyRefused(f"{address} refuses the {'key' if key else 'call without a key'} ({response.status_code}).")
    with suppress(ValueError, KeyError, TypeError, AttributeError):
        return [str(one["id"]) for one in response.json()["data"]]
    raise ModelError(
        f"{address} doesn't list models as the OpenAI API does (status {response.status_code}): such addresses usually end in /v1."
    )


def check_model(settings: Settings) -> None:
    """Ask the model for a few words."""

    async def ask() -> None:
        from app.core.turn import Message
        from app.models import open_model
        from app.models.protocols import CallOptions

        model = open_model(settings)
        assert model
        try:
            await model.complete([Message("user", "Say OK.")], CallOptions(max_tokens=16, timeout=settings.llm_timeout))
        finally:
            await model.close()

    asyncio.run(ask())


def check_languages(codes: Sequence[str], settings: Settings) -> list[str]:
    """The names of the languages. Raises `PromptError` for one without prompts."""
    from app.core.prompts import load_prompts

    if not codes:
        raise SettingsError("Name at least one language by its code, such as en.")
    return [one.name for one in load_prompts(codes, settings.prompts).languages.values()]


def check_port(host: str, port: int) -> None:
    """Listen on the port for a moment. Raises `SettingsError`, as the service would."""
    bind(host, port).close()


def free_port(host: str, first: int) -> int:
    """The first port from this one on that is free; this one if 20 are taken."""
    for port in range(first, first + 20):
        with suppress(SettingsError):
            check_port(host, port)
            return port
    return first

"""Backends of the retriever: an index that this process opens, or a service over HTTP. Both take and return the same."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from app.api.answer_models import SearchResult
from app.api.bodies import ChatRequest, SearchRequest
from app.core.settings import Settings
from app.core.turn import Source


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in Markdown, and the sections that it links to. `extractive`: no language model wrote it."""

    text: str
    sources: Sequence[Source]
    extractive: bool


class Backend(Protocol):
    """Searches and answers. All calls must come from one event loop."""

    async def search(self, body: SearchRequest) -> SearchResult:
        """The passages, as `POST /v1/search` returns them. Raises an `AssistantError`."""

    async def answer(self, body: ChatRequest) -> Answer:
        """The answer to the question. Raises an `AssistantError`."""

    async def close(self) -> None:
        """Close all connections."""


def open_backend(address: str | Settings, api_key: str = "") -> Backend:
    """The service at an address with http(s), else the index at another address, or the one that is configured.

    Opens no connection yet. Raises `SettingsError` for invalid settings.
    """
    if isinstance(address, str) and address.startswith(("http://", "https://")):
        from app.retriever.http import HttpBackend

        return HttpBackend(address, api_key)
    from app.retriever.local import IndexBackend

    if isinstance(address, Settings):
        return IndexBackend(address)
    return IndexBackend(Settings.load(store=address) if address else Settings.load())

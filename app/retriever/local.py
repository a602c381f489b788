"""Searches an index with the steps of the configured assistants, in this process."""

from contextlib import AsyncExitStack, aclosing
from dataclasses import replace

from app.api.answer_models import SearchResult
from app.api.bodies import ChatRequest, SearchRequest, named_language
from app.api.chat import from_chat
from app.api.search import search_result
from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.gate import Shared
from app.core.settings import Settings
from app.core.turn import Done, Failure, Source, Text
from app.retriever.backend import Answer

REQUEST_ID = "retriever"  # in the log, where requests over HTTP have their ids


class IndexBackend:
    """See `app.retriever.backend.Backend`. Opens store and models with the first call."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._assistants: Shared[Assistants] = Shared()
        self._open_parts = AsyncExitStack()

    async def search(self, body: SearchRequest) -> SearchResult:
        """The passages."""
        assistants, language = await self._assistants.get(self._open), self._language(body.language)
        return await search_result(assistants.get(body.model), body, REQUEST_ID, language=language)

    async def answer(self, body: ChatRequest) -> Answer:
        """The answer to the question."""
        assistants, language = await self._assistants.get(self._open), self._language(body.language)
        request = from_chat(body, REQUEST_ID)
        texts, sources, extractive = list[str](), list[Source](), False
        async with aclosing(assistants.get(body.model).answer(replace(request, language=language))) as events:
            async for event in events:
                match event:
                    case Text():
                        texts.append(event.text)
                    case Source():
                        sources.append(event)
                    case Failure():
                        raise event.error
                    case Done():
                        extractive = event.extractive
        return Answer("".join(texts), sources, extractive)

    async def close(self) -> None:
        """Close store and models."""
        parts, self._open_parts, self._assistants = self._open_parts, AsyncExitStack(), Shared()
        await parts.aclose()

    async def _open(self) -> Assistants:
        return await self._open_parts.enter_async_context(opened(self._settings))

    def _language(self, named: str | None) -> str:
        return named_language(named, self._settings.languages) if named else ""

"""What programs search: an index that this process opens, or a service over HTTP. Both take and return the same."""

from collections.abc import Sequence
from contextlib import AsyncExitStack, aclosing
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.assistants.query_engine import AnswerStream, AskedBundle
from app.core.errors import AssistantError, ModelRateLimited, RequestError, SettingsError, StoreError, StoreUnavailable
from app.core.gate import Shared
from app.core.log_message import masked
from app.core.settings import Settings
from app.core.turn import Source
from app.http.bodies import RequestModel, named_language, validated
from app.http.errors import SERVER_ERRORS, ErrorBody
from app.routes.answer_models import ChatCompletion, Passage, SearchResult
from app.routes.ask import from_chat
from app.routes.request_models import ChatRequest, SearchRequest
from app.routes.search import search_result

REQUEST_ID = "retriever"  # in the log, where requests over HTTP have their ids
SEARCH_SECONDS = 30.0
ANSWER_SECONDS = 300.0  # the service has shorter limits of its own

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer in Markdown, and the sections that it links to. `extractive`: no language model wrote it."""

    text: str
    sources: Sequence[Source]
    extractive: bool


class IndexBackend:
    """Searches an index with the steps of the configured assistants. Opens store and models with the first call, and must be
    called from one event loop. All failures are `AssistantError`s.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._assistants: Shared[Assistants] = Shared()
        self._open_parts = AsyncExitStack()

    async def search(self, body: SearchRequest) -> SearchResult:
        """The passages, as `POST /v1/search` returns them."""
        assistants, language = await self._assistants.get(self._open), self._language(body.language)
        return await search_result(assistants.get(body.model), body, REQUEST_ID, language=language)

    async def answer(self, body: ChatRequest) -> Answer:
        """The answer to the question."""
        assistants, language = await self._assistants.get(self._open), self._language(body.language)
        request = from_chat(body, REQUEST_ID)
        bundle = AskedBundle(request.question, request=replace(request, language=language))
        response: AnswerStream = await assistants.get(body.model).engine.aquery(bundle)
        async with aclosing(response.async_response_gen()) as texts:
            text = "".join([text async for text in texts])
        told: dict[str, Any] = response.metadata
        return Answer(text, told["sources"], told["extractive"])

    async def close(self) -> None:
        """Close store and models."""
        parts, self._open_parts, self._assistants = self._open_parts, AsyncExitStack(), Shared()
        await parts.aclose()

    async def _open(self) -> Assistants:
        return await self._open_parts.enter_async_context(opened(self._settings, by_meaning=True))

    def _language(self, named: str | None) -> str:
        return named_language(named, self._settings.languages) if named else ""


class HttpBackend:
    """The same over a running service; `url` is its address, with or without /v1."""

    def __init__(self, url: str, api_key: str = "") -> None:
        self._url = f"{url.rstrip('/').removesuffix('/v1')}/v1"
        try:
            host = httpx.URL(self._url).host
        except httpx.InvalidURL as error:
            raise SettingsError(f"{masked(url)} isn't the address of a service: {error}.") from error
        if not host:
            raise SettingsError(f"{masked(url)} isn't the address of a service: write it as http://localhost:8000.")
        self._headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
        self._client: httpx.AsyncClient | None = None

    async def search(self, body: SearchRequest) -> SearchResult:
        """The passages."""
        return await self._post("search", body, TypeAdapter(SearchResult), SEARCH_SECONDS)

    async def answer(self, body: ChatRequest) -> Answer:
        """The answer to the question."""
        completion = await self._post("chat/completions", body, TypeAdapter(ChatCompletion), ANSWER_SECONDS)
        text = completion["choices"][0]["message"]["content"]
        return Answer(text, completion["sources"], completion.get("extractive", False))

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    async def _post(self, path: str, body: RequestModel, answer: TypeAdapter[T], seconds: float) -> T:
        address, content = f"{masked(self._url)}/{path}", body.model_dump(exclude_none=True)
        self._client = self._client or httpx.AsyncClient(headers=self._headers)
        try:
            response = await self._client.post(
                f"{self._url}/{path}", json=content, timeout=httpx.Timeout(seconds, connect=10)
            )
        except httpx.HTTPError as error:
            raise StoreUnavailable(f"{address} can't be reached: {error or type(error).__name__}.") from error
        try:
            if response.status_code != 200:
                raise _error(address, response)
            return answer.validate_json(response.content)
        except ValidationError as error:
            kind = StoreUnavailable if response.status_code >= 500 else StoreError
            raise kind(
                f"{address} answered {response.status_code}, not as Docs Assistant does. Check the address."
            ) from error


def _error(address: str, response: httpx.Response) -> AssistantError:
    """The error that the service raised, by its type and code. Raises `ValidationError` for a body of another server."""
    told = TypeAdapter(ErrorBody).validate_json(response.content)["error"]
    message = f"{address}: {told['message']}"
    if told["type"] == "invalid_request_error":
        return RequestError(message, param=told["param"], code=told["code"])
    if told["type"] == "rate_limit_error":
        seconds = response.headers.get("retry-after", "")
        return ModelRateLimited(message, retry_after=float(seconds) if seconds.isdecimal() else None)
    for kind, (_, code, _) in SERVER_ERRORS.items():
        if code == told["code"] and issubclass(kind, AssistantError):
            return kind(message)
    return (StoreUnavailable if response.status_code == 503 else AssistantError)(message)


def open_backend(address: str | Settings, api_key: str = "") -> IndexBackend | HttpBackend:
    """The service at an address with http(s), else the index at another address, or the one that is configured.

    Opens no connection yet. Raises `SettingsError` for invalid settings.
    """
    if isinstance(address, Settings):
        return IndexBackend(address)
    if address.startswith(("http://", "https://")):
        return HttpBackend(address, api_key)
    return IndexBackend(Settings.load(store=address) if address else Settings.load())


class Index:
    """An index that a program searches and asks in its own process, without a service. Use it in one event loop.

    `options` of both methods are fields of `/v1/search`: `filters`, `language` and `model` (the assistant whose pages are
    searched). All failures are `AssistantError`s.
    """

    def __init__(self, backend: IndexBackend | HttpBackend) -> None:
        self._backend = backend

    async def search(self, query: str, limit: int | None = None, **options: Any) -> Sequence[Passage]:
        """The passages that `POST /v1/search` returns, best first, at most `limit`; calls no language model."""
        body = validated(SearchRequest, {**options, "query": query, "limit": limit}, "The arguments")
        return (await self._backend.search(body))["data"]

    async def answer(self, question: str, **options: Any) -> Answer:
        """The answer of the assistant in Markdown, with the sections that it cites."""
        body = validated(
            ChatRequest, {"model": "", **options, "messages": [{"role": "user", "content": question}]}, "The arguments"
        )
        return await self._backend.answer(body)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._backend.close()


def open_index(where: Settings | str = "") -> Index:
    """Opens an index for `async with`: a directory, opensearch://host:9200/index, or `Settings`; by default the one of DOCS_STORE.

    The address of a running service is searched over HTTP. Store and models are opened with the first call, and closed at
    the end. Raises `SettingsError` for invalid settings.
    """
    return Index(open_backend(where))

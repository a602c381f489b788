"""Searches over HTTP: a client of a running service."""

from typing import TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from app.api.answer_models import ChatCompletion, ErrorBody, SearchResult
from app.api.bodies import ChatRequest, RequestModel, SearchRequest
from app.api.errors import SERVER_ERRORS
from app.core.errors import AssistantError, ModelRateLimited, RequestError, SettingsError, StoreError, StoreUnavailable
from app.core.log_message import masked
from app.retriever.backend import Answer

SEARCH_SECONDS = 30.0
ANSWER_SECONDS = 300.0  # the service has shorter limits of its own

T = TypeVar("T")


class HttpBackend:
    """See `app.retriever.backend.Backend`. `url` is the address of a service, with or without /v1."""

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
        return Answer(
            completion["choices"][0]["message"]["content"], completion["sources"], completion.get("extractive", False)
        )

    async def close(self) -> None:
        """Close all connections."""
        client, self._client = self._client, None
        if client:
            await client.aclose()

    async def _post(self, path: str, body: RequestModel, answer: TypeAdapter[T], seconds: float) -> T:
        address, limits = f"{masked(self._url)}/{path}", httpx.Timeout(seconds, connect=10)
        self._client = self._client or httpx.AsyncClient(headers=self._headers)
        try:
            response = await self._client.post(
                f"{self._url}/{path}", json=body.model_dump(exclude_none=True), timeout=limits
            )
        except httpx.TimeoutException as error:
            raise StoreUnavailable(f"{address} did not answer within {seconds:g} s.") from error
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

"""Language models and embedders on any OpenAI-compatible server.

Uses aiohttp: httpx, and so the official client, scans its whole connection pool for each request and
becomes unusable at a hundred open streams.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from types import MappingProxyType
from typing import Any, Self
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

import aiohttp
import orjson

from app.core import spans
from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable
from app.core.log_message import upstream_headers
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector
from app.models import responses
from app.models.protocols import CallOptions, recorded_name
from app.models.responses import ThinkFilter

CONNECT_TIMEOUT = 10.0
HINTS: Mapping[int, str] = MappingProxyType(
    {
        401: " Check the key.",
        403: " Check the key.",
        404: " Check the name of the model, and the address, which usually ends in /v1.",
    }
)
PROBE_TIMEOUT = 5.0
TOGETHER = 0.04
"""Seconds in which the pieces of a text that runs are gathered. Passing one on costs the same however long it is; a reader sees
25 steps a second. vLLM (`--stream-interval`) and SGLang do so by the number of tokens."""
RUNS = 100  # characters from which on a text runs: before, each piece may be the first that readers see
FEW = 3  # pieces that arrive together; of more, enough are gathered already


class Endpoint:
    """A server address with its API key. Posts JSON and raises every failure as a `ModelError`."""

    def __init__(self, url: str, key: str = "", *, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._session: aiohttp.ClientSession | None = None

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None or self._session.closed:
            # not trust_env: aiohttp would read the environment and .netrc in a thread for each request
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=self._headers, proxy=_proxy(self.url)
            )
        return self._session

    @asynccontextmanager
    async def post(
        self, path: str, body: Mapping[str, Any], *, wait: float | None = None, total: float | None = None
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """Context of a response with status 200. `wait` limits each wait for data, `total` the whole call, in seconds."""
        address = f"{self.url}/{path}"
        limits = aiohttp.ClientTimeout(total=total, sock_connect=CONNECT_TIMEOUT, sock_read=wait or self.timeout)
        headers = {"Content-Type": "application/json", **upstream_headers()}
        spans.outgoing(headers, self.url)
        with _failures(address, total or wait or self.timeout):
            async with await self._send(address, data=orjson.dumps(body), headers=headers, timeout=limits) as response:
                if response.status != 200:
                    raise await _status_error(address, response)
                yield response

    async def probe(self) -> None:
        """Ask for the list of models, which costs nothing; a server without one may answer 404.

        Raises `ModelUnavailable` or `ModelTimeout` if the server doesn't answer, and `ModelError` if it refuses the key.
        """
        address = f"{self.url}/models"
        limit = aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
        with _failures(address, PROBE_TIMEOUT):
            async with self._open().get(address, timeout=limit, allow_redirects=False) as response:
                if response.status >= 500 or response.status in {401, 403}:
                    raise await _status_error(address, response)

    async def _send(self, address: str, **request: Any) -> aiohttp.ClientResponse:
        try:
            return await self._open().post(address, **request)
        except aiohttp.ServerDisconnectedError:  # the server closed an idle connection while it was being reused
            return await self._open().post(address, **request)

    async def close(self) -> None:
        """Close all connections."""
        if self._session:
            await self._session.close()


def _reason(error: Exception) -> str:
    """The reason why there is no connection, without what aiohttp repeats of the address."""
    cause = getattr(error, "os_error", error)
    if isinstance(cause, ConnectionError) and cause.errno:
        return os.strerror(cause.errno)
    return str(error) or type(error).__name__


def _proxy(url: str) -> str | None:
    """The proxy for this address from HTTPS_PROXY, HTTP_PROXY and NO_PROXY."""
    parts = urlsplit(url)
    return None if parts.hostname and proxy_bypass(parts.hostname) else getproxies().get(parts.scheme)


@contextmanager
def _failures(address: str, seconds: float) -> Iterator[None]:
    """Context in which failures of aiohttp become `ModelError`s."""
    try:
        yield
    except TimeoutError as error:
        raise ModelTimeout(f"{address} did not answer within {seconds:g} s.") from error
    except (aiohttp.ClientConnectionError, OSError) as error:
        raise ModelUnavailable(f"{address} can't be reached: {_reason(error)}. Is the server running?") from error
    except aiohttp.ClientError as error:
        raise ModelUnavailable(f"{address} broke off its answer: {error or type(error).__name__}.") from error


async def _status_error(address: str, response: aiohttp.ClientResponse) -> ModelError:
    body, status = await responses.read_error(response), response.status
    message = f"{address} answered {status}: {body.strip()[:300] or 'nothing'}.{HINTS.get(status, '')}"
    if status == 429:
        return ModelRateLimited(message, retry_after=responses.retry_after(response.headers.get("Retry-After", "")))
    return (
        ModelTimeout(message)
        if status in {408, 504}
        else ModelUnavailable(message)
        if status >= 500
        else ModelError(message)
    )


class OpenAIModel:
    """A chat model at `<url>/chat/completions`."""

    provider = "openai"

    def __init__(self, endpoint: Endpoint, name: str, extra_body: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._endpoint = endpoint
        self.probe = endpoint.probe
        self._extra = dict(extra_body or {})

    def _body(self, messages: Sequence[Message], options: CallOptions, **more: Any) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.name,
            "messages": [{"role": m.role, "content": m.content} for m in messages],
            "temperature": options.temperature,
            "max_tokens": options.max_tokens,
            "stop": list(options.stop) or None,
            "seed": options.seed,
            **more,
            **self._extra,
        }
        return {key: value for key, value in body.items() if value is not None}

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, without reasoning."""
        body = self._body(messages, options)
        total = options.timeout or self._endpoint.timeout
        async with self._endpoint.post("chat/completions", body, total=total, wait=total) as response:
            answer = responses.completion(await responses.read_body(response), self._endpoint.url)
        return replace(answer, text=ThinkFilter.remove(answer.text))

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        """Stream the answer; closing the iterator cancels the upstream call."""
        body = self._body(messages, options, stream=True, stream_options={"include_usage": True})
        think = ThinkFilter()
        finish, length = "", 0
        async with self._endpoint.post("chat/completions", body, wait=options.timeout) as response:
            async for pieces in _stream_pieces(response, self._endpoint.url):
                finish = next((piece.finish for piece in reversed(pieces) if piece.finish), finish)
                for event in _events(pieces, think):
                    yield event
                length += sum(len(piece.text) for piece in pieces)
                if length > responses.TEXT_LENGTH:
                    raise ModelError(
                        f"{self._endpoint.url} doesn't end its answer: over {responses.TEXT_LENGTH} characters."
                    )
        for event in think.flush():
            yield event
        if not finish:
            raise ModelUnavailable(f"{self._endpoint.url} broke off in mid-answer.")
        yield Done("length" if finish == "length" else "stop")

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()


def _events(pieces: Iterable[responses.Piece], think: ThinkFilter) -> Iterator[Text | Reasoning | Usage]:
    """The pieces as events; adjacent texts become one, because passing each on costs more than the text itself."""
    text = ""
    for piece in pieces:
        other: list[Usage | Reasoning] = [piece.usage] if piece.usage is not responses.NO_USAGE else []
        if piece.reasoning:
            other.append(Reasoning(piece.reasoning))
        if other and text:
            yield from think.feed(text)
            text = ""
        yield from other
        text += piece.text
    if text:
        yield from think.feed(text)


async def _stream_pieces(response: aiohttp.ClientResponse, url: str) -> AsyncIterator[list[responses.Piece]]:
    """The pieces of an event stream, in lists that arrived together: line by line costs twice the CPU."""
    rest, received, length = b"", 0, 0
    async for data in response.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        received += len(data)
        pieces: list[responses.Piece] = []
        for line in lines:
            if not line.startswith(b"data:"):
                continue
            payload = line[5:].strip()
            if payload == b"[DONE]":
                yield pieces
                return
            try:
                pieces.append(responses.piece(payload, url))
            except ModelError:
                yield pieces  # the pieces before the broken one are still delivered
                raise
        yield pieces
        if len(rest) > responses.LINE_BYTES or received > responses.STREAM_BYTES:
            raise ModelError(f"{url} sends a stream, or one line of it, without end ({received} bytes so far).")
        length += sum(len(piece.text) for piece in pieces)
        if length > RUNS and len(pieces) <= FEW:
            await asyncio.sleep(TOGETHER)


class OpenAIEmbedder:
    """An embedding model at `<url>/embeddings`. Prefixes and length limit depend on the model."""

    provider = "openai"

    def __init__(
        self,
        endpoint: Endpoint,
        name: str,
        *,
        prefixes: tuple[str, str] = ("", ""),
        max_chars: int = 8000,
        extra_body: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = recorded_name(name, prefixes[1], extra_body)
        self._model = name
        self._endpoint = endpoint
        self.probe = endpoint.probe
        self._query_prefix, self._passage_prefix = prefixes
        self._max_chars = max_chars
        self._extra = dict(extra_body or {})
        self._dimension = 0
        self._first = asyncio.Lock()

    async def dimension(self) -> int:
        """Length of the vectors; calls the server once."""
        async with self._first:
            if not self._dimension:
                await self._embed(["dimension"])
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        return await self._embed([self._query_prefix + text for text in texts])

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        return await self._embed([self._passage_prefix + text for text in texts])

    async def _embed(self, texts: Sequence[str]) -> list[Vector]:
        body = {"model": self._model, "input": [text[: self._max_chars] for text in texts], **self._extra}
        async with self._endpoint.post("embeddings", body, total=self._endpoint.timeout) as response:
            answer = await responses.read_body(response, responses.WHOLE_BYTES + len(texts) * responses.ROW_BYTES)
        vectors = responses.embeddings(answer, len(texts), self._endpoint.url)
        self._dimension = len(vectors[0]) if vectors else self._dimension
        return vectors

    async def close(self) -> None:
        """Close all connections."""
        await self._endpoint.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

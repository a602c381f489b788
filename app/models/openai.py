"""Any OpenAI-compatible server; LlamaIndex's classes over it are in `openai_chat` and `openai_embedder`.

Uses aiohttp: httpx, and so the official client, scans its whole connection pool for each request and
becomes unusable at a hundred open streams.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass
from weakref import WeakKeyDictionary

import aiohttp
import orjson

from app.core import spans
from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable
from app.core.log_message import upstream_headers
from app.core.retries import retry_after
from app.models import responses

CONNECT_TIMEOUT = 10.0
HINTS: Mapping[int, str] = {
    401: " Check the key.",
    403: " Check the key.",
    404: " Check the name of the model, and the address, which usually ends in /v1.",
}
PROBE_TIMEOUT = 5.0


class Endpoint:
    """A server address with its API key. Posts JSON and raises every failure as a `ModelError`."""

    def __init__(self, url: str, key: str = "", *, timeout: float) -> None:
        self.url = url.rstrip("/")
        self.timeout = timeout
        self._headers = {"Authorization": f"Bearer {key}"} if key else {}
        self._sessions = WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession]()

    def _open(self) -> aiohttp.ClientSession:
        """The session of the running loop: callers that block have a loop of their own."""
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None or session.closed:
            # not trust_env: aiohttp would read the environment and .netrc in a thread for each request
            session = self._sessions[loop] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0), headers=self._headers, proxy=_proxy(self.url)
            )
        return session

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

    async def models(self) -> list[Any]:
        """The list of models, which costs nothing; empty if the server has none, or in another form.

        Raises `ModelUnavailable` or `ModelTimeout` if the server doesn't answer, and `ModelError` if it refuses the key.
        """
        address = f"{self.url}/models"
        limit = aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
        with _failures(address, PROBE_TIMEOUT):
            async with self._open().get(address, timeout=limit, allow_redirects=False) as response:
                if response.status >= 500 or response.status in {401, 403}:
                    raise await _status_error(address, response)
                return responses.listed(await responses.read_body(response)) if response.status == 200 else []

    async def beside(self, path: str, body: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        """The JSON object at a path beside `/v1`, by POST if there is a body; empty if there is none. Raises `ModelError`."""
        address, limit = f"{self.url.removesuffix('/v1')}/{path}", aiohttp.ClientTimeout(total=PROBE_TIMEOUT)
        with _failures(address, PROBE_TIMEOUT):
            asked = self._open().request(
                "POST" if body else "GET", address, json=body, timeout=limit, allow_redirects=False
            )
            async with asked as response:
                return responses.json_object(await responses.read_body(response)) if response.status == 200 else {}

    async def _send(self, address: str, **request: Any) -> aiohttp.ClientResponse:
        try:
            return await self._open().post(address, **request)
        except aiohttp.ServerDisconnectedError:  # the server closed an idle connection while it was being reused
            return await self._open().post(address, **request)

    async def close(self) -> None:
        """Close all connections of the running loop."""
        if session := self._sessions.pop(asyncio.get_running_loop(), None):
            await session.close()


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
    kind = (
        ModelRateLimited
        if status == 429
        else ModelTimeout
        if status in {408, 504}
        else ModelUnavailable
        if status >= 500
        else ModelError
    )
    return kind(message, status=status, body=body, retry_after=retry_after(response.headers.get("Retry-After", "")))


class OnServer:
    """A model behind an endpoint."""

    _endpoint: Endpoint

    async def probe(self) -> None:
        """See `Endpoint.models`."""
        await self._endpoint.models()

    async def aclose(self) -> None:
        """Close all connections of this event loop."""
        await self._endpoint.close()

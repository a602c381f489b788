"""The door of the service: the address of a client, what each request passes before its route, and what is logged at its end."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from ipaddress import ip_address, ip_network
from typing import Any, Literal, cast

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.core import spans
from app.core.errors import AssistantError, Overloaded, RequestError
from app.core.log_message import REQUEST_ID, LogMessage
from app.core.settings import is_loopback
from app.core.turn import AnswerRecord
from app.http.errors import api_error

_PROXY = "docs_assistant.proxy"
_PREFIX = re.compile(r"(/(?!\.)[\w.~-]+){1,8}", re.ASCII)


class ForwardedHeaders(ProxyHeadersMiddleware):
    """uvicorn's middleware for X-Forwarded-For and -Proto of trusted proxies, which takes X-Forwarded-Prefix too.

    A client that a proxy on another machine names can't be this machine, whose limits are wider: the proxy's address stays.
    """

    def __init__(self, app: ASGIApp, trusted_hosts: list[str]) -> None:
        async def serve(scope: Scope, receive: Receive, send: Send) -> None:
            proxy, client = scope.pop(_PROXY, None), scope.get("client")
            if proxy and client and is_loopback(client[0]) and not is_loopback(proxy[0]):
                scope["client"] = proxy
            await app(scope, receive, send)

        super().__init__(cast("Any", serve), trusted_hosts)

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Serve the request below the prefix."""
        client = scope.get("client")
        if scope["type"] == "http" and client and client[0] in self.trusted_hosts:
            prefix = Headers(scope=scope).get("x-forwarded-prefix", "").rstrip("/")
            if _PREFIX.fullmatch(prefix):
                scope |= {"root_path": prefix, "path": prefix + scope["path"]}
        scope[_PROXY] = client
        await super().__call__(scope, receive, send)


def route_path(scope: Scope) -> str:
    """The path without the prefix of a proxy, as routes have it."""
    return str(scope["path"]).removeprefix(scope.get("root_path", ""))


AddressDetail = Literal["full", "cut", "none"]


def logged_address(scope: Scope, how: AddressDetail) -> str:
    """The address of the client for the log: in full, cut to its network (/24 or /48), or empty."""
    address = _address(scope)
    return "" if how == "none" or not address else address if how == "full" else _cut(address, 24, 48)


def network(scope: Scope) -> str:
    """The part of the address that a client can't easily change: a whole IPv4 address, the /64 of an IPv6 address."""
    return _cut(_address(scope), 32, 64)


def is_own_machine(scope: Scope) -> bool:
    """True if the request comes from this machine, from where a proxy that isn't trusted may send those of all clients."""
    return not (address := _address(scope)) or is_loopback(address)


def _address(scope: Scope) -> str:
    client = scope.get("client")
    # a socket for IPv6 and IPv4 writes IPv4 addresses so, and all of them would be one network of IPv6
    return str(client[0]).removeprefix("::ffff:") if client else ""


@lru_cache(maxsize=1024)
def _cut(address: str, four: int, six: int) -> str:
    try:
        parsed = ip_address(address)
    except ValueError:  # a proxy's header, or the client of a test
        return address[:40]
    bits = four if parsed.version == 4 else six
    return str(ip_network(f"{parsed}/{bits}", strict=False))


log = logging.getLogger("app.http")
_VALID_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_KEY = "docs_assistant.request"
_NO_SNIFF = (b"x-content-type-options", b"nosniff")  # no browser takes an answer for a page
CLIENT_CLOSED_REQUEST = 499
API = "v1"
"""The first part of the path of what clients of OpenAI call."""
PROBES = frozenset({"/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that machines ask every few seconds: requests that succeed are logged at debug."""


@dataclass(slots=True)
class RequestInfo:
    """Data of a request in progress; `fields` are added to its log line, `headers` to its response. `answer` is None if the request asked for none,
    and `error` is what it failed with. `chosen`: the client sent the id.
    """

    id: str
    chosen: bool = False
    status: int = 0
    answer: AnswerRecord | None = None
    error: Exception | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


Watch = Callable[[Scope, RequestInfo, float], None]
Listen = Callable[[AnswerRecord], None]
Check = Callable[[Request], None]
Enter = Callable[[Request], Awaitable[Callable[[], None] | None]]
READY = "/health/ready"


def info_of(request: Request) -> RequestInfo:
    """The request's id and log fields."""
    info: RequestInfo = request.scope[_KEY]
    return info


class Door:
    """ASGI middleware: gives each request an id, lets it in if no check refuses it, answers errors, and logs one line.

    The id is the client's `x-request-id` if that is valid. `checks` raise an error for what may not come in; `enter` counts
    a request, and returns what ends the count. `client` sets how much of the client's address is logged. `watch` is
    called at the end of each request, with its duration in seconds, and `answered` with the record of its answer if it has one.
    """

    def __init__(
        self,
        app: ASGIApp,
        checks: Sequence[Check],
        enter: Enter,
        watch: Watch,
        answered: Listen,
        client: AddressDetail = "none",
    ) -> None:
        self._app = app
        self._checks = checks
        self._enter = enter
        self._watch = watch
        self._answered = answered
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        _fold_slashes(scope)
        info = scope[_KEY] = RequestInfo(*_request_id(scope))
        REQUEST_ID.set(info.id)
        spans.incoming(info.id, scope.get("query_string", b""))
        if client := logged_address(scope, self._client):
            info.fields["client"] = client
        began = time.perf_counter()
        leaving = _state(scope, "leaving")

        async def sender(message: Message) -> None:
            if message["type"] == "http.response.start":
                info.status = message["status"]
                headers = {"x-request-id": info.id, **info.headers}
                if info.answer and info.answer.age is not None:
                    headers["age"] = str(int(info.answer.age))
                own = ((name.encode(), value.encode()) for name, value in headers.items())
                message["headers"] = [*message.get("headers", ()), *own, _NO_SNIFF]
                if leaving:
                    MutableHeaders(scope=message)["connection"] = "close"
            await send(message)

        try:
            await self._serve(info, scope, receive, sender)
        finally:
            seconds = time.perf_counter() - began
            _log_line(scope, info, seconds * 1000)
            self._watch(scope, info, seconds)
            if info.answer:
                self._answered(info.answer)

    async def _serve(self, info: RequestInfo, scope: Scope, receive: Receive, send: Send) -> None:
        request, leave = Request(scope), None
        try:
            for check in self._checks:
                check(request)
            leave = await self._enter(request)
            await self._app(scope, receive, send)
        except ClientDisconnect:
            info.status = CLIENT_CLOSED_REQUEST
        except (Exception, asyncio.CancelledError) as error:
            told = _told(error, scope)
            if info.status or told is None:
                raise  # the status is already sent: the server closes the connection
            log_error(info, told)
            await api_error(told, info.id).response()(scope, receive, send)
        finally:
            if leave:
                leave()


def check_shutdown(request: Request) -> None:
    """Raises `HTTPException` for all requests while `app.state.stopping` is set, and while `leaving` is set for /health/ready,
    so that clients connect to another instance.
    """
    scope = request.scope
    if _state(scope, "stopping") or (_state(scope, "leaving") and route_path(scope) == READY):
        raise shutdown_error()


def _fold_slashes(scope: Scope) -> None:
    """Take doubled and last slashes out of the path of an API: clients join base addresses and paths as they come. Our own page of
    operators doesn't, and ids of chunks have such slashes.
    """
    path = route_path(scope)
    if "//" in path or path.endswith("/"):
        parts = [part for part in path.split("/") if part]
        if parts[:1] == [API] and parts[1:2] != ["admin"]:
            scope["path"] = "/".join((str(scope.get("root_path", "")), *parts))


def _state(scope: Scope, name: str) -> bool:
    return bool(getattr(scope["app"].state, name, False)) if "app" in scope else False


def shutdown_error() -> HTTPException:
    """The error for a request that arrives during shutdown or exceeds the drain timeout."""
    headers = {"retry-after": "5", "connection": "close"}
    return HTTPException(503, "The service is stopping. Try again in a few seconds.", headers)


def _told(error: BaseException, scope: Scope) -> Exception | None:
    """Returns the error that the client gets; None if the request was cancelled, unless the drain timeout is over."""
    if isinstance(error, Exception):
        return error
    return shutdown_error() if _state(scope, "stopping") else None


async def error_response(request: Request, error: Exception) -> Response:
    """Exception handler: an OpenAI error body with the status of the error."""
    info = info_of(request)
    log_error(info, error)
    return api_error(error, info.id).response()


def log_error(info: RequestInfo, error: Exception) -> None:
    """Log what the response leaves out: the full message, and a traceback for unexpected errors."""
    info.error = error
    if isinstance(error, RequestError) and error.code:
        info.fields["code"] = error.code
    if isinstance(error, RequestError | HTTPException):
        return
    info.fields["error"] = type(error).__name__
    if isinstance(error, Overloaded):
        return  # the gate logs overload once for many requests
    expected = isinstance(error, AssistantError)
    log.log(
        logging.WARNING if expected else logging.ERROR,
        LogMessage("failed", id=info.id, error=type(error).__name__, message=str(error)),
        exc_info=None if expected else error,
    )


def _request_id(scope: Scope) -> tuple[str, bool]:
    """The id, and whether the client chose it."""
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _VALID_ID.fullmatch(text := value.decode("latin-1")):
            return str(text), True
    return secrets.token_hex(12), False


def _log_line(scope: Scope, info: RequestInfo, ms: float) -> None:
    level = logging.DEBUG if route_path(scope) in PROBES and info.status < 400 else logging.INFO
    if not log.isEnabledFor(level):
        return
    answer = info.answer.fields() if info.answer else {}
    asked = {"method": scope["method"], "path": scope["path"], "status": info.status, "ms": round(ms, 1)}
    log.log(level, LogMessage("request", id=info.id, **{**asked, **answer, **info.fields}))

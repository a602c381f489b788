"""The outermost middleware: gives each request an id, logs one line for it, and turns unexpected errors into a 500."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import api_error
from app.api.middleware.admission import shutdown_error
from app.api.middleware.proxy_headers import AddressDetail, logged_address, route_path
from app.core import spans
from app.core.errors import AssistantError, Overloaded, RequestError
from app.core.log_message import REQUEST_ID, LogMessage
from app.core.turn import AnswerRecord

if TYPE_CHECKING:
    from app.api.keeping import Keeping

log = logging.getLogger("app.api")
_VALID_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_KEY = "docs_assistant.request"
_NO_SNIFF = (b"x-content-type-options", b"nosniff")  # no browser takes an answer for a page
CLIENT_CLOSED_REQUEST = 499
PROBES = frozenset({"/health", "/health/live", "/health/ready", "/metrics"})
"""Paths that machines ask every few seconds: requests that succeed are logged at debug."""


@dataclass(slots=True)
class RequestInfo:
    """Data of a request in progress; `fields` are added to its log line, `headers` to its response. `answer` is None if the request asked for none,
    and `error` is what it failed with. `chosen`: the client sent the id. `keeping` keeps the answer, unless it is None.
    """

    id: str
    chosen: bool = False
    status: int = 0
    answer: AnswerRecord | None = None
    keeping: Keeping | None = None
    error: Exception | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    headers: dict[str, str] = field(default_factory=dict)


Watch = Callable[[Scope, RequestInfo, float], None]


def info_of(request: Request) -> RequestInfo:
    """The request's id and log fields."""
    info: RequestInfo = request.scope[_KEY]
    return info


class RequestLog:
    """ASGI middleware. Uses the client's `x-request-id` as the id if it is valid.

    `client` sets how much of the client's address is logged. `watch` is called at the end of each request, with its
    duration in seconds.
    """

    def __init__(self, app: ASGIApp, watch: Watch, client: AddressDetail = "none") -> None:
        self._app = app
        self._watch = watch
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        info = scope[_KEY] = RequestInfo(*_request_id(scope))
        REQUEST_ID.set(info.id)
        spans.incoming(info.id, scope.get("query_string", b""))
        if client := logged_address(scope, self._client):
            info.fields["client"] = client
        began = time.perf_counter()

        async def sender(message: Message) -> None:
            if message["type"] == "http.response.start":
                info.status = message["status"]
                raw = [(name.encode(), value.encode()) for name, value in _headers(info).items()]
                message["headers"] = [*message.get("headers", ()), *raw, _NO_SNIFF]
            await send(message)

        try:
            await self._app(scope, receive, sender)
        except ClientDisconnect:
            info.status = CLIENT_CLOSED_REQUEST
        except (Exception, asyncio.CancelledError) as error:
            told = _told(error, scope)
            if info.status or told is None:
                raise  # the status is already sent: the server closes the connection
            log_error(info, told)
            await api_error(told, info.id).response()(scope, receive, sender)
        finally:
            seconds = time.perf_counter() - began
            _log_line(scope, info, seconds * 1000)
            self._watch(scope, info, seconds)


def _told(error: BaseException, scope: Scope) -> Exception | None:
    """Returns the error that the client gets; None if the request was cancelled, unless the drain timeout is over."""
    if isinstance(error, Exception):
        return error
    return shutdown_error() if getattr(scope["app"].state, "stopping", False) else None


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


def _headers(info: RequestInfo) -> dict[str, str]:
    headers = {"x-request-id": info.id, **info.headers}
    if info.answer and info.answer.age is not None:
        headers["age"] = str(int(info.answer.age))
    return headers


def _log_line(scope: Scope, info: RequestInfo, ms: float) -> None:
    level = logging.DEBUG if route_path(scope) in PROBES and info.status < 400 else logging.INFO
    if not log.isEnabledFor(level):
        return
    answer = info.answer.fields() if info.answer else {}
    asked = {"method": scope["method"], "path": scope["path"], "status": info.status, "ms": round(ms, 1)}
    log.log(level, LogMessage("request", id=info.id, **{**asked, **answer, **info.fields}))

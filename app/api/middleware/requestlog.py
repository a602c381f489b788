"""The outermost middleware: gives each request an id, logs one line for it, and turns unexpected errors into a 500."""

from __future__ import annotations

import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.api.errors import api_error
from app.api.middleware.clients import AddressDetail, logged_address
from app.core import spans
from app.core.errors import AssistantError, Overloaded, RequestError

log = logging.getLogger("app.api")
_VALID_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
_UNQUOTED = re.compile(r"[^\s\"'=]+")
_KEY = "docs_assistant.request"
CLIENT_CLOSED_REQUEST = 499
MAX_FIELD_CHARS = 200


@dataclass(slots=True)
class RequestInfo:
    """Data of a request in progress; `fields` are added to its log line."""

    id: str
    status: int = 0
    fields: dict[str, Any] = field(default_factory=dict)


def info_of(request: Request) -> RequestInfo:
    """The request's id and log fields."""
    info: RequestInfo = request.scope[_KEY]
    return info


class RequestLog:
    """ASGI middleware. Uses the client's `x-request-id` as the id if it is valid.

    `client` sets how much of the client's address is logged.
    """

    def __init__(self, app: ASGIApp, client: AddressDetail = "none") -> None:
        self._app = app
        self._client = client

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve the request and log it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        info = scope[_KEY] = RequestInfo(_request_id(scope))
        spans.incoming(info.id, scope.get("query_string", b""))
        if client := logged_address(scope, self._client):
            info.fields["client"] = client
        began = time.perf_counter()

        async def sender(message: Message) -> None:
            if message["type"] == "http.response.start":
                info.status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", info.id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sender)
        except ClientDisconnect:
            info.status = CLIENT_CLOSED_REQUEST
        except Exception as error:
            if info.status:
                raise  # the status is already sent: the server closes the connection
            log_error(info, error)
            await api_error(error, info.id).response()(scope, receive, sender)
        finally:
            _log_line(scope, info, (time.perf_counter() - began) * 1000)


async def error_response(request: Request, error: Exception) -> Response:
    """Exception handler: an OpenAI error body with the status of the error."""
    info = info_of(request)
    log_error(info, error)
    return api_error(error, info.id).response()


def log_error(info: RequestInfo, error: Exception) -> None:
    """Log what the response leaves out: the full message, and a traceback for unexpected errors."""
    if isinstance(error, RequestError | HTTPException):
        return
    info.fields["error"] = type(error).__name__
    if isinstance(error, Overloaded):
        return  # the gate logs overload once for many requests
    expected = isinstance(error, AssistantError)
    log.log(
        logging.WARNING if expected else logging.ERROR,
        "failed id=%s error=%s message=%s",
        info.id,
        type(error).__name__,
        _printable(str(error), 10 * MAX_FIELD_CHARS),
        exc_info=None if expected else error,
    )


def _request_id(scope: Scope) -> str:
    for name, value in scope["headers"]:
        if name == b"x-request-id" and _VALID_ID.fullmatch(text := value.decode("latin-1")):
            return str(text)
    return secrets.token_hex(12)


def _log_line(scope: Scope, info: RequestInfo, ms: float) -> None:
    if not log.isEnabledFor(logging.INFO):
        return
    more = "".join(f" {name}={_printable(value)}" for name, value in info.fields.items())
    path = _printable(scope["path"])
    log.info(
        "request id=%s method=%s path=%s status=%d ms=%.1f%s", info.id, scope["method"], path, info.status, ms, more
    )


def _printable(value: object, most: int = MAX_FIELD_CHARS) -> str:
    """The value as one word or a quoted string, so that clients can't forge log lines or fields."""
    text = str(value)
    text = text if len(text) <= most else f"{text[:most]}…"
    return text if _UNQUOTED.fullmatch(text) and text.isprintable() else repr(text)

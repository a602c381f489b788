"""Maps exceptions to HTTP statuses and OpenAI error bodies.

Messages of server errors may contain addresses and file names. Clients receive a generic sentence and the id of the
request instead; the log contains the original message under that id.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from random import randint
from typing import Annotated, Literal, NotRequired

import orjson
from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.responses import Response
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from app.core import errors

ErrorType = Literal["invalid_request_error", "rate_limit_error", "server_error"]


class ErrorObject(TypedDict):
    """The error, for people (`message`) and for programs (`code`)."""

    message: str
    type: ErrorType
    param: Annotated[str | None, Field(description="The invalid field, for example messages[0].content.")]
    code: str | None
    retry_after: NotRequired[Annotated[int, Field(description="Seconds to wait, as in the header Retry-After.")]]


class ErrorBody(TypedDict):
    """An error in the form of the OpenAI API."""

    error: ErrorObject


@dataclass(frozen=True, slots=True)
class ApiError:
    """An error as the API reports it: HTTP status, `error` object of the body, and headers."""

    status: int
    error: ErrorObject
    headers: Mapping[str, str] = field(default_factory=dict)

    @property
    def body(self) -> bytes:
        """`{"error": {...}}` as JSON."""
        error = self.error
        if wait := self.headers.get("retry-after"):  # an event of a stream has no headers
            error = {**error, "retry_after": int(wait)}
        body: ErrorBody = {"error": error}
        return orjson.dumps(body)

    def response(self) -> Response:
        """The HTTP response."""
        return Response(self.body, self.status, self.headers, "application/json")


SERVER_ERRORS: Mapping[type[Exception], tuple[int, str, str]] = {
    errors.Overloaded: (503, "overloaded", "The service is overloaded. Try again in a few seconds."),
    errors.StillReading: (503, "still_reading", "The pages are still being read."),
    errors.NoIndex: (503, "no_index", "Nothing has been indexed yet."),
    errors.IndexMismatch: (500, "index_mismatch", "The index doesn't match the configured embedder."),
    errors.StoreUnavailable: (503, "store_unavailable", "The index can't be reached at the moment."),
    errors.StoreError: (502, "store_error", "The index returned an unexpected response."),
    errors.ProviderError: (
        502,
        "sign_in_unavailable",
        "The OpenID Connect provider doesn't answer as it should. The log says more. Try again later.",
    ),
    errors.QuestionSetError: (
        500,
        "question_set_error",
        "The question set can't be read or written in the directory question-sets, where the service was started.",
    ),
    errors.DatabaseError: (503, "database_unavailable", "The conversations can't be reached at the moment."),
    errors.AnswerTimeout: (504, "timeout", "The answer took too long."),
    errors.ModelTimeout: (504, "model_timeout", "The language model took too long to answer."),
    errors.ModelUnavailable: (502, "model_unavailable", "The language model can't be reached at the moment."),
    errors.ModelError: (502, "model_error", "The language model returned no usable answer."),
    Exception: (500, "internal_error", "An internal error occurred."),
}
RETRY_AFTER_RANGE = (1, 5)
"""Range of seconds for Retry-After of an overloaded service; random, so that clients don't all return at once."""

READING_AGAIN = "10"  # seconds for Retry-After while a run fills the index

REQUEST_CODES: Mapping[str | None, int] = {
    "site_unreadable": 400,
    "invalid_api_key": 401,
    "invalid_signature": 401,
    "admin_disabled": 403,
    "conversations_disabled": 403,
    "feedback_disabled": 403,
    "key_refused": 403,
    "listing_refused": 403,
    "sharing_disabled": 403,
    "origin_refused": 403,
    "answer_not_found": 404,
    "chunk_not_found": 404,
    "conversation_not_found": 404,
    "index_not_found": 404,
    "key_not_found": 404,
    "link_not_found": 404,
    "model_not_found": 404,
    "no_log": 404,
    "page_not_found": 404,
    "passage_not_found": 404,
    "response_not_found": 404,
    "run_not_found": 404,
    "site_not_found": 404,
    "request_too_slow": 408,
    "key_file_refused": 409,
    "key_needed": 409,
    "rollback_refused": 409,
    "run_over": 409,
    "run_under_way": 409,
    "question_exists": 409,
    "site_exists": 409,
    "version_outdated": 409,
    "too_long": 413,
    "url_too_long": 414,
    "not_json": 415,
    "unknown_encoding": 415,
    "host_refused": 421,
    "wrong_keys": 429,
    "head_too_large": 431,
    "mcp_missing": 501,
}
REQUEST_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    429: {"retry-after": "6"},
}
HTTP_MESSAGES: Mapping[int, str] = {
    404: "There is nothing at this address. The OpenAI API is below /v1/, such as /v1/chat/completions.",
    405: "This address doesn't support this method.",
}


def api_error(error: Exception, request_id: str) -> ApiError:
    """The status, body and headers for any exception."""
    match error:
        case errors.LimitReached():
            body = _body(str(error), "rate_limit_error", error.code)
            return ApiError(429, body, {"retry-after": str(error.retry_after), **error.headers})
        case errors.RequestError():
            status = REQUEST_CODES.get(error.code, 400)
            body = _body(str(error), "invalid_request_error", error.code, error.param)
            return ApiError(status, body, REQUEST_HEADERS.get(status, {}))
        case HTTPException():
            message = HTTP_MESSAGES.get(error.status_code, error.detail)
            kind: ErrorType = "invalid_request_error" if error.status_code < 500 else "server_error"
            return ApiError(error.status_code, _body(message, kind), error.headers or {})
        case errors.ModelRateLimited():
            wait = None if error.retry_after is None else max(1, math.ceil(error.retry_after))
            soon = "" if wait is None else f" Try again in {wait} s."
            message = f"The language model is overloaded at the moment.{soon} (request {request_id})"
            body = _body(message, "rate_limit_error", "rate_limit_exceeded")
            return ApiError(429, body, {} if wait is None else {"retry-after": str(wait)})
        case errors.StillReading():
            return ApiError(503, _body(str(error), "server_error", "still_reading"), {"retry-after": READING_AGAIN})
        case _:
            status, code, sentence = next(SERVER_ERRORS[kind] for kind in type(error).__mro__ if kind in SERVER_ERRORS)
            again = {"retry-after": str(randint(*RETRY_AFTER_RANGE))} if code == "overloaded" else {}  # noqa: S311  # no secret
            return ApiError(status, _body(f"{sentence} (request {request_id})", "server_error", code), again)


def _body(message: str, kind: ErrorType, code: str | None = None, param: str | None = None) -> ErrorObject:
    return {"message": message, "type": kind, "param": param, "code": code}

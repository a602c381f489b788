"""Reads the body of a request as a model, and says in words what is wrong with it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import orjson
from pydantic import ValidationError

from app.api.request_models import RequestModel
from app.core.errors import ECHOED, RequestError

Body = TypeVar("Body", bound=RequestModel)


def parse(kind: type[Body], body: bytes) -> Body:
    """The body as this model. Raises `RequestError` that names the first invalid field."""
    try:
        return validated(kind, orjson.loads(body))
    except orjson.JSONDecodeError as error:
        raise RequestError(f"The body isn't valid JSON: {error}.", code="invalid_json") from error


def validated(kind: type[Body], values: Any, whole: str = "The body") -> Body:
    """The values as this model. Raises `RequestError` that names the first invalid field; `whole` names the values."""
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False, include_input=False)[0]
        param = _param(first["loc"])[:ECHOED]
        raise RequestError(f"{param or whole}: {_reason(param, first['msg'])}.", param=param or None) from error


# pydantic adds the branch of a union to the location of an error, which means nothing to clients
_UNIONS = {
    "input": "must be a string or a list of messages, at least one",
    "content": "must be a string or a list of parts of a known type",
    "stop": "must be a string or a list of strings",
    "prompts": "must be the texts of prompts by file, or 'shipped'",
    "conversation": "must be the id of a conversation, or an object with it",
}
_REFUSED = {
    "response_format.type": "only text is supported, not JSON",
    "text.format.type": "only text is supported, not JSON",
    "page": "must be the address of a page, such as https://docs.example.org/guide/volumes",
    "background": "must be false; background responses aren't supported",
}


def _param(place: Sequence[int | str]) -> str:
    """`messages[0].content` for ("messages", 0, "content", "str")."""
    param = ""
    for i, key in enumerate(place):
        if i and place[i - 1] in _UNIONS:
            break
        param += f"[{key}]" if isinstance(key, int) else f".{key}" if param else key
    return param


def _reason(param: str, message: str) -> str:
    if param in _REFUSED:
        return _REFUSED[param]
    return _UNIONS.get(param.rpartition(".")[2]) or message[0].lower() + message[1:]

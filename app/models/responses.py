"""Reads the responses of model servers: limits their size and checks their types, or raises `ModelError`.

Sizes are those after decompression, which aiohttp does piece by piece as the body is read.
"""

import asyncio
import math
from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence, Sized
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import aiohttp
import numpy as np
import orjson
from numpy.typing import NDArray

from app.core.errors import ModelError, ModelUnavailable
from app.core.turn import Completion, Usage
from app.core.types import Vector

ERROR_BYTES = 65_536
ERROR_SECONDS = 5.0  # time to wait for the body of an error
WHOLE_BYTES = 16_000_000
ROW_BYTES = 500_000  # for one vector: 16,000 numbers
LINE_BYTES = 1_000_000  # for one line of a stream
STREAM_BYTES = 32_000_000
MAX_TOKENS = 2**31 - 1
MAX_COMPONENT = 1e30  # largest number in a vector: its norm must fit into 32 bits
NUMBERS = (int, float, np.number)
NO_USAGE = Usage()

T = TypeVar("T")


class Piece(NamedTuple):
    """The content of one event of a stream; missing parts are empty."""

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage = NO_USAGE


async def read_body(response: aiohttp.ClientResponse, most: int = WHOLE_BYTES) -> bytes:
    """The body. Raises `ModelError` as soon as it exceeds `most` bytes."""
    body = bytearray()
    async for data in response.content.iter_any():
        body += data
        if len(body) > most:
            raise ModelError(f"{response.url} sent over {most} bytes, more than a reply of its kind can have.")
    return bytes(body)


async def read_error(response: aiohttp.ClientResponse) -> str:
    """The first `ERROR_BYTES` of an error's body, as far as it could be read."""
    body = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(ERROR_SECONDS):
            async for data in response.content.iter_any():
                body += data
                if len(body) >= ERROR_BYTES:
                    break
    return body[:ERROR_BYTES].decode(errors="replace")


def completion(body: bytes, url: str) -> Completion:
    """The completion in this body, including reasoning. Raises `ModelError`."""
    try:
        parsed = _as(dict, orjson.loads(body), "reply")
        choice = _as(dict, _as(list, parsed["choices"], "choices")[0], "choice")
        text = _text(_as(dict, choice["message"], "message").get("content"))
        return Completion(
            text, usage_of(parsed.get("usage")), _as(str, choice.get("finish_reason") or "stop", "finish_reason")
        )
    except (ValueError, LookupError) as error:
        raise ModelError(f"{url} sent no chat completion ({error}): {body[:200]!r}") from error


def whole(body: bytes, url: str) -> Piece:
    """The answer of a server that sends it at once in place of a stream. Raises `ModelError`, which names what it sends instead."""
    choice = next(iter(_choices(json_object(body))), None)
    if not (isinstance(choice, dict) and "message" in choice and choice.get("finish_reason")):
        form = "a page of HTML" if body.lstrip()[:1] == b"<" else "JSON without `data:` (NDJSON)"
        raise ModelError(
            f"{url} sends {form} in place of server-sent events. Check the address, which usually ends in /v1: {body[:200]!r}"
        )
    answer = completion(body, url)
    return Piece(answer.text, finish=answer.finish_reason, usage=answer.usage)


def _choices(answer: Mapping[str, Any]) -> list[Any]:
    choices = answer.get("choices")
    return choices if isinstance(choices, list) else []


def pieces(payloads: Sequence[bytes], url: str) -> Iterator[Piece]:
    """The events of a stream that came together. Raises `ModelError` at the first that is broken, after those before it."""
    events: list[Any] = []
    with suppress(orjson.JSONDecodeError):  # parsed at once, which takes half the time of one by one
        events = orjson.loads(b"[%b]" % b",".join(payloads))
    if len(events) != len(payloads):
        yield from (_piece(_parsed(payload, url), payload, url) for payload in payloads)
        return
    for event, payload in zip(events, payloads, strict=True):
        yield _piece(event, payload, url)


def _parsed(payload: bytes, url: str) -> Any:
    try:
        return orjson.loads(payload)
    except orjson.JSONDecodeError as error:
        raise ModelError(f"{url} sent a broken event: {payload[:200]!r}") from error


def _piece(event: Any, payload: bytes, url: str) -> Piece:
    if not isinstance(event, dict) or event.get("error"):
        told = payload[:ERROR_BYTES].decode(errors="replace")
        raise ModelUnavailable(f"{url} failed in mid-answer: {told[:300]}", status=500, body=told)
    text = reasoning = finish = ""
    try:
        for choice in event.get("choices") or ():
            delta = choice.get("delta") or _nothing_said(choice)
            content = delta.get("content")
            text += content if type(content) is str else _text(content)
            if thought := delta.get("reasoning_content") or delta.get("reasoning"):
                reasoning += str(thought)
            if reason := choice.get("finish_reason"):
                finish = _as(str, reason, "finish_reason")
    except (ValueError, AttributeError, TypeError) as error:  # a part is of another type
        raise ModelError(f"{url} sent an odd event ({error}): {payload[:200]!r}") from error
    return Piece(text, reasoning, finish, usage_of(event["usage"]) if event.get("usage") else NO_USAGE)


def _nothing_said(choice: Mapping[str, Any]) -> Mapping[str, Any]:
    """The delta of a choice that has an empty one. Raises `ValueError` if the text is elsewhere."""
    if "delta" not in choice and (place := next((name for name in ("message", "text") if choice.get(name)), "")):
        raise ValueError(f"its text is in `{place}` in place of `delta`: this isn't a stream of the chat API")
    return {}


def usage_of(usage: Any) -> Usage:
    """The token counts in a mapping or object. An invalid count is 0, because the answer doesn't depend on it."""
    read = usage.get if isinstance(usage, dict) else lambda name: getattr(usage, name, 0)
    return Usage(_count(read("prompt_tokens")), _count(read("completion_tokens")))


def json_object(body: bytes) -> dict[str, Any]:
    """The JSON object in this body; empty if it is none."""
    try:
        found = orjson.loads(body)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def listed(body: bytes) -> list[Any]:
    """The models in this body; empty if it is no such list."""
    data = json_object(body).get("data")
    return data if isinstance(data, list) else []


def embeddings(body: bytes, count: int, url: str) -> list[Vector]:
    """The vectors in this body, in the order of the texts, as numbers or as base64 of 32 bits each. Raises `ModelError`.

    Rows without an index are in that order.
    """
    try:
        data = _as(list, _as(dict, orjson.loads(body), "reply")["data"], "data")
        numbered = any("index" in _as(dict, row, "row") for row in data)
        rows = [row["embedding"] for row in (_in_order(data, count) if numbered else data)]
        return vectors([_numbers(row) if isinstance(row, str) else row for row in rows], count, url)
    except (ValueError, LookupError) as error:
        raise ModelError(f"{url} sent no embeddings of {count} texts ({error}): {body[:200]!r}") from error


def _numbers(encoded: str) -> NDArray[np.float32]:
    return np.frombuffer(b64decode(encoded), "<f4")


def vectors(rows: Sequence[Any], count: int, of: str) -> list[Vector]:
    """The rows, if they are `count` vectors of equal length with finite numbers. Raises `ModelError`."""
    lengths = {len(row) for row in rows if isinstance(row, Sized)}
    if len(rows) != count or len(lengths) != 1 or lengths == {0}:
        raise ModelError(f"{of} sent {len(rows)} vectors of lengths {sorted(lengths)[:10]} for {count} texts.")
    try:
        # check types first: numpy would convert strings to an array as wide as the longest one
        kinds = set[type]().union(*((np.float32,) if isinstance(row, np.ndarray) else map(type, row) for row in rows))
        good = all(issubclass(kind, NUMBERS) and kind is not bool for kind in kinds)
        if good and bool((np.abs(np.asarray(rows, dtype=np.float64)) < MAX_COMPONENT).all()):
            return list(rows)
    except (TypeError, ValueError, OverflowError):
        pass
    raise ModelError(f"{of} sent vectors with something else than finite numbers.")


def scores(body: bytes, count: int, url: str) -> list[float]:
    """The scores in this body, in the order of the passages; reads all supported APIs. Raises `ModelError`."""
    try:
        parsed = orjson.loads(body)
        rows = parsed.get("results", parsed.get("data")) if isinstance(parsed, dict) else parsed
        return [_score(row) for row in _in_order(rows, count)]
    except (ValueError, LookupError) as error:
        raise ModelError(f"{url} sent no scores of {count} passages ({error}): {body[:200]!r}") from error


def _in_order(rows: Any, count: int) -> list[dict[str, Any]]:
    """The rows sorted by their index, which must be 0 to count - 1. Raises `ValueError`."""
    by_index = {_as(int, _as(dict, row, "row")["index"], "index"): row for row in _as(list, rows, "list of rows")}
    if len(rows) != count or set(by_index) != set(range(count)):
        raise ValueError(f"{len(rows)} rows of the indices {sorted(by_index)[:10]}")
    return [by_index[index] for index in range(count)]


def _score(row: dict[str, Any]) -> float:
    score = row["relevance_score"] if "relevance_score" in row else row["score"]
    if isinstance(score, bool) or not isinstance(score, int | float) or not math.isfinite(score):
        raise ValueError(f"the score {score!r} isn't a number")
    return float(score)


def _text(content: Any) -> str:
    """The text of a message, which may be a list of parts."""
    if content is None or isinstance(content, str):
        return content or ""
    parts = [_as(dict, part, "part of the content") for part in _as(list, content, "content")]
    return "".join(_as(str, part.get("text"), f"part of type {part.get('type')!r:.50}") for part in parts)


def _count(value: Any) -> int:
    numeric = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if numeric and 0 <= value <= MAX_TOKENS else 0


def _as(kind: type[T], value: Any, name: str) -> T:
    if type(value) is kind or (isinstance(value, kind) and not isinstance(value, bool)):
        return value
    raise ValueError(f"the {name} is {type(value).__name__}, not {kind.__name__}")

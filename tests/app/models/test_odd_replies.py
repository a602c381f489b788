"""Replies that no model should send, from a real server: each is a `ModelError`, in bounded memory, and has its fallback."""

from __future__ import annotations

import asyncio
import gzip
import resource
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from email.utils import formatdate
from itertools import cycle
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.embeddings import BaseEmbedding

from app.core.errors import ModelError, ModelRateLimited
from app.core.retries import retry_after
from app.core.turn import Completion, Message, Text, Usage
from app.models.guarded import Embedder, Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.openai_embedder import OpenAIEmbedder
from app.models.postprocessor import Postprocessor
from app.models.protocols import CallOptions
from app.models.rerank import HttpReranker
from tests.app.pipeline.turns import hit
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import Reply

QUESTION = [Message("user", "How much memory?")]
MB = 2**20


@asynccontextmanager
async def serving(reply: Iterable[bytes]) -> AsyncIterator[str]:
    """The address of a server that writes these bytes to whoever asks, as far as they are taken."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        await reader.readexactly(length)
        try:
            for piece in reply:
                writer.write(piece)
                await writer.drain()
        except ConnectionError:
            pass
        finally:
            writer.transport.abort()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


def http(body: bytes, status: str = "200 OK", *headers: str) -> list[bytes]:
    lines = [f"HTTP/1.1 {status}", "Connection: close", *headers]
    return ["\r\n".join(lines).encode("latin-1") + b"\r\n\r\n", body]


def said(content: bytes, more: bytes = b"") -> bytes:
    return b'{"choices": [{"message": {"content": ' + content + b"}}]" + more + b"}"


def event(delta: bytes) -> bytes:
    return b'data: {"choices": [{"delta": ' + delta + b"}]}\n\n"


@asynccontextmanager
async def opened(kind: Callable[[Endpoint, str], Any], reply: Iterable[bytes]) -> AsyncIterator[Any]:
    """A client of this kind, of a server that gives this reply."""
    async with serving(reply) as url:
        made = kind(Endpoint(url, timeout=60), "m")
        try:
            yield made
        finally:
            await made.close()


async def completed(reply: Iterable[bytes]) -> Completion:
    async with opened(lambda *of: Model(OpenAIModel(*of)), reply) as model:
        return await model.complete(QUESTION, CallOptions())


async def streamed(reply: Iterable[bytes]) -> str:
    async with opened(lambda *of: Model(OpenAIModel(*of)), reply) as model:
        pieces = model.stream(QUESTION, CallOptions())
        return "".join([piece.text async for piece in pieces if isinstance(piece, Text)])


async def embedded(reply: Iterable[bytes]) -> list[list[float]]:
    async with opened(lambda *of: Embedder(OpenAIEmbedder(*of), 60), reply) as embedder:
        return [list(vector) for vector in await embedder.embed_passages(["a", "b"])]


async def reranked(reply: Iterable[bytes]) -> list[float]:
    async with opened(lambda *of: Postprocessor(HttpReranker(*of), "m", ""), reply) as model:
        chosen = await model.chosen("How much?", [hit(1), hit(2)], "0..1", 60)
        return [one.rerank for one in sorted(chosen, key=lambda one: one.chunk.id)]


NO_CHOICES = (b"7", b"[]", b"null", *(b'{"choices": ' + odd + b"}" for odd in (b"{}", b'["x"]', b'"x"', b"[[]]")))
CONTENTS = (b"7", b"true", b"{}", b'["x"]', b'[{"type": "image_url"}]', b'[{"text": 7}]', b'"\\ud83d"', b'"\xff"')


async def test_odd_answers_are_model_errors():
    bodies = [*NO_CHOICES, *map(said, CONTENTS), b"<html>oops</html>", b'{"choices": []}', b"[" * 5000, b"{}"]
    bodies += [said(b"null", b', "choices": [{}]'), b'{"choices": [{"message": {}, "finish_reason": 7}]}']
    for body in bodies:
        with pytest.raises(ModelError, match="no chat completion"):
            await completed(http(body))
    events = [event(b'{"content": ' + content + b"}") for content in CONTENTS]
    for body in [*(b"data: " + odd + b"\n\n" for odd in NO_CHOICES), event(b"7"), *events]:
        with pytest.raises(ModelError):
            await streamed(http(event(b'{"content": "Eight"}') + body))
    for encoding in ("gzip", "deflate"):
        with pytest.raises(ModelError):
            await completed(http(said(b'"not packed"'), "200 OK", f"Content-Encoding: {encoding}"))


async def test_an_answer_in_parts_is_read_and_counts_that_cant_be_are_nought():
    parts = b'[{"type": "text", "text": "Eight "}, {"type": "text", "text": "GB."}]'
    assert (await completed(http(said(parts)))).text == "Eight GB."
    end = event(b"{}").replace(b"}]", b', "finish_reason": "stop"}]')
    assert await streamed(http(event(b'{"content": ' + parts + b"}") + end)) == "Eight GB."
    for count in (b"-1", b"1" + b"0" * 40, b'"7"', b"true", b"null", b"[]", b"9007199254740993"):
        usage = b', "usage": {"prompt_tokens": 3, "completion_tokens": ' + count + b"}"
        assert (await completed(http(said(b'"Eight"', usage)))).usage == Usage(3, 0), count
    for usage in (b"7", b'"x"', b"[1]", b"null"):
        assert (await completed(http(said(b'"Eight"', b', "usage": ' + usage)))).usage == Usage(), usage


def stream(*pieces: bytes, kind: str = "text/event-stream") -> list[bytes]:
    return http(b"".join(pieces), "200 OK", f"Content-Type: {kind}")


DELTA = b'{"choices": [{"index": 0, "delta": {"content": "8 GB"}, "finish_reason": null}]}\n'
OLLAMA = b'{"model": "m", "message": {"role": "assistant", "content": "8 GB"}, "done": false}\n'
WHOLE = b'{"choices": [{"message": {"content": "8 GB"}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}'


@pytest.mark.parametrize(
    ("reply", "named"),
    [
        (stream(DELTA * 3), r"JSON without `data:` \(NDJSON\)"),
        (stream(DELTA * 3, b"data: [DONE]\n\n"), "NDJSON"),
        (stream(OLLAMA * 3, kind="application/x-ndjson"), "NDJSON.*usually ends in /v1"),
        (stream(b"<html>Sign in to the gateway</html>", kind="text/html"), "a page of HTML"),
        (stream(b'data: {"choices": [{"message": {"content": "8 GB"}}]}\n\n'), "`message` in place of `delta`"),
        (stream(b'data: {"choices": [{"text": "8 GB"}]}\n\n'), "`text` in place of `delta`"),
    ],
)
async def test_what_is_no_stream_of_the_chat_api_is_told_by_name(reply: list[bytes], named: str):
    """At its first line: an answer that never ends is no answer."""
    with pytest.raises(ModelError, match=named):
        await streamed(reply)


@pytest.mark.parametrize(
    "reply",
    [
        stream(WHOLE, kind="application/json"),
        stream(WHOLE, b"\n"),
        stream(WHOLE.replace(b", ", b",\n"), kind="application/json; charset=utf-8"),
        stream(event(b'{"content": "8 GB"}'), b"data: [DONE]\n\n"),
        stream(event(b'{"content": "8 GB"}'), b"data: [DONE]\n\n", kind="application/json"),
        stream(b"\n" + WHOLE.replace(b", ", b",\n"), kind="text/plain"),
        stream(event(b'{"content": "8 GB"}'), b'data: {"choices": [{"message": {}, "finish_reason": "stop"}]}\n\n'),
    ],
)
async def test_an_answer_in_one_piece_and_one_that_only_says_that_it_ends_are_answers(reply: list[bytes]):
    """Of servers that can't stream, and that name no reason of the end."""
    assert await streamed(reply) == "8 GB"


async def test_a_rate_limit_has_only_a_usable_retry_time():
    soon, ago = formatdate(time.time() + 60, usegmt=True), formatdate(0, usegmt=True)
    odd = ("nan", "inf", "-inf", "-5", "+9999999999999", "soon", "", "Mon, 99 Nov 99999 99:99:99 GMT", "\xff")
    expected = {"7": 7.0, "1.5": 1.5, ago: 0.0, **dict.fromkeys(odd)}
    for header, seconds in expected.items():
        with pytest.raises(ModelRateLimited) as limited:
            await completed(http(b"slow down", "429 Too Many", f"Retry-After: {header}"))
        assert limited.value.retry_after == seconds, header
    assert retry_after(soon) == pytest.approx(60, abs=5)


async def test_odd_vectors_are_model_errors():
    def rows(*vectors: str, indices: tuple[str, ...] = ("0", "1")) -> bytes:
        made = (f'{{"index": {i}, "embedding": {v}}}' for i, v in zip(indices, vectors, strict=True))
        return f'{{"data": [{", ".join(made)}]}}'.encode()

    good = "[1, 0.5]"
    assert await embedded(http(rows(good, "[0, 2]", indices=("1", "0")))) == [[0, 2], [1, 0.5]]
    plain = b'{"data": [{"embedding": [1, 0.5]}, {"embedding": [0, 2]}]}'
    assert await embedded(http(plain)) == [[1, 0.5], [0, 2]], "in their order"
    odd = ("[1]", "[]", "[NaN, 1]", "[1e999, 1]", "[1e300, 1]", '["1", 2]', "[null, 1]", "[true, 1]", '"ab"', "7", "{}")
    odd += ('[1, "' + "x" * 400_000 + '"]', "[[1], [2]]", "null")
    bodies = [rows(good, vector) for vector in odd]
    bodies += [
        rows(good, good, indices=pair) for pair in (("0", "0"), ("0", "2"), ("-1", "0"), ("0", "true"), ("0", '"1"'))
    ]
    for body in [*bodies, rows(good, indices=("0",)), b'{"data": {}}', b"[]", b'{"data": ["x", "y"]}']:
        with pytest.raises(ModelError):
            await embedded(http(body))


async def test_odd_scores_are_model_errors():
    def rows(*pairs: str) -> bytes:
        return ('{"results": [' + ", ".join("{" + pair + "}" for pair in pairs) + "]}").encode()

    first = '"index": 0, "relevance_score": 0.5'
    assert await reranked(http(rows('"index": 1, "relevance_score": 1', first))) == [0.5, 1.0]
    odd = [f'"index": {index}, "relevance_score": 1' for index in ("0", "2", "-1", "1.5", '"1"', "true", "null")]
    odd += [f'"index": 1, "relevance_score": {score}' for score in ("NaN", '"1"', "null", "true", "[]", "1e999")]
    for second in [*odd, '"index": 1', '"relevance_score": 1']:
        with pytest.raises(ModelError, match="no scores"):
            await reranked(http(rows(first, second)))
    for body in (rows(first), rows(first, first, first), b'{"results": {}}', b"[7, 8]", b"7"):
        with pytest.raises(ModelError, match="no scores"):
            await reranked(http(body))


async def test_a_class_of_llamaindex_with_odd_vectors_is_a_model_error():
    class Odd(BaseEmbedding):
        rows: Any = None

        def _get_query_embedding(self, query: str) -> Any:
            return None

        async def _aget_query_embedding(self, query: str) -> Any:
            return None

        def _get_text_embedding(self, text: str) -> Any:
            return None

        async def _aget_text_embeddings(self, texts: list[str]) -> Any:
            return self.rows

    for rows in ([[1.0], [2.0, 3.0]], [["1"], ["2"]], [[float("nan")], [1.0]], [None, None], [[1.0]]):
        with pytest.raises(ModelError):
            await Embedder(Odd(rows=rows), 60).embed_passages(["a", "b"])


async def test_a_question_is_answered_from_the_pages_whatever_the_models_reply(tmp_path: Path):
    """Words are searched where the vector can't be read, and the passages quoted where the answer can't."""
    replies = (b"7", b'{"choices": ["x"]}', said(b"[7]"), said(b'"\\ud83d"'), event(b"7"), event(b'{"content": 7}'))
    vectors = cycle((["x"] * 8, [None] * 8, [], [1e300] * 8))
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        for reply, vector, stream in zip(replies * 2, vectors, [False] * 6 + [True] * 6, strict=False):
            service.llm.reply = lambda _, reply=reply: Reply("", raw=reply.decode(), finish=None)
            service.llm._vector = lambda _, vector=vector: vector  # type: ignore[method-assign,assignment]
            answer = await client.post(CHAT, json=chat("How much memory has a notebook?", stream=stream))
            assert answer.status_code == 200, answer.text
            assert "at most 4 GB of memory" in answer.text


def endless(piece: bytes) -> Iterable[bytes]:
    return (piece for _ in range(4000))


def packed(piece: bytes) -> bytes:
    """Sixteen megabytes of it as gzip."""
    return gzip.compress(piece * (16 * MB // len(piece)), 1)


async def bombs() -> None:
    """Half a gigabyte and more in each form, unpacked; fails where one isn't refused or takes memory."""
    await completed(http(said(b'"warm"')))
    head, packing = http(b"")[0], http(b"", "200 OK", "Content-Encoding: gzip")[0]
    failing = http(b"", "500 Oh", "Content-Encoding: gzip")[0]
    word = event(b'{"content": "' + b"x" * 1000 + b'"}')
    replies = {
        "error body": [http(b"", "500 Oh")[0], *endless(b"e" * 131072)],
        "packed error body": [failing, *[packed(b"e" * 1024)] * 40],
        "whole": [head, *endless(b"x" * 131072)],
        "packed whole": [packing, *[packed(b"x" * 1024)] * 40],
        "token of 5 MB": [head, event(b'{"content": "' + b"x" * 5 * MB + b'"}')],
        "line without end": [head, b"data: ", *endless(b"x" * 131072)],
        "packed line without end": [packing, *[packed(b"x" * 1024)] * 40],
        "text without end": [head, *endless(word * 100)],
        "packed text without end": [packing, *[packed(word)] * 40],
        "thinking without end": [head, *endless(event(b'{"reasoning": "' + b"x" * 1000 + b'"}') * 100)],
        "blank without end": [head, *endless(event(b'{"content": "' + b" " * 500 + b'"}') * 100)],
        "pings without end": [head, *endless((b": " + b"-" * 998 + b"\n") * 100)],
    }
    for name, reply in replies.items():
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        called = completed if "whole" in name or "error" in name else streamed
        with pytest.raises(ModelError):
            await called(reply)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        assert grown < 64, f"{name}: {grown} MB"


def test_bombs_are_refused_in_bounded_memory():
    """In a process of its own, as memory that was taken once is seen for good."""
    code = "import asyncio; from tests.app.models.test_odd_replies import bombs; asyncio.run(bombs())"
    root = Path(__file__).parents[3]
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=root, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

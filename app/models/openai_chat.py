"""Language models on any OpenAI-compatible server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import asdict
from datetime import timedelta
from typing import Any, ClassVar

import aiohttp
from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen

from app.core.errors import ModelError, ModelUnavailable
from app.core.turn import Reasoning, Text, Usage
from app.models import responses
from app.models.llm import ChatLLM
from app.models.openai import Endpoint, OnServer
from app.models.reasoning import ThinkFilter
from app.models.refusals import Dialect, Form, next_forms, spoken
from app.models.responses import NO_USAGE, Piece
from app.models.window import listed_identity, listed_window, of_ollama, ollama_window

TOGETHER = 0.04
"""Seconds in which the pieces of a text that runs are gathered. Passing one on costs the same however long it is; a reader sees
25 steps a second, of more than `MANY` streams fewer, at least 5. vLLM (`--stream-interval`) and SGLang do so by the number of tokens."""
MANY, LONGEST = 64, 0.2
RUNS = 100  # characters from which on a text runs: before, each piece may be the first that readers see
END: list[Piece] = []  # of a stream that says so
UNSTREAMED = (b"{", b"<")  # begin a line of what is no event stream
FEW = 3  # pieces that arrive together; of more, enough are gathered already


class OpenAIModel(OnServer, ChatLLM):
    """A chat model at `<url>/chat/completions`. Its options are those of `CallOptions`."""

    provider: ClassVar[str] = "openai"
    thinks_apart: ClassVar[bool] = True
    options: tuple[str, ...] = ("temperature", "max_tokens", "stop", "seed", "timeout")
    _open: int = 0
    _window: int = 0

    def __init__(self, endpoint: Endpoint, name: str, extra_body: Mapping[str, Any] | None = None) -> None:
        super().__init__(endpoint, name=name)
        self._endpoint = endpoint
        self._extra = dict(extra_body or {})
        self._dialect = Dialect(name)

    @property
    def refused(self) -> Mapping[str, str]:
        """What the server has refused of requests, with what is done instead."""
        return self._dialect.refused

    @property
    def window(self) -> int:
        """How many tokens it reads, as the last probe found in the server's list; 0 if that doesn't say it."""
        return self._window

    async def probe(self) -> None:
        """See `Endpoint.models`; notes the window."""
        entries = await self._endpoint.models()
        self._window = listed_window(entries, self.name) or await self._window_of_ollama(entries)

    async def _window_of_ollama(self, entries: Sequence[Any]) -> int:
        """The window that Ollama has for the model; 0 if the list is another server's, or it doesn't say that."""
        if not of_ollama(entries, self.name):
            return 0
        try:
            shown = await self._endpoint.beside("api/show", {"model": self.name})
            return ollama_window(shown, await self._endpoint.beside("api/ps"), self.name) if shown else 0
        except ModelError:  # the server has just answered: it is reachable
            return 0

    async def fingerprint(self) -> str:
        """See `Model.fingerprint`. Some servers say that a model was created at the time of the request, which a second one shows."""
        first = listed_identity(await self._endpoint.models(), self.name)
        created = first.get("created")
        if isinstance(created, int) and abs(time.time() - created) < timedelta(days=1).total_seconds():
            await asyncio.sleep(1.1)
            second = listed_identity(await self._endpoint.models(), self.name)
            first = dict(first.items() & second.items())
        return " ".join(f"{key}={first[key]}" for key in sorted(first))

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        """The whole answer without its reasoning. Raises `ModelError`."""
        total = options.pop("timeout", None) or self._endpoint.timeout
        request, forms = self._request(messages, options), self._dialect.forms
        while True:
            try:
                async with self._posted(request, forms, total=total, wait=total) as response:
                    answer = responses.completion(await responses.read_body(response), self._endpoint.url)
                break
            except ModelError as error:
                if not (forms := next_forms(error, request, forms)):
                    raise
        self._dialect.learn(forms)
        return _response(ThinkFilter.remove(answer.text), raw=_raw(answer.usage, answer.finish_reason))

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponseAsyncGen:
        """The answer, as a response for all pieces that arrived together: `delta`, and reasoning as
        `additional_kwargs["thinking_delta"]`. `raw` has usage and the reason of the end. Closing the generator cancels the call.

        The generator raises `ModelError`, after the pieces before it.
        """
        wait = options.pop("timeout", None)
        streams = {"stream": True, "stream_options": {"include_usage": True}}
        return self._streamed(self._request(messages, options | streams), wait)

    async def _streamed(self, request: Mapping[str, Any], wait: float | None) -> ChatResponseAsyncGen:
        forms, said = self._dialect.forms, False
        while True:
            try:
                async with aclosing(self._stream(request, forms, wait)) as answer:
                    async for response in answer:
                        if not said and (response.delta or response.additional_kwargs):
                            said = True
                            self._dialect.learn(forms)
                        yield response
            except ModelError as error:
                if said or not (forms := next_forms(error, request, forms)):
                    raise
            else:
                return

    async def _stream(
        self, request: Mapping[str, Any], forms: Sequence[Form], wait: float | None
    ) -> ChatResponseAsyncGen:
        text, ended, think = "", False, ThinkFilter()
        async with self._posted(request, forms, wait=wait) as response:
            self._open += 1
            try:
                async for pieces in _stream_pieces(response, self._endpoint.url, self._together):
                    if pieces:
                        made = _of_pieces(pieces, text, think)
                        text, ended = text + made.delta, ended or "finish_reason" in made.raw
                        yield made
                    ended = ended or pieces is END
            finally:
                self._open -= 1
        if not ended:
            raise ModelUnavailable(f"{self.name} broke off in mid-answer.")
        for event in think.flush():
            said = isinstance(event, Text)
            yield _delta(event.text if said else "", "" if said else event.text, text, {})

    def _together(self) -> float:
        return min(TOGETHER * max(1.0, self._open / MANY), LONGEST)

    def _request(self, messages: Sequence[ChatMessage], options: Mapping[str, Any]) -> dict[str, Any]:
        """The request without what the extra body has, which is sent as it is."""
        plain = [{"role": message.role.value, "content": message.content or ""} for message in messages]
        request = {"model": self.name, "messages": plain, **options}
        return {key: value for key, value in request.items() if value is not None and key not in self._extra}

    def _posted(
        self, request: Mapping[str, Any], forms: Sequence[Form], **limits: float | None
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        extra = {key: value for key, value in self._extra.items() if value is not None}
        return self._endpoint.post("chat/completions", {**spoken(request, forms), **extra}, **limits)


def _response(text: str, **more: Any) -> ChatResponse:
    return ChatResponse(message=ChatMessage(text, role="assistant"), **more)


def _of_pieces(pieces: Sequence[Piece], before: str, think: ThinkFilter) -> ChatResponse:
    """The pieces as one response, which also has the text before them."""
    text, thought = "".join([piece.text for piece in pieces]), "".join([piece.reasoning for piece in pieces])
    if text and not think.answering:
        events = think.feed(text)
        text = "".join([event.text for event in events if isinstance(event, Text)])
        thought += "".join([event.text for event in events if isinstance(event, Reasoning)])
    usage = next((piece.usage for piece in reversed(pieces) if piece.usage is not NO_USAGE), NO_USAGE)
    finish = next((piece.finish for piece in pieces if piece.finish), "")
    return _delta(text, thought, before, _raw(usage, finish))


def _delta(text: str, thought: str, before: str, raw: Mapping[str, Any]) -> ChatResponse:
    return _response(
        before + text, delta=text, additional_kwargs={"thinking_delta": thought} if thought else {}, raw=raw
    )


def _raw(usage: Usage, finish: str) -> dict[str, Any]:
    """What tracers of LlamaIndex and the guard read beside the text."""
    raw: dict[str, Any] = {"finish_reason": finish} if finish else {}
    return raw if usage is NO_USAGE else raw | {"usage": asdict(usage)}


def _read(lines: Sequence[bytes], url: str, pieces: list[Piece]) -> bool:
    """Add the pieces that the lines of an event stream have; True if that is its end. Raises `ModelError`, after the pieces before."""
    payloads = [line[5:].strip() for line in lines if line.startswith(b"data:")]
    if ended := b"[DONE]" in payloads:
        payloads = payloads[: payloads.index(b"[DONE]")]
    pieces.extend(responses.pieces(payloads, url))
    return ended


async def _stream_pieces(
    response: aiohttp.ClientResponse, url: str, together: Callable[[], float]
) -> AsyncIterator[list[Piece]]:
    """The pieces of an event stream, in lists that arrived together: line by line costs twice the CPU. Of a text that runs, those of
    so many seconds. The last list is `END` if the server says that this is the end. Raises `ModelError` for what is no event stream.
    """
    rest, received, length = b"", 0, 0
    async for data in response.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        received += len(data)
        if not length and (other := next((line for line in (*lines, rest) if line.startswith(UNSTREAMED)), b"")):
            if not responses.json_object(other):  # the rest of it follows
                other = b"\n".join((*lines, rest)) + await responses.read_body(response)
            yield [responses.whole(other, url)]
            return
        pieces: list[Piece] = []
        try:
            ended = _read(lines, url, pieces)
        except ModelError:
            yield pieces  # the pieces before the broken one are still delivered
            raise
        yield pieces
        if ended:
            yield END
            return
        if len(rest) > responses.LINE_BYTES or received > responses.STREAM_BYTES:
            raise ModelError(f"{url} sends a stream, or one line of it, without end ({received} bytes so far).")
        length += sum([len(piece.text) for piece in pieces])
        if length > RUNS and len(pieces) <= FEW:
            await asyncio.sleep(together())

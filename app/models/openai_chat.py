"""Language models on any OpenAI-compatible server."""

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict
from datetime import timedelta
from typing import Any, ClassVar

import aiohttp
from llama_index.core.base.llms import generic_utils, types
from llama_index.core.llms.llm import LLM

from app.core.errors import ModelError
from app.core.turn import Completion, Message, Text
from app.models import responses
from app.models.loop_thread import LoopThread
from app.models.openai import Endpoint, OnServer
from app.models.protocols import CallOptions, callback_manager
from app.models.responses import Events, Piece, ThinkFilter
from app.models.window import listed_identity, listed_window, of_ollama, ollama_window

TOGETHER = 0.04
"""Seconds in which the pieces of a text that runs are gathered. Passing one on costs the same however long it is; a reader sees
25 steps a second, of more than `MANY` streams fewer, at least 5. vLLM (`--stream-interval`) and SGLang do so by the number of tokens."""
MANY, LONGEST = 64, 0.2
RUNS = 100  # characters from which on a text runs: before, each piece may be the first that readers see
FEW = 3  # pieces that arrive together; of more, enough are gathered already


class OpenAIModel(OnServer, LLM):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A chat model at `<url>/chat/completions`. The guard calls `completion` and `pieces`; other programs call LlamaIndex's methods,
    whose options are those of `CallOptions`.
    """

    provider: ClassVar[str] = "openai"
    name: str
    _open: int = 0
    _window: int = 0

    def __init__(self, endpoint: Endpoint, name: str, extra_body: Mapping[str, Any] | None = None) -> None:
        super().__init__(name=name, callback_manager=callback_manager())
        self._endpoint, self._loop = endpoint, LoopThread(self, endpoint)
        self._extra = dict(extra_body or {})

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

    async def completion(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, with its reasoning where that is part of the text. Raises `ModelError`."""
        body = self._body(messages, options)
        total = options.timeout or self._endpoint.timeout
        async with self._endpoint.post("chat/completions", body, total=total, wait=total) as response:
            return responses.completion(await responses.read_body(response), self._endpoint.url)

    async def pieces(self, messages: Sequence[Message], options: CallOptions) -> AsyncGenerator[list[Piece], None]:
        """The answer, in lists of pieces that arrived together. Raises `ModelError`, after the pieces before it.

        Closing the iterator cancels the call.
        """
        body = self._body(messages, options, stream=True, stream_options={"include_usage": True})
        async with self._endpoint.post("chat/completions", body, wait=options.timeout) as response:
            self._open += 1
            try:
                async for pieces in _stream_pieces(response, self._endpoint.url, self._together):
                    yield pieces
            finally:
                self._open -= 1

    def _together(self) -> float:
        return min(TOGETHER * max(1.0, self._open / MANY), LONGEST)

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

    @property
    def metadata(self) -> types.LLMMetadata:
        return types.LLMMetadata(model_name=self.name, is_chat_model=True)

    async def achat(self, messages: Sequence[types.ChatMessage], **options: Any) -> types.ChatResponse:
        answer = await self.completion(_plain(messages), CallOptions(**options))
        return _response(ThinkFilter.remove(answer.text), raw={"usage": asdict(answer.usage)})

    async def astream_chat(self, messages: Sequence[types.ChatMessage], **options: Any) -> types.ChatResponseAsyncGen:
        return _responses(responses.events(self.pieces(_plain(messages), CallOptions(**options)), self.name))

    def chat(self, messages: Sequence[types.ChatMessage], **options: Any) -> types.ChatResponse:
        return self._loop.run(self.achat(messages, **options))

    def stream_chat(self, messages: Sequence[types.ChatMessage], **options: Any) -> types.ChatResponseGen:
        return self._loop.each(self._loop.run(self.astream_chat(messages, **options)))

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> types.CompletionResponse:  # noqa: ARG002
        return generic_utils.chat_to_completion_decorator(self.chat)(prompt, **options)

    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> types.CompletionResponseGen:  # noqa: ARG002
        return generic_utils.stream_chat_to_completion_decorator(self.stream_chat)(prompt, **options)

    async def acomplete(self, prompt: str, formatted: bool = False, **options: Any) -> types.CompletionResponse:  # noqa: ARG002
        return await generic_utils.achat_to_completion_decorator(self.achat)(prompt, **options)

    async def astream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002
        **options: Any,
    ) -> types.CompletionResponseAsyncGen:
        return await generic_utils.astream_chat_to_completion_decorator(self.astream_chat)(prompt, **options)


def _plain(messages: Sequence[types.ChatMessage]) -> list[Message]:
    return [Message(message.role.value, message.content or "") for message in messages]


def _response(text: str, **more: Any) -> types.ChatResponse:
    return types.ChatResponse(message=types.ChatMessage(text, role="assistant"), **more)


async def _responses(stream: Events) -> types.ChatResponseAsyncGen:
    text = ""
    async with aclosing(stream) as events:
        async for event in events:
            if isinstance(event, Text):
                text += event.text
                yield _response(text, delta=event.text)


async def _stream_pieces(
    response: aiohttp.ClientResponse, url: str, together: Callable[[], float]
) -> AsyncIterator[list[Piece]]:
    """The pieces of an event stream, in lists that arrived together: line by line costs twice the CPU. Of a text that runs, those of
    so many seconds.
    """
    rest, received, length = b"", 0, 0
    async for data in response.content.iter_any():
        *lines, rest = (rest + data).split(b"\n")
        received += len(data)
        payloads = [line[5:].strip() for line in lines if line.startswith(b"data:")]
        if ended := b"[DONE]" in payloads:
            payloads = payloads[: payloads.index(b"[DONE]")]
        pieces: list[Piece] = []
        try:
            pieces.extend(responses.pieces(payloads, url))
        except ModelError:
            yield pieces  # the pieces before the broken one are still delivered
            raise
        yield pieces
        if ended:
            return
        if len(rest) > responses.LINE_BYTES or received > responses.STREAM_BYTES:
            raise ModelError(f"{url} sends a stream, or one line of it, without end ({received} bytes so far).")
        length += sum([len(piece.text) for piece in pieces])
        if length > RUNS and len(pieces) <= FEW:
            await asyncio.sleep(together())

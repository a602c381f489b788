"""Adapters that make any LlamaIndex LLM or embedding class a `Model` or an `Embedder`; code that blocks runs in threads."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from inspect import unwrap
from typing import Any, TypeVar

from httpx import TimeoutException, TransportError

from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable
from app.core.plugins import made
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector
from app.models import responses
from app.models.protocols import CallOptions
from app.models.responses import ThinkFilter

T = TypeVar("T")
_END = object()


async def in_thread(call: Callable[[], T]) -> T:
    """The result of the call. If this task is cancelled, the call runs to its end, but nobody waits for it."""
    return await _started(call)


async def iterated(items: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
    """The items, each as soon as there is one. Closing the generator stops the iteration after the current item."""
    loop, queue = asyncio.get_running_loop(), asyncio.Queue[Any]()
    closed = threading.Event()

    def put(item: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(queue.put_nowait, item)

    def run() -> None:
        for item in items():
            if closed.is_set():
                return
            put(item)

    done = _started(run)
    done.add_done_callback(lambda _: queue.put_nowait(_END))
    try:
        while (item := await queue.get()) is not _END:
            yield item
        await done
    finally:
        closed.set()
        done.cancel()


def _started(call: Callable[[], T]) -> asyncio.Future[T]:
    """The future result of the call in a daemon thread: threads of an executor would keep the program from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def settle(set_: Callable[[Any], None], value: object) -> None:
        def unless_cancelled() -> None:
            if not future.done():
                set_(value)

        with contextlib.suppress(RuntimeError):  # the loop has ended
            loop.call_soon_threadsafe(unless_cancelled)

    def run() -> None:
        try:
            result = call()
        except StopIteration as error:  # no future takes it, so its awaiter would wait for good
            failure = RuntimeError("StopIteration, as of next() on nothing")
            failure.__cause__ = error
            settle(future.set_exception, failure)
        except BaseException as error:  # noqa: BLE001  # belongs to who awaits the future
            settle(future.set_exception, error)
        else:
            settle(future.set_result, result)

    threading.Thread(target=run, daemon=True, name="blocking").start()
    return future


def _error_from(name: str, error: Exception) -> ModelError:
    """Convert an exception of a provider by its HTTP status, or by the connection error that caused it."""
    message, status = f"{name} failed: {error}", getattr(error, "status_code", 0)
    if status == 429:
        return ModelRateLimited(message)
    cause: BaseException | None = error
    while cause and not isinstance(cause, OSError | TransportError):
        cause = cause.__cause__
    if isinstance(cause, TimeoutError | TimeoutException) or status in {408, 504}:
        return ModelTimeout(message)
    return ModelUnavailable(message) if cause or (isinstance(status, int) and status >= 500) else ModelError(message)


def open_llm(path: str, arguments: Mapping[str, Any]) -> LlamaIndexModel:
    """The LLM class at `module:Class`. Raises `SettingsError`."""
    from llama_index.core.base.llms.base import BaseLLM

    return LlamaIndexModel(made(path, BaseLLM, arguments, "DOCS_LLM_CLASS"))


def open_embedding(path: str, arguments: Mapping[str, Any]) -> LlamaIndexEmbedder:
    """The embedding class at `module:Class`. Raises `SettingsError`."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    return LlamaIndexEmbedder(made(path, BaseEmbedding, arguments, "DOCS_EMBEDDING_CLASS"))


class LlamaIndexModel:
    """A LlamaIndex LLM. Classes without asynchronous code of their own, such as models in this process, run in threads."""

    provider = "llama_index"

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._blocks = unwrap(type(llm).astream_chat).__qualname__.startswith("CustomLLM.")
        self.name = str(llm.metadata.model_name)

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, without reasoning."""
        try:
            async with asyncio.timeout(options.timeout):
                chat, arguments = _chat(messages), _arguments(options)
                if self._blocks:
                    response = await in_thread(lambda: self._llm.chat(chat, **arguments))
                else:
                    response = await self._llm.achat(chat, **arguments)
        except TimeoutError as error:
            raise ModelTimeout(f"{self.name} did not answer within {options.timeout} s.") from error
        except Exception as error:  # every provider has its own exceptions
            raise _error_from(self.name, error) from error
        return Completion(ThinkFilter.remove(str(response.message.content or "")), _usage(response))

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        """Stream the answer; closing the iterator cancels the upstream call."""
        think, last = ThinkFilter(), None
        try:
            async with asyncio.timeout(options.timeout):
                answer = await self._answer(messages, options)
            async with aclosing(answer):
                async for last in answer:
                    for event in think.feed(last.delta or ""):
                        yield event
        except TimeoutError as error:
            raise ModelTimeout(f"{self.name} did not answer within {options.timeout} s.") from error
        except Exception as error:
            raise _error_from(self.name, error) from error
        for event in think.flush():
            yield event
        usage = _usage(last)
        if usage != Usage():
            yield usage
        yield Done("stop")

    async def _answer(self, messages: Sequence[Message], options: CallOptions) -> AsyncGenerator[Any, None]:
        chat, arguments = _chat(messages), _arguments(options)
        if self._blocks:
            return iterated(lambda: self._llm.stream_chat(chat, **arguments))
        answer: AsyncGenerator[Any, None] = await self._llm.astream_chat(chat, **arguments)
        return answer

    async def close(self) -> None:
        """Close all connections, if the class has any."""
        await _close(self._llm)


async def _close(wrapped: Any) -> None:
    client = getattr(wrapped, "_aclient", None)  # LlamaIndex has no public way to close its clients
    if client is not None:
        await client.close()


def _chat(messages: Sequence[Message]) -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(role=m.role, content=m.content) for m in messages]


def _arguments(options: CallOptions) -> dict[str, Any]:
    named = {"temperature": options.temperature, "max_tokens": options.max_tokens, "stop": list(options.stop) or None}
    return {key: value for key, value in named.items() if value is not None}


def _usage(response: Any) -> Usage:
    raw = getattr(response, "raw", None)
    return responses.usage_of(raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None))


class LlamaIndexEmbedder:
    """A LlamaIndex embedding class."""

    provider = "llama_index"

    def __init__(self, embedding: Any) -> None:
        self._embedding = embedding
        self.name = f"{type(embedding).__name__}/{embedding.model_name}"
        self._dimension = 0

    async def dimension(self) -> int:
        """Length of the vectors; embeds one word to determine it."""
        if not self._dimension:
            await self.embed_queries(["dimension"])
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        rows = await self._call(*(self._embedding.aget_query_embedding(text) for text in texts))
        return self._validated(rows, len(texts))

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        rows = await self._call(self._embedding.aget_text_embedding_batch(list(texts)))
        return self._validated(rows[0], len(texts))

    async def _call(self, *calls: Any) -> list[Any]:
        try:
            return list(await asyncio.gather(*calls))
        except Exception as error:  # every provider has its own exceptions
            raise _error_from(self.name, error) from error

    def _validated(self, rows: Sequence[Any], count: int) -> list[Vector]:
        vectors = responses.vectors(rows, count, self.name)
        self._dimension = len(vectors[0]) if vectors else self._dimension
        return vectors

    async def close(self) -> None:
        """Close all connections, if the class has any."""
        await _close(self._embedding)

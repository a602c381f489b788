"""Calls LlamaIndex classes that a project names; code that blocks runs in threads."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing
from inspect import unwrap
from typing import Any, TypeVar

from app.core.errors import ModelTimeout
from app.core.turn import Completion, Message, Usage
from app.models import responses
from app.models.guarded import closed, error_from
from app.models.protocols import CallOptions
from app.models.responses import Piece

T = TypeVar("T")
_END: Any = object()


async def iterated(items: Callable[[], Iterator[T]]) -> AsyncGenerator[T, None]:
    """The items, each made in a thread. Closing the generator stops the iteration after the current item."""
    iterator = await in_thread(items)
    while (item := await in_thread(lambda: next(iterator, _END))) is not _END:
        yield item


def in_thread(call: Callable[[], T]) -> asyncio.Future[T]:
    """The future result of the call in a daemon thread: threads of an executor would keep the program from ending. If its
    awaiter is cancelled, the call runs to its end, but nobody waits for it.
    """
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


class LlamaIndexCalls:
    """Calls any LlamaIndex LLM as the guard calls `OpenAIModel`. Code that blocks, such as models in this process, runs in threads."""

    provider = "llama_index"

    def __init__(self, llm: Any) -> None:
        self._llm = llm
        self._blocks = unwrap(type(llm).astream_chat).__qualname__.startswith("CustomLLM.")
        self.name = str(llm.metadata.model_name)

    async def completion(self, messages: Sequence[Message], options: CallOptions) -> Completion:
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
            raise error_from(self.name, error) from error
        return Completion(str(response.message.content or ""), _usage(response))

    async def pieces(self, messages: Sequence[Message], options: CallOptions) -> AsyncGenerator[list[Piece], None]:
        chat, arguments, last = _chat(messages), _arguments(options), None
        try:
            if self._blocks:
                answer = iterated(lambda: self._llm.stream_chat(chat, **arguments))
            else:
                answer = await self._llm.astream_chat(chat, **arguments)
            async with aclosing(answer):
                async for last in answer:
                    yield [Piece(last.delta or "", last.additional_kwargs.get("thinking_delta") or "")]
        except Exception as error:
            raise error_from(self.name, error) from error
        yield [Piece(finish="stop", usage=_usage(last))]

    async def aclose(self) -> None:
        """Close all connections, if the class has any."""
        await closed(self._llm)


def _chat(messages: Sequence[Message]) -> list[Any]:
    from llama_index.core.llms import ChatMessage

    return [ChatMessage(role=m.role, content=m.content) for m in messages]


def _arguments(options: CallOptions) -> dict[str, Any]:
    named = {"temperature": options.temperature, "max_tokens": options.max_tokens, "stop": list(options.stop) or None}
    return {key: value for key, value in named.items() if value is not None}


def _usage(response: Any) -> Usage:
    raw = getattr(response, "raw", None)
    return responses.usage_of(raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None))

"""How the service calls a LlamaIndex `LLM`, by its public methods, and the base of our own."""

import asyncio
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from typing import Any

from llama_index.core.base.llms import generic_utils
from llama_index.core.base.llms.types import (
    ChatMessage,
    ChatResponse,
    ChatResponseGen,
    CompletionResponse,
    CompletionResponseAsyncGen,
    CompletionResponseGen,
    LLMMetadata,
)
from llama_index.core.llms import LLM, CustomLLM

from app.core.errors import AssistantError, ModelError, ModelTimeout
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.models.loop_thread import LoopThread
from app.models.protocols import CallOptions, Closable
from app.models.provider_errors import error_from
from app.models.reasoning import ThinkFilter
from app.models.responses import NO_USAGE, usage_of
from app.models.threads import in_thread, iterated

Events = AsyncGenerator[Text | Reasoning | Usage | Done, None]
TEXT_LENGTH = 2_000_000  # characters of a streamed answer
KNOWN = ("temperature", "max_tokens", "stop")
"""The options that each class of LlamaIndex takes; one of ours says by `options` which it takes."""


async def completed(llm: LLM, messages: Sequence[Message], options: CallOptions) -> Completion:
    """The whole answer without its reasoning. Raises `ModelError`, whatever the class raises, and `ModelTimeout`."""
    chat, arguments = _chat(messages), _arguments(llm, options)
    limit = None if "timeout" in arguments else options.timeout
    name = llm.metadata.model_name
    try:
        async with asyncio.timeout(limit):
            if isinstance(llm, CustomLLM):  # it would block the event loop
                response = await in_thread(lambda: llm.chat(chat, **arguments))
            else:
                response = await llm.achat(chat, **arguments)
    except AssistantError:
        raise
    except TimeoutError as error:
        raise ModelTimeout(f"{name} did not answer within {limit} s.") from error
    except Exception as error:  # every provider has its own exceptions
        raise error_from(name, error) from error
    text = str(response.message.content or "")
    text = text if _thinks_apart(llm) else ThinkFilter.remove(text)
    return Completion(text, _usage(response) or NO_USAGE, _finish(response) or "stop")


async def streamed(llm: LLM, messages: Sequence[Message], options: CallOptions) -> Events:
    """The answer as events, with its reasoning apart; the last ones are the usage, if it is known, and `Done`.

    Raises `ModelError`, whatever the class raises, after the events before it.
    """
    chat, arguments = _chat(messages), _arguments(llm, options)
    heard = _Heard(str(llm.metadata.model_name), ThinkFilter(answering=_thinks_apart(llm)))
    try:
        if isinstance(llm, CustomLLM):
            answer = iterated(lambda: llm.stream_chat(chat, **arguments))
        else:
            answer = await llm.astream_chat(chat, **arguments)
        async with aclosing(answer):
            async for response in answer:
                for event in heard.events(response):
                    yield event
    except AssistantError:
        raise
    except Exception as error:
        raise error_from(heard.name, error) from error
    for last in heard.ended():
        yield last


@dataclass
class _Heard:
    """What a stream has said so far, by the model of this name."""

    name: str
    _think: ThinkFilter
    _length: int = 0
    _finish: str = ""
    _usage: Usage = NO_USAGE

    def events(self, response: ChatResponse) -> list[Text | Reasoning]:
        """What is new in the response. Raises `ModelError` for an answer without end."""
        thought, text = response.additional_kwargs.get("thinking_delta"), response.delta or ""
        if response.raw:
            self._finish, self._usage = _finish(response) or self._finish, _usage(response) or self._usage
        self._length += len(text)
        if self._length > TEXT_LENGTH:
            raise ModelError(f"{self.name} doesn't end its answer: over {TEXT_LENGTH} characters.")
        said: list[Text | Reasoning] = [Reasoning(str(thought))] if thought else []
        if text and self._think.answering:
            said.append(Text(text))
        elif text:
            said += self._think.feed(text)
        return said

    def ended(self) -> Iterator[Text | Reasoning | Usage | Done]:
        """The rest, at the end of the stream."""
        yield from self._think.flush()
        if self._usage != NO_USAGE:
            yield self._usage
        yield Done("length" if self._finish == "length" else "stop")


def _thinks_apart(llm: LLM) -> bool:
    """True for a class that leaves reasoning out of texts itself: a second look would take a quoted tag for its end."""
    return getattr(llm, "thinks_apart", False)


def _chat(messages: Sequence[Message]) -> list[ChatMessage]:
    return [ChatMessage(role=message.role, content=message.content) for message in messages]


def _arguments(llm: LLM, options: CallOptions) -> dict[str, Any]:
    taken = asdict(options) | {"stop": list(options.stop) or None}
    return {name: taken[name] for name in getattr(llm, "options", KNOWN) if taken[name] is not None}


def _usage(response: ChatResponse) -> Usage | None:
    raw = response.raw
    usage = raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None)
    return usage_of(usage) if usage else None


def _finish(response: ChatResponse) -> str:
    return str(response.raw.get("finish_reason") or "") if isinstance(response.raw, dict) else ""


class ChatLLM(LLM):  # type: ignore[misc]  # LlamaIndex isn't typed
    """A chat model. A subclass writes `achat` and `astream_chat`; the blocking methods run these two in a thread with an event
    loop, in which connections of `parts` stay, and a completion is a chat with one message.

    `options` lists the arguments of a call that the two methods know, of those of `CallOptions`.
    """

    name: str
    options: tuple[str, ...] = ("temperature", "max_tokens", "stop")

    def __init__(self, parts: Closable | None = None, **fields: Any) -> None:
        super().__init__(**fields)
        self._loop = LoopThread(self, parts)

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata(model_name=self.name, is_chat_model=True)

    def chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        return self._loop.run(self.achat(messages, **options))

    def stream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponseGen:
        return self._loop.each(self._loop.run(self.astream_chat(messages, **options)))

    def complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:  # noqa: ARG002
        return generic_utils.chat_to_completion_decorator(self.chat)(prompt, **options)

    def stream_complete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponseGen:  # noqa: ARG002
        return generic_utils.stream_chat_to_completion_decorator(self.stream_chat)(prompt, **options)

    async def acomplete(self, prompt: str, formatted: bool = False, **options: Any) -> CompletionResponse:  # noqa: ARG002
        return await generic_utils.achat_to_completion_decorator(self.achat)(prompt, **options)

    async def astream_complete(
        self,
        prompt: str,
        formatted: bool = False,  # noqa: ARG002
        **options: Any,
    ) -> CompletionResponseAsyncGen:
        return await generic_utils.astream_chat_to_completion_decorator(self.astream_chat)(prompt, **options)

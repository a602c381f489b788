"""A LlamaIndex `LLM` that says what a function yields."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from llama_index.core.base.llms.types import ChatMessage, ChatResponse, ChatResponseAsyncGen

from app.core.turn import Message, Usage
from app.models.llm import ChatLLM


class Piece(NamedTuple):
    """What one event of a stream says; empty parts are missing. A finish ends the answer."""

    text: str = ""
    reasoning: str = ""
    finish: str = ""
    usage: Usage | None = None


Says = Callable[[Sequence[Message], Mapping[str, Any]], AsyncIterator[str | Piece]]


class ScriptedLLM(ChatLLM):
    """Streams what `says` yields for the messages and the options of a call; a whole answer is all of its texts."""

    options: tuple[str, ...] = ("temperature", "max_tokens", "stop", "seed")

    def __init__(self, says: Says, name: str = "scripted") -> None:
        super().__init__(name=name)
        self._says = says

    async def achat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponse:
        said = [one async for one in await self.astream_chat(messages, **options)]
        text, usage = "".join(one.delta or "" for one in said), said[-1].raw if said else None
        return ChatResponse(message=ChatMessage(text, role="assistant"), raw=usage)

    async def astream_chat(self, messages: Sequence[ChatMessage], **options: Any) -> ChatResponseAsyncGen:
        plain = [Message(message.role.value, message.content or "") for message in messages]

        async def responses() -> ChatResponseAsyncGen:
            text = ""
            said = self._says(plain, options)
            try:
                async for one in said:
                    piece = one if isinstance(one, Piece) else Piece(one)
                    text += piece.text
                    yield _response(piece, text)
            finally:
                await said.aclose()  # type: ignore[attr-defined]  # a generator

        return responses()


def _response(piece: Piece, text: str) -> ChatResponse:
    usage = {"usage": asdict(piece.usage)} if piece.usage else {}
    return ChatResponse(
        message=ChatMessage(text, role="assistant"),
        delta=piece.text,
        additional_kwargs={"thinking_delta": piece.reasoning} if piece.reasoning else {},
        raw={"finish_reason": piece.finish, **usage},
    )

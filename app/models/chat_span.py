"""What the span of a call to a language model says, in the words of the GenAI conventions."""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from app.core import spans
from app.core.spans import NoSpan
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.models.protocols import CallOptions


class Chat:
    """Fills the span of one call. Texts are left out unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for them."""

    __slots__ = ("_span", "_texts", "_usage")

    def __init__(
        self, span: NoSpan, messages: Sequence[Message], options: CallOptions, *, stream: bool = False
    ) -> None:
        self._span = span
        self._usage = Usage()
        self._texts: list[str] = []
        if not span:
            return
        span.note(
            {
                "gen_ai.request.stream": stream or None,
                "gen_ai.request.max_tokens": options.max_tokens,
                "gen_ai.request.temperature": None if options.temperature is None else float(options.temperature),
                "gen_ai.request.seed": options.seed,
                "gen_ai.request.stop_sequences": options.stop or None,
            }
        )
        if spans.with_contents():
            span.note({"gen_ai.input.messages": _json([(one.role, one.content) for one in messages])})

    def see(self, span: NoSpan, event: Text | Reasoning | Usage | Done) -> None:
        """Note what an event of a stream says."""
        if isinstance(event, Text | Reasoning):
            span.first("gen_ai.response.time_to_first_chunk")
            if isinstance(event, Text) and spans.with_contents():
                self._texts.append(event.text)
        elif isinstance(event, Usage):
            self._usage += event
        else:
            self.ended(Completion("".join(self._texts), self._usage, event.finish_reason))

    def ended(self, answer: Completion) -> None:
        """Note the end of the answer."""
        if not self._span:
            return
        usage = answer.usage if answer.usage != Usage() else None
        self._span.note(
            {
                "gen_ai.response.finish_reasons": [answer.finish_reason],
                "gen_ai.usage.input_tokens": usage and usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage and usage.completion_tokens,
            }
        )
        if spans.with_contents():
            self._span.note(
                {"gen_ai.output.messages": _json([("assistant", answer.text)], finish_reason=answer.finish_reason)}
            )


def _json(messages: Sequence[tuple[str, str]], **more: str) -> str:
    return orjson.dumps(
        [{"role": role, "parts": [{"type": "text", "content": text}], **more} for role, text in messages]
    ).decode()

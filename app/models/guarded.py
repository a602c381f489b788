"""Wrappers of models with a circuit breaker, a stall timeout, spans, and release of the answer's place while it waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing

import orjson

from app.core import spans
from app.core.breaker import Breaker, Part, Probe
from app.core.errors import ModelTimeout, ModelUnavailable
from app.core.gate import away, busy, leave
from app.core.spans import NoSpan
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector
from app.models.local import LocalEmbedder
from app.models.onnx import OnnxReranker
from app.models.protocols import CallOptions, Embedder, Model
from app.models.rerank import Reranker


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
            span.note({"gen_ai.input.messages": _json([(message.role, message.content) for message in messages])})

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


FAILURES = (ModelUnavailable, ModelTimeout)
THINKING_FACTOR = 3
"""Time that a model may reason before its answer, in timeouts of the stream."""


def breaker(part: Part, name: str, model: object = None, probe: Probe | None = None) -> Breaker:
    """A circuit breaker for calls to a model, whose name and `provider` the spans of calls have."""
    circuit = Breaker(part, name, FAILURES, ModelUnavailable, probe=probe)
    circuit.facts = {
        "gen_ai.provider.name": getattr(model, "provider", "local"),
        "gen_ai.request.model": getattr(model, "name", name),
    }
    return circuit


def probe_of(model: object) -> Probe | None:
    """The probe of the model's server; None for a model in this process, or of a class that has none."""
    ask = getattr(model, "probe", None)
    return Probe(ask) if ask else None


class StallTimer:
    """Ends a stream that sends no text for this many seconds, whatever else it sends.

    One recurring timer: a timeout for each piece would cost more than the piece.
    """

    def __init__(self, limit: asyncio.Timeout, seconds: float) -> None:
        self._limit = limit
        self._seconds = seconds
        self._loop = asyncio.get_running_loop()
        self._thinks_until = self._loop.time() + THINKING_FACTOR * seconds
        self._last = self._loop.time()
        self._timer = self._loop.call_later(seconds, self._check)
        self.waiting = True  # for the model; False while the consumer processes an event

    def received(self, event: Text | Reasoning | Usage | Done) -> None:
        """Reset the timer if the event is text, or reasoning within its time limit."""
        now = self._loop.time()
        if isinstance(event, Text):
            if not event.text.isspace():
                self._last = now
        elif isinstance(event, Reasoning) and now < self._thinks_until:
            self._last = now

    def stop(self) -> None:
        """Stop the timer."""
        self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        if not self.waiting:
            self._last = now
        if (remaining := self._last + self._seconds - now) > 0:
            self._timer = self._loop.call_later(remaining, self._check)
        else:
            self._limit.reschedule(now)


class GuardedModel:
    """A language model with separate breakers for calls and streams, because only one of them may be too slow."""

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model
        probe = probe_of(model)
        self._calls = breaker("model", f"{model.name} (short calls)", model, probe)
        self._streams = breaker("model", model.name, model, probe)
        self.breakers = (self._calls, self._streams)

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer. Raises `ModelUnavailable` at once while the breaker is open."""
        with self._calls.call("complete") as call, away():
            chat = Chat(call.span, messages, options)
            completion = await self._model.complete(messages, options)
            chat.ended(completion)
            return completion

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        """Stream the answer. Raises `ModelUnavailable` at once while the breaker is open, and `ModelTimeout` after
        `options.timeout` seconds without text; reasoning counts as text for three times as long.
        """
        leave()
        timer, said = None, False
        with self._streams.call("stream") as call:
            try:
                chat = Chat(call.span, messages, options, stream=True)
                stream = call.span.within(self._model.stream(messages, options), chat.see)
                async with asyncio.timeout(None) as limit, aclosing(stream) as events:
                    timer = StallTimer(limit, options.timeout) if options.timeout else None
                    async for event in events:
                        if not said:
                            call.heard()
                            if isinstance(event, Text):
                                said = True
                                call.worked()
                        if timer:
                            timer.received(event)
                            timer.waiting = False
                        yield event
                        if timer:
                            timer.waiting = True
            except TimeoutError as error:
                raise ModelTimeout(f"{self.name} said nothing new for {options.timeout:g} s.") from error
            finally:
                if timer:
                    timer.stop()

    async def close(self) -> None:
        """Close all connections."""
        await self._model.close()


class GuardedEmbedder:
    """An embedder; `timeout` in seconds applies to each call of `embed_queries`. `instant`: it is as fast as a search by words.

    `others` are guarded alike (see `app.models.protocols.for_index`).
    """

    def __init__(self, embedder: Embedder, timeout: float) -> None:
        self.name = embedder.name
        self._embedder = embedder
        self._timeout = timeout
        self._breaker = breaker("embedder", embedder.name, embedder, probe_of(embedder))
        self._place = busy if isinstance(embedder, LocalEmbedder) else away
        self.instant = bool(getattr(embedder, "instant", False))
        others: Mapping[str, Embedder] = getattr(embedder, "others", {})
        self.others: dict[str, GuardedEmbedder] = {
            name: GuardedEmbedder(other, timeout) for name, other in others.items()
        }
        self.breakers: tuple[Breaker, ...] = (
            self._breaker,
            *(inner for other in self.others.values() for inner in other.breakers),
        )

    async def dimension(self) -> int:
        """Length of the vectors."""
        return await self._embedder.dimension()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question. Raises `ModelUnavailable` at once while the breaker is open."""
        with self._breaker.call("embed_queries"), self._place():
            try:
                async with asyncio.timeout(self._timeout):
                    return await self._embedder.embed_queries(texts)
            except TimeoutError as error:
                raise ModelTimeout(f"{self.name} did not answer within {self._timeout:g} s.") from error

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        return await self._embedder.embed_passages(texts)

    async def close(self) -> None:
        """Close all connections."""
        await self._embedder.close()


class GuardedReranker(Reranker):
    """A reranker with a circuit breaker."""

    def __init__(self, reranker: Reranker | OnnxReranker) -> None:
        self.name = reranker.name
        self._reranker = reranker
        self._breaker = breaker("reranker", reranker.name, reranker, probe_of(reranker))
        self._place = busy if isinstance(reranker, OnnxReranker) else away
        self.breakers = (self._breaker,)

    async def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        """A score for each passage. Raises `ModelUnavailable` at once while the breaker is open."""
        with self._breaker.call("rerank"), self._place():
            return await self._reranker.rerank(question, passages)

    async def close(self) -> None:
        """Close all connections."""
        await self._reranker.close()

"""Wrappers of models with a circuit breaker, a stall timeout, spans, and release of the answer's place while it waits."""

from __future__ import annotations

import asyncio
import math
import re
import statistics
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import orjson

from app.core import spans
from app.core.breaker import Breaker, Part, Probe
from app.core.errors import (
    AssistantError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    SettingsError,
)
from app.core.gate import away, busy, leave
from app.core.spans import NoSpan
from app.core.turn import Completion, Done, Message, Reasoning, Text, Usage
from app.core.types import Vector
from app.models.protocols import CallOptions
from app.models.provider_errors import error_from
from app.models.window import window_said
from app.text.invisible import visible

if TYPE_CHECKING:
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.base.llms.base import BaseLLM

    from app.models.llm import Events


class Chat:
    """Fills the span of one call. Texts are left out unless OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT asks for them."""

    def __init__(self, span: NoSpan, messages: Sequence[Message], options: CallOptions, *, stream: bool) -> None:
        self._usage, self._texts = Usage(), list[str]()
        if span:
            facts = {
                "gen_ai.request.stream": stream or None,
                "gen_ai.request.max_tokens": options.max_tokens,
                "gen_ai.request.temperature": None if options.temperature is None else float(options.temperature),
                "gen_ai.request.seed": options.seed,
                "gen_ai.request.stop_sequences": options.stop or None,
            }
            asked = [(message.role, message.content) for message in messages]
            span.note(facts | _texts("gen_ai.input.messages", asked))

    def see(self, span: NoSpan, event: Text | Reasoning | Usage | Done) -> None:
        """Note what an event of a stream says."""
        if isinstance(event, Usage):
            self._usage += event
        elif isinstance(event, Done):
            self.ended(span, Completion("".join(self._texts), self._usage, event.finish_reason))
        else:
            span.first("gen_ai.response.time_to_first_chunk")
            self._texts += [event.text] if isinstance(event, Text) else []

    def ended(self, span: NoSpan, answer: Completion) -> None:
        """Note the end of the answer."""
        if span:
            usage, reason = answer.usage if answer.usage != Usage() else None, answer.finish_reason
            facts = {
                "gen_ai.response.finish_reasons": [reason],
                "gen_ai.usage.input_tokens": usage and usage.prompt_tokens,
                "gen_ai.usage.output_tokens": usage and usage.completion_tokens,
            }
            said = [("assistant", answer.text)]
            span.note(facts | _texts("gen_ai.output.messages", said, finish_reason=reason))


def _texts(name: str, messages: Sequence[tuple[str, str]], **more: str) -> dict[str, str]:
    if not spans.with_contents():
        return {}
    told = [{"role": role, "parts": [{"type": "text", "content": text}], **more} for role, text in messages]
    return {name: orjson.dumps(told).decode()}


FAILURES = (ModelUnavailable, ModelTimeout)
LAST_READ = 5
"""Streams from which the speed of reading is measured."""
LONG_READ = 10.0
"""Seconds without a first piece after which a cancelled stream shows a slow model."""
LEAST_READ = 2000
"""Characters of a prompt whose time is mostly that of reading."""
THINKING_FACTOR = 3
"""Time that a model may reason before its answer, in timeouts of the stream."""


class NeverRaised(ModelError):
    """What a breaker counts as failures that never opens."""


def breaker(
    part: Part,
    name: str,
    model: object = None,
    probe: Probe | None = None,
    failures: tuple[type[ModelError], ...] = FAILURES,
) -> Breaker:
    """A circuit breaker for calls to a model, whose name and `provider` the spans of calls have."""
    circuit = Breaker(part, name, failures, ModelUnavailable, probe=probe)
    circuit.facts = {
        "gen_ai.provider.name": getattr(model, "provider", "llama_index"),
        "gen_ai.request.model": getattr(model, "name", name),
    }
    return circuit


def probe_of(model: object) -> Probe | None:
    """The probe of the model's server; None for a model in this process, or of a class that has none."""
    ask = getattr(model, "probe", None)
    return Probe(ask) if ask else None


async def closed(model: Any) -> None:
    """Close the connections of a LlamaIndex class: by our `aclose`, else those of the client that many have."""
    client = getattr(model, "_aclient", None)  # LlamaIndex has no public way to close its clients
    close = getattr(model, "aclose", None) or getattr(client, "close", None)
    if close:
        await close()


class StallTimer:
    """Ends a stream once nothing is new for so many seconds, without those in which its reader has it (not `waiting`).

    One recurring timer: one for each piece would cost more than the piece.
    """

    def __init__(self, limit: asyncio.Timeout, seconds: float) -> None:
        self._limit, self._seconds = limit, seconds
        self._loop = asyncio.get_running_loop()
        self.last, self.waiting = self._loop.time(), True
        self._timer = self._loop.call_later(seconds, self._check)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def _check(self) -> None:
        now = self._loop.time()
        if not self.waiting:
            self.last = now
        if (left := self.last + self._seconds - now) > 0:
            self._timer = self._loop.call_later(left, self._check)
        else:
            self._limit.reschedule(now)


class ReadingSpeed:
    """How fast a model reads prompts: the time to the first piece of its last streams for each character of their prompts, and what
    its exam has `told` of that.
    """

    def __init__(self) -> None:
        self._seconds: deque[float] = deque(maxlen=LAST_READ)  # per character
        self._told: tuple[float, ...] = ()

    def told(self, characters: float) -> None:
        """Note that it has read so many characters a second before, which counts as one more stream."""
        self._told = (1 / characters,)

    def took(self, messages: Sequence[Message], seconds: float) -> None:
        """Note the time to the first piece. That of short prompts says nothing: it is that of the connection."""
        if (characters := sum(len(message.content) for message in messages)) >= LEAST_READ:
            self._seconds.append(seconds / characters)

    def characters_in(self, seconds: float) -> float:
        """How many characters it reads in that time; infinity if nothing is known."""
        seen = (*self._told, *self._seconds)
        slowness = statistics.median(seen) if seen else 0.0
        return seconds / slowness if slowness else math.inf


class Model:
    """A language model, of a LlamaIndex class, with separate breakers for calls and streams, because only one of them may be too slow.

    With `patient`, it never refuses a call: for work that nobody waits for, and that has rules of its own for failures.
    """

    def __init__(self, llm: BaseLLM, *, patient: bool = False) -> None:
        self.name = str(llm.metadata.model_name)
        self._llm = llm
        self.reading = ReadingSpeed()
        self._said_window = 0  # in an error
        probe, failures = probe_of(llm), (NeverRaised,) if patient else FAILURES
        self._calls = breaker("model", f"{self.name} (short calls)", llm, probe, failures)
        self._streams = breaker("model", self.name, llm, probe, failures)
        self.breakers = (self._calls, self._streams)

    @property
    def window(self) -> int:
        """How many tokens the server says that the model reads, in its list or in an error; 0 if it says nothing."""
        said = [size for size in (getattr(self._llm, "window", 0), self._said_window) if size]
        return min(said, default=0)

    @property
    def refused(self) -> Mapping[str, str]:
        """What the server refuses of requests, with what is done instead; empty if it takes them as they are."""
        return getattr(self._llm, "refused", {})

    async def fingerprint(self) -> str:
        """What the server's list says of the model, which another one behind its name doesn't have; empty if it says nothing.

        Raises `ModelError` if the server doesn't answer.
        """
        ask = getattr(self._llm, "fingerprint", None)
        return await ask() if ask else ""

    @contextmanager
    def _heeded(self) -> Iterator[None]:
        """Notes the window that an error names, so that the next prompt fits."""
        try:
            yield
        except ModelError as error:
            self._said_window = window_said(str(error)) or self._said_window
            raise

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        """The whole answer, as readers would see it, without reasoning. Raises `ModelUnavailable` at once while the breaker is open."""
        from app.models import llm

        with self._heeded(), self._calls.call("complete") as call, away():
            chat = Chat(call.span, messages, options, stream=False)
            completion = await llm.completed(self._llm, messages, options)
            completion = replace(completion, text=visible(completion.text))
            chat.ended(call.span, completion)
            return completion

    async def stream(self, messages: Sequence[Message], options: CallOptions) -> Events:
        """Stream the answer; the last event is Done. Closing the iterator cancels the upstream call.

        Raises `ModelUnavailable` at once while the breaker is open, and `ModelTimeout` after `options.timeout` seconds without
        text; reasoning counts as text for three times as long.
        """
        from app.models import llm

        leave()
        clock, wait = asyncio.get_running_loop().time, options.timeout or math.inf
        heard = said = False
        with self._heeded(), self._streams.call("stream") as call:
            began, chat = clock(), Chat(call.span, messages, options, stream=True)
            stream = call.span.within(llm.streamed(self._llm, messages, options), chat.see)
            try:
                async with asyncio.timeout(None) as limit, aclosing(stream) as events:
                    with StallTimer(limit, wait) as timer:
                        async for event in events:
                            now = clock()
                            if not heard:
                                heard = True
                                call.heard()
                                self.reading.took(messages, now - began)
                            if not said and isinstance(event, Text):
                                said = True
                                call.worked()
                            thinks = isinstance(event, Reasoning) and now < began + THINKING_FACTOR * wait
                            new = thinks or (isinstance(event, Text) and not event.text.isspace())
                            timer.last = now if new else timer.last
                            timer.waiting = False
                            yield event
                            timer.waiting = True
            except (TimeoutError, asyncio.CancelledError) as error:
                if not heard and (seconds := clock() - began) > LONG_READ:  # it reads at most so fast
                    self.reading.took(messages, seconds)
                if isinstance(error, TimeoutError):
                    raise ModelTimeout(f"{self.name} said nothing new for {wait:g} s.") from error
                raise

    async def close(self) -> None:
        """Close all connections."""
        await closed(self._llm)


_MULTILINGUAL = re.compile(
    r"multilingual|bge-m3|labse|gte-qwen2|qwen3-embedding|embeddinggemma|jina-embeddings-v[3-9]|nomic-embed-text-v2"
    r"|arctic-embed2|arctic-embed[^/\s]{0,40}v2|text-embedding-3"
)


def is_multilingual(model: str) -> bool:
    """True if the model with this name is known to bring texts in different languages together."""
    return bool(_MULTILINGUAL.search(model.lower().replace("_", "-")))


class Embedder:
    """Turns texts into vectors of one length, by a LlamaIndex embedding class with a circuit breaker.

    `name` is what the index records; a different name means incompatible vectors. A class says it by `index_name`. `timeout` in
    seconds applies to each call of `embed_queries`. `others` opens the embedder with another name.
    """

    def __init__(
        self, embedding: BaseEmbedding, timeout: float, others: Callable[[str], Embedder] | None = None
    ) -> None:
        own = getattr(embedding, "index_name", "")
        self.name: str = own or f"{type(embedding).__name__}/{embedding.model_name}"
        self.embedding, self.timeout = embedding, timeout
        self._checks = not own
        self._dimension = 0
        self._open_other = others
        self._others: dict[str, Embedder | None] = {}
        self._breaker = breaker("embedder", self.name, embedding, probe_of(embedding))
        self.breakers = (self._breaker,)

    def _place(self) -> AbstractContextManager[None]:
        return busy() if getattr(self.embedding, "in_process", False) else away()

    def of(self, recorded: str) -> Embedder:
        """The embedder of an index that records this name: this one, or while the index has another one's vectors, that one.

        Raises `ModelUnavailable` if these settings can't open it: its vectors can't be compared with those of this one.
        """
        if recorded == self.name:
            return self
        if recorded not in self._others:
            self._others[recorded] = self._opened(recorded)
        if (other := self._others[recorded]) is None:
            raise ModelUnavailable(
                f"The index was built with the embedder {recorded}, and {self.name} is set: words alone find pages until you"
                " index the sites again, or set that embedder."
            )
        return other

    def _opened(self, recorded: str) -> Embedder | None:
        try:
            other = self._open_other(recorded) if self._open_other else None
        except SettingsError:
            return None
        return other if other and other.name == recorded else None

    async def dimension(self) -> int:
        """Length of the vectors; embeds one word to learn it."""
        if not self._dimension:
            self._dimension = len((await self._called(["dimension"]))[0])
        return self._dimension

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question. Raises `ModelUnavailable` at once while the breaker is open."""
        with self._breaker.call("embed_queries"), self._place():
            try:
                async with asyncio.timeout(self.timeout):
                    rows = await self._called(texts)
            except TimeoutError as error:
                raise ModelTimeout(f"{self.name} did not answer within {self.timeout:g} s.") from error
            return self._validated(rows, len(texts))

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        try:
            rows = await self.embedding.aget_text_embedding_batch(list(texts))
        except AssistantError:
            raise
        except Exception as error:  # every provider has its own exceptions
            raise error_from(self.name, error) from error
        return self._validated(rows, len(texts))

    async def _called(self, questions: Sequence[str]) -> list[Any]:
        ask = self.embedding.aget_query_embedding
        try:
            if len(questions) == 1:  # a task costs more than a vector that is kept
                return [await ask(questions[0])]
            return list(await asyncio.gather(*map(ask, questions)))
        except AssistantError:
            raise
        except Exception as error:
            raise error_from(self.name, error) from error

    def _validated(self, rows: list[Any], count: int) -> list[Vector]:
        if not self._checks:
            return rows
        from app.models import responses

        return responses.vectors(rows, count, self.name)

    async def close(self) -> None:
        """Close all connections, if the class has any."""
        for other in filter(None, self._others.values()):
            await other.close()
        await closed(self.embedding)

"""Runs a plan for one request with other parts: settings, prompts, or parts that record what they did."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any, Literal, Self

from app.core.errors import PromptError, RequestError, did_you_mean, quoted
from app.core.prompts import Prompts, shipped_files
from app.core.settings import Settings
from app.core.turn import Completion, Done, Message, Reasoning, Text, Turn, Usage
from app.core.types import Chunk, Legs, Query, Vector
from app.index.protocols import Generation
from app.models.protocols import CallOptions, Embedder, Model
from app.models.rerank import Reranker
from app.pipeline.runner import Changes, Plan, Step


@dataclass(slots=True)
class Span:
    """Times of a step; `ended` is 0 while it runs."""

    step: str
    group: int
    began: float
    ended: float = 0.0


@dataclass(slots=True)
class CallRecord:
    """A call to a model, by a step; filled while it runs."""

    step: str
    kind: Literal["chat", "embedding", "rerank"]
    model: str
    messages: Sequence[Message] = ()
    texts: Sequence[str] = ()
    options: CallOptions = field(default_factory=CallOptions)
    began: float = field(default_factory=time.perf_counter)
    first: float = 0.0
    ended: float = 0.0
    usage: Usage = field(default_factory=Usage)
    error: str = "cancelled"
    reply: list[str] = field(default_factory=list)
    scores: Sequence[float] = ()

    def done(self, reply: str = "") -> None:
        """The call has succeeded."""
        self.error = ""
        self.reply += [reply] if reply else []

    def __enter__(self) -> Self:
        """Begin the call."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        """End the call; one that raised an error has failed."""
        self.ended = time.perf_counter()
        if isinstance(error, Exception):
            self.error = f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class SearchRecord:
    """A search in the index, by a step."""

    step: str
    query: Query
    legs: Legs
    began: float
    ended: float


@dataclass(slots=True)
class Recorder:
    """Record of the steps of one request. `began` is a time of `time.perf_counter`."""

    began: float
    steps: list[Span] = field(default_factory=list)
    calls: list[CallRecord] = field(default_factory=list)
    searches: list[SearchRecord] = field(default_factory=list)
    fetched: dict[str, tuple[Chunk, ...]] = field(default_factory=dict)  # by step

    def watching(self, plan: Plan) -> Plan:
        """The plan with steps that are recorded here."""
        return tuple(tuple(self._watched(step, number) for step in group) for number, group in enumerate(plan))

    def _watched(self, step: Step, group: int) -> Step:
        parts = {"model": self._model, "embedder": self._embedder, "reranker": self._reranker}
        with_models = with_parts(step, {name: wrap(step.name) for name, wrap in parts.items()})
        return _WatchedStep(with_models, group, self)

    def _model(self, step: str) -> Any:
        return lambda model: _WatchedModel(model, step, self) if model else None

    def _embedder(self, step: str) -> Any:
        return lambda embedder: _WatchedEmbedder(embedder, step, self) if embedder else None

    def _reranker(self, step: str) -> Any:
        return lambda reranker: _WatchedReranker(reranker, step, self) if reranker else None

    def call(self, record: CallRecord) -> CallRecord:
        """Record this call, which begins now."""
        self.calls.append(record)
        return record

    def ms(self, then: float) -> float:
        """Milliseconds from the beginning of the request."""
        return round((then - self.began) * 1000, 2)


class _WatchedStep:
    """A step that records its times, and gives its step a generation that records its searches."""

    def __init__(self, step: Step, group: int, recorder: Recorder) -> None:
        self._step, self._group, self._recorder = step, group, recorder
        self.name, self.reads, self.uses, self.writes = step.name, step.reads, step.uses, step.writes
        self.optional, self.helper_calls = step.optional, step.helper_calls

    async def __call__(self, turn: Turn) -> Changes:
        span = Span(self.name, self._group, time.perf_counter())
        self._recorder.steps.append(span)
        try:
            return await self._step(
                replace(turn, generation=WatchedGeneration(turn.generation, self.name, self._recorder))
            )
        finally:
            span.ended = time.perf_counter()


class WatchedGeneration:
    """A generation that records its searches; see `app.index.protocols.Generation`."""

    def __init__(self, generation: Generation, step: str, recorder: Recorder) -> None:
        self._generation, self._step, self._recorder = generation, step, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._generation, name)

    async def search(self, query: Query) -> Legs:
        """The legs of the search."""
        began = time.perf_counter()
        legs = await self._generation.search(query)
        self._recorder.searches.append(SearchRecord(self._step, query, legs, began, time.perf_counter()))
        return legs

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids."""
        self._recorder.fetched[self._step] = chunks = await self._generation.fetch(ids)
        return chunks


@dataclass(frozen=True, slots=True)
class _WatchedModel:
    model: Model
    step: str
    recorder: Recorder

    @property
    def name(self) -> str:
        return self.model.name

    def _begun(self, messages: Sequence[Message], options: CallOptions) -> CallRecord:
        return self.recorder.call(CallRecord(self.step, "chat", self.name, tuple(messages), options=options))

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        with self._begun(messages, options) as call:
            completion = await self.model.complete(messages, options)
            call.usage = completion.usage
            call.done(completion.text)
            return completion

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        with self._begun(messages, options) as call:
            async with aclosing(self.model.stream(messages, options)) as events:
                async for event in events:
                    if isinstance(event, Text):
                        call.first = call.first or time.perf_counter()
                        call.reply.append(event.text)
                    elif isinstance(event, Usage):
                        call.usage += event
                    elif isinstance(event, Done):
                        call.done()
                        call.ended = time.perf_counter()
                    yield event

    async def close(self) -> None:
        await self.model.close()


@dataclass(frozen=True, slots=True)
class _WatchedEmbedder:
    embedder: Embedder
    step: str
    recorder: Recorder

    @property
    def name(self) -> str:
        return self.embedder.name

    @property
    def others(self) -> Mapping[str, Embedder]:
        others: Mapping[str, Embedder] = getattr(self.embedder, "others", {})
        return {name: _WatchedEmbedder(embedder, self.step, self.recorder) for name, embedder in others.items()}

    async def dimension(self) -> int:
        return await self.embedder.dimension()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        with self.recorder.call(CallRecord(self.step, "embedding", self.name, texts=tuple(texts))) as call:
            vectors = await self.embedder.embed_queries(texts)
            call.done(_vectors_text(vectors))
            return vectors

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        with self.recorder.call(CallRecord(self.step, "embedding", self.name, texts=tuple(texts))) as call:
            vectors = await self.embedder.embed_passages(texts)
            call.done(_vectors_text(vectors))
            return vectors

    async def close(self) -> None:
        await self.embedder.close()


def _vectors_text(vectors: Sequence[Vector]) -> str:
    return f"{len(vectors)} vectors of {len(vectors[0]) if vectors else 0} numbers"


class _WatchedReranker(Reranker):
    def __init__(self, reranker: Reranker, step: str, recorder: Recorder) -> None:
        self.name = reranker.name
        self._reranker, self._step, self._recorder = reranker, step, recorder

    async def rerank(self, question: str, passages: Sequence[str]) -> list[float]:
        with self._recorder.call(CallRecord(self._step, "rerank", self.name, texts=(question, *passages))) as call:
            call.scores = scores = await self._reranker.rerank(question, passages)
            call.done(", ".join(f"{score:g}" for score in scores))
            return scores

    async def close(self) -> None:
        await self._reranker.close()


Change = Callable[[Any], Any]
"""Function of a part that returns what becomes of it; the same part if nothing changes."""


def with_parts(step: Step, changes: Mapping[str, Change]) -> Step:
    """The step in which each part of these names is changed, also in the steps inside it.

    A step of a project that is no dataclass keeps its parts.
    """
    if not is_dataclass(step):
        return step
    changed: dict[str, Any] = {}
    for part in (declared for declared in fields(step) if declared.init):
        value = getattr(step, part.name)
        if part.name in changes:
            new = changes[part.name](value)
        else:
            new = with_parts(value, changes) if _is_step(value) else value
        if new is not value:
            changed[part.name] = new
    return replace(step, **changed) if changed else step


def _is_step(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and callable(value) and hasattr(value, "writes")


SHIPPED = "shipped"
"""In the place of texts: the prompts of the package, without those of DOCS_PROMPTS."""
PARAM = "overrides.prompts"


@dataclass(frozen=True, slots=True)
class Overrides:
    """Settings by name, and texts of prompts by file: `synthesize.md` for all languages, or `cs/synthesize.md`."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    prompts: Mapping[str, str] | str = field(default_factory=dict)


def overridden(plan: Plan, overrides: Overrides) -> Plan:
    """The plan with these settings and prompts. Raises `RequestError` for an unknown or invalid prompt."""
    known = {file for group in plan for step in group for prompts in _prompts_of(step) for file in prompts.files}
    texts = _texts(overrides.prompts, known)

    def with_settings(settings: Settings) -> Settings:
        return settings.model_copy(update=dict(overrides.settings)) if overrides.settings else settings

    def with_texts(prompts: Prompts) -> Prompts:
        try:
            return prompts.with_texts(texts) if texts else prompts
        except PromptError as error:
            raise RequestError(f"{PARAM}: {error}", param=PARAM) from error

    change = partial(with_parts, changes={"settings": with_settings, "prompts": with_texts})
    return tuple(tuple(change(step) for step in group) for group in plan)


def _prompts_of(step: object) -> Iterator[Prompts]:
    for part in fields(step) if is_dataclass(step) else ():
        if isinstance(value := getattr(step, part.name), Prompts):
            yield value


def _texts(given: Mapping[str, str] | str, known: set[str]) -> Mapping[str, str]:
    """The texts by file in a language. Raises `RequestError` for a file or directory that doesn't exist."""
    if isinstance(given, str):
        if given != SHIPPED:
            raise RequestError(
                f"{PARAM}: there are no prompts {quoted(given)}. Send {SHIPPED!r} for those of the package, or texts by file.",
                param=PARAM,
            )
        return {file: text for file, text in shipped_files().items() if file in known}
    texts: dict[str, str] = {}
    for name, text in given.items():
        files = [file for file in known if name in {file, file.partition("/")[2]}]
        if not files:
            near = did_you_mean(name, [*known, *(file.partition("/")[2] for file in known)])
            raise RequestError(
                f"{PARAM}: no step of this assistant has a prompt {quoted(name)}.{near} /v1/admin/prompts lists them.",
                param=PARAM,
            )
        texts |= dict.fromkeys(files, text)
    return texts

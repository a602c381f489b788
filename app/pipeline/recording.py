"""Runs a plan for one request with other parts: settings, prompts, or parts that record what they did."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, aclosing, contextmanager
from dataclasses import asdict, dataclass, field, fields, is_dataclass, replace
from functools import partial
from typing import Any

from app.core.errors import PromptError, RequestError, did_you_mean, quoted
from app.core.prompts import Prompts, shipped_files
from app.core.settings import Settings
from app.core.trace import LegPlace, TraceCall, TraceSearch
from app.core.turn import Completion, Done, Message, Reasoning, Text, Turn, Usage
from app.core.types import Candidate, Hit, Legs, Query, Vector
from app.index.observed import ObservedGeneration
from app.index.protocols import Generation
from app.models.postprocessor import Scores
from app.models.protocols import CallOptions
from app.pipeline.runner import Changes, Plan, Step

LONGEST_MESSAGE = 200_000  # characters, more than any context window has for one
CUT = " … (cut)"


@dataclass(slots=True)
class Recorder:
    """Record of the calls and searches of one request, by step. `began` is a time of `time.perf_counter`.

    `reranked` are the hits with their first scores of the reranker.
    """

    began: float
    calls: dict[str, list[TraceCall]] = field(default_factory=lambda: defaultdict(list))
    searches: list[TraceSearch] = field(default_factory=list)
    reranked: tuple[Hit, ...] = ()

    def watching(self, plan: Plan) -> Plan:
        """The plan with steps that are recorded here."""
        return tuple(tuple(self._watched(step) for step in group) for group in plan)

    def _watched(self, step: Step) -> Step:
        watchers = {"model": _WatchedModel, "embedder": _WatchedEmbedder, "reranker": _WatchedReranker}

        def watching(watcher: type[_Watched]) -> Change:
            return lambda part: part and watcher(part, step.name, self)

        parts = with_parts(step, {name: watching(watcher) for name, watcher in watchers.items()})
        watched: Any = _WatchedStep(parts, step.name, self)
        return watched  # type: ignore[no-any-return]  # the attributes are those of the step

    def ms(self, then: float) -> float:
        """Milliseconds from the beginning of the request."""
        return round((then - self.began) * 1000, 2)

    def now(self) -> float:
        """Milliseconds from the beginning of the request until now."""
        return self.ms(time.perf_counter())

    @contextmanager
    def call(self, step: str, call: TraceCall) -> Iterator[TraceCall]:
        """Record a call from its beginning to its end; one that raised an error has failed."""
        call.start, call.error = self.now(), "cancelled"
        self.calls[step].append(call)
        try:
            yield call
            call.error = ""
        except Exception as error:
            call.error = f"{type(error).__name__}: {error}"
            raise
        finally:
            call.end = self.now()


def bounded(text: str) -> str:
    """The text, cut if it is longer than any prompt or reply should be."""
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + CUT


def places(leg: Sequence[Candidate]) -> list[LegPlace]:
    """The candidates of one leg with their ranks."""
    return [LegPlace(candidate.id, rank, round(candidate.score, 4)) for rank, candidate in enumerate(leg, start=1)]


class _Watched:
    """A part of a step that records what the step does with it. All else is that of the part."""

    def __init__(self, part: Any, step: str, recorder: Recorder) -> None:
        self._part, self._step, self._recorder = part, step, recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(self._part, name)


class _WatchedStep(_Watched):
    async def __call__(self, turn: Turn) -> Changes:
        changes: Changes = await self._part(
            turn.changed(generation=_WatchedGeneration(turn.generation, self._step, self._recorder))
        )
        return changes


class _WatchedGeneration(ObservedGeneration):
    def __init__(self, generation: Generation, step: str, recorder: Recorder) -> None:
        super().__init__(generation)
        self._step, self._recorder = step, recorder

    async def search(self, query: Query) -> Legs:
        start = self._recorder.now()
        legs = await super().search(query)
        self._recorder.searches.append(
            TraceSearch(
                step=self._step,
                start=start,
                end=self._recorder.now(),
                texts=[asdict(text) for text in query.texts],
                vector=query.vector is not None,
                words=places(legs.lexical),
                vectors=places(legs.vector),
            )
        )
        return legs


class _WatchedModel(_Watched):
    def _begun(self, messages: Sequence[Message], options: CallOptions) -> AbstractContextManager[TraceCall]:
        shown = [Message(message.role, bounded(message.content)) for message in messages]
        call = TraceCall(
            "chat", self.name, temperature=options.temperature, max_tokens=options.max_tokens, messages=shown
        )
        return self._recorder.call(self._step, call)

    async def complete(self, messages: Sequence[Message], options: CallOptions) -> Completion:
        with self._begun(messages, options) as call:
            completion: Completion = await self._part.complete(messages, options)
            call.add(completion.usage)
            call.reply = bounded(completion.text)
            return completion

    async def stream(
        self, messages: Sequence[Message], options: CallOptions
    ) -> AsyncGenerator[Text | Reasoning | Usage | Done, None]:
        with self._begun(messages, options) as call:
            async with aclosing(self._part.stream(messages, options)) as events:
                async for event in events:
                    if isinstance(event, Text):
                        call.first_text = call.first_text or self._recorder.now()
                        call.reply += event.text
                    elif isinstance(event, Usage):
                        call.add(event)
                    elif isinstance(event, Done):
                        call.error, call.end = "", self._recorder.now()
                    yield event


class _WatchedEmbedder(_Watched):
    def of(self, recorded: str) -> _WatchedEmbedder:
        return _WatchedEmbedder(self._part.of(recorded), self._step, self._recorder)

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedded(self._part.embed_queries, texts)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        return await self._embedded(self._part.embed_passages, texts)

    async def _embedded(
        self, embed: Callable[[Sequence[str]], Awaitable[list[Vector]]], texts: Sequence[str]
    ) -> list[Vector]:
        call = TraceCall("embedding", self.name, texts=[bounded(text) for text in texts])
        with self._recorder.call(self._step, call):
            vectors = await embed(texts)
            call.reply = f"{len(vectors)} vectors of {len(vectors[0]) if vectors else 0} numbers"
            return vectors


class _WatchedReranker(_Watched):
    async def chosen(self, question: str, hits: Sequence[Hit], scores: Scores, seconds: float) -> tuple[Hit, ...]:
        texts = [question, *(hit.chunk.embedded_text for hit in hits)]
        call = TraceCall("rerank", self.name, texts=[bounded(text) for text in texts])
        with self._recorder.call(self._step, call):
            chosen: tuple[Hit, ...] = await self._part.chosen(question, hits, scores, seconds)
            self._recorder.reranked = self._recorder.reranked or chosen
            by_id = {hit.chunk.id: hit.score for hit in chosen}
            call.reply = ", ".join(f"{by_id[hit.chunk.id]:g}" for hit in hits if hit.chunk.id in by_id)
            return chosen


Change = Callable[[Any], Any]
"""Function of a part that returns what becomes of it; the same part if nothing changes."""


def with_parts(step: Step, changes: Mapping[str, Change]) -> Step:
    """The step with these parts changed. A step of a project that is no dataclass keeps its parts."""
    if not is_dataclass(step):
        return step
    parts = {part.name: getattr(step, part.name) for part in fields(step) if part.name in changes}
    changed = {name: new for name, part in parts.items() if (new := changes[name](part)) is not part}
    return replace(step, **changed) if changed else step


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

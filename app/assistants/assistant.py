"""An assistant runs one pipeline on one index; all assistants share stores, models and prompts."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from typing import Any

from app.assistants.file import NamedIndex
from app.assistants.health import Health, IndexCheck, IndexState, look_at_servers, part_states
from app.core.breaker import Breaker
from app.core.errors import RequestError, quoted
from app.core.language import Language
from app.core.process import peak_mb
from app.core.prompts import Prompts
from app.core.turn import AnswerRecord, Calls, CitingTrace, Events, Request, Status, Turn
from app.core.types import Chunk, Filters, Page
from app.index import Store
from app.models import Embedder, Model
from app.models.protocols import Closable
from app.models.rerank import Reranker
from app.pipeline.conversation import with_answer_language
from app.pipeline.recording import Overrides, Recorder, overridden
from app.pipeline.registry import search_of, upto
from app.pipeline.runner import Plan, ScoringStep, answer, run
from app.pipeline.trace import traced


@dataclass(frozen=True)
class Assistant:
    """A pipeline that clients select as a model; it answers only from pages within `collections` and `limits`.

    `lookup` is the plan without a language model, `typing` that of a search as you type. `names`, `descriptions` and `suggestions` (first questions) are by
    language. `sources` is the form of sources; empty if it depends on the client. `left_out` lists steps that need a
    language model but have none; `helper_call_warning` is set if the limit of helper calls is too low for the steps.
    `index` is the name of its index; empty for the configured one.
    """

    id: str
    names: Mapping[str, str]
    plan: Plan
    store: Store
    collections: tuple[str, ...] = ()
    listed: bool = True
    persona: str = ""
    lookup: Plan = ()
    typing: Plan = ()
    languages: Mapping[str, Language] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    suggestions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sources: str = ""
    limits: Filters = field(default_factory=Filters)
    personas: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()
    helper_call_warning: str = ""
    index: str = ""

    async def answer(self, request: Request, record: AnswerRecord | None = None) -> Events:
        """Answer a question from the live generation of the index, as events. `record` gets what the steps find out.

        Raises an `AssistantError` if it fails before the first text; a later failure is a `Failure` event. Closing the
        iterator cancels the upstream calls.
        """
        record = record or AnswerRecord()
        recorder = Recorder(record.began) if request.trace else None
        turn, texts = await self.begin(request, record.calls), None
        for group in recorder.watching(self.plan) if recorder else self.plan:
            if not texts and not turn.smalltalk and (texts := self.languages.get(turn.language)):
                yield Status(texts.searching)
            record.turn = turn = await run((group,), turn)
        record.steps_ended(with_answer_language(turn, self.languages).language)
        if texts:
            texts = self.languages[record.language]
            yield Status(texts.found.replace("{count}", str(len({hit.chunk.url for hit in turn.hits}))), done=True)
        events = answer(turn)
        async with aclosing(traced(events, turn, self.plan, recorder) if recorder else events) as traced_events:
            async for event in traced_events:
                yield event

    def overridden(self, overrides: Overrides) -> Assistant:
        """Returns a copy with other settings and prompts. Raises `RequestError` for an unknown or invalid prompt."""
        return replace(self, plan=overridden(self.plan, overrides))

    async def find(self, request: Request) -> Turn:
        """The turn after the passages are found, fused and reranked, without evidence check and synthesis."""
        return await run(search_of(self.plan), await self.begin(request), search=True)

    async def assess(self, request: Request) -> Turn:
        """The turn after the evidence check, which decides whether the passages are relevant to the question."""
        return await run(upto(self.plan, "evidence"), await self.begin(request))

    async def search(self, request: Request) -> Turn:
        """The turn after retrieval and, if the plan has it, reranking; never calls a language model."""
        plan = self.typing if request.as_you_type else search_of(self.lookup)
        return await run(plan, await self.begin(request), search=True)

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown; None if it isn't indexed or is outside this assistant's limits."""
        live = await self.store.live()
        page = await live.page(url)
        if page is None:
            return None
        # translations make a page available in more languages
        languages = {page.language, *(chunk.language for chunk in await live.fetch(page.chunk_ids))}
        limits = self.limits.within(self.collections)
        return page if limits.admits(page.url, page.collection, languages, page.versions) else None

    async def around(self, id_: str) -> tuple[str, Chunk, str] | None:
        """The chunk between the texts before and after it on its page, empty at its ends; None outside this assistant's limits."""
        live = await self.store.live()
        chunks = await live.fetch([id_])
        page = await self.page(chunks[0].url) if chunks else None
        if page is None:
            return None
        at = page.chunk_ids.index(id_)
        before, after = page.chunk_ids[:at][-1:], page.chunk_ids[at + 1 :][:1]
        near = await live.fetch([*before, *after])
        texts = {chunk.id: chunk.text for chunk in near if chunk.language == chunks[0].language}
        return "".join(texts.get(id_, "") for id_ in before), chunks[0], "".join(texts.get(id_, "") for id_ in after)

    async def begin(self, request: Request, calls: Calls | None = None) -> Turn:
        """The turn before the first step, with this assistant's limits and persona, on the live generation."""
        if request.persona and request.persona not in self.personas:
            raise RequestError(
                f"There is no persona {quoted(request.persona)} here. Available: {', '.join(sorted(self.personas)) or 'none'}.",
                param="persona",
            )
        filters = request.filters.within(self.collections).narrowed(self.limits)
        request = replace(request, filters=filters, persona=request.persona or self.persona)
        citing = CitingTrace() if request.trace else None
        return Turn(request=request, generation=await self.store.live(), calls=calls or Calls(), citing=citing)


@dataclass(frozen=True)
class Assistants:
    """All assistants and their shared parts; close it after use.

    `llm_timeout` is the longest of all models, in seconds; `max_index_age` is in hours.
    """

    by_id: Mapping[str, Assistant]
    store: Store
    model: Model | None
    embedder: Embedder
    reranker: Reranker | None
    prompts: Prompts
    created: int
    others: tuple[Closable, ...] = ()
    indices: Mapping[str, NamedIndex] = field(default_factory=dict)
    llm_timeout: float = 60.0
    breakers: tuple[Breaker, ...] = ()
    max_index_age: float = 0.0
    checks: dict[str, IndexCheck] = field(default_factory=dict)

    def get(self, name: str) -> Assistant:
        """The assistant of this name; the first one if the name is empty. `name:persona` selects a persona of it.

        Raises `RequestError` with the code `model_not_found` for an unknown name.
        """
        if not name:
            return next(iter(self.by_id.values()))
        base, _, persona = name.rpartition(":")  # ids may contain colons; personas, which are file names, may not
        if name not in self.by_id and base in self.by_id and persona in self.prompts.personas:
            return replace(self.by_id[base], id=name, persona=persona, listed=False)
        if name not in self.by_id:
            known = ", ".join(self.by_id)
            raise RequestError(
                f"There is no model {quoted(name)} here. Available: {known}. {self._persona_hint(base)}".rstrip(),
                param="model",
                code="model_not_found",
            )
        return self.by_id[name]

    def within(self, ids: Collection[str], collections: tuple[str, ...]) -> Assistants:
        """Returns a copy with these assistants and their personas, limited to these collections. Empty sets no limit."""
        return replace(
            self,
            by_id={
                id_: replace(assistant, collections=Filters(assistant.collections).within(collections).collections)
                for id_, assistant in self.by_id.items()
                if not ids or id_ in ids or (assistant.persona and id_.removesuffix(f":{assistant.persona}") in ids)
            },
        )

    def _persona_hint(self, base: str) -> str:
        tones = ", ".join(self.prompts.personas)
        return f"Tones of {base}, as {base}:name, are: {tones}." if base in self.by_id and tones else ""

    def listed(self) -> tuple[Assistant, ...]:
        """The assistants that clients see in the list of models."""
        return tuple(assistant for assistant in self.by_id.values() if assistant.listed)

    def used(self) -> Mapping[str, tuple[Store, Embedder]]:
        """The store and embedder of each index in use, by name (`""` is the configured one); the first assistant's comes first."""
        names = dict.fromkeys(assistant.index for assistant in self.by_id.values())
        own = {name: self.indices[name] for name in names if name}
        return {name: (own[name].store, own[name].embedder) if name else (self.store, self.embedder) for name in names}

    async def health(self) -> Health:
        """The state of the service. Calls no model, but asks servers that were not called lately whether they are reachable."""
        states, _ = await asyncio.gather(self.index_states(), look_at_servers(self.breakers))
        first, *others = states.values()
        details: dict[str, Any] = {"memory_mb": peak_mb()} | (
            {"index": told} if (told := first.problem or first.lost) else {}
        )
        if others:
            named = zip(list(states)[1:], others, strict=True)
            details["indices"] = {name or "DOCS_STORE": state.summary() for name, state in named}
        if failing := {breaker.name: breaker.state for breaker in self.breakers if breaker.state}:
            details["failing"] = failing
        return Health(
            ok=first.ok,
            store=first.store_problem or "ok",
            index=first.info,
            model=self.model.name if self.model else "none: answers are extractive",
            embedder=first.embedder,
            details=details,
            parts=part_states(self.breakers),
        )

    async def ready(self) -> IndexState:
        """The state of the first assistant's index."""
        name = next(iter(self.used()))
        return (await self.index_states(name))[name]

    async def index_states(self, *names: str) -> Mapping[str, IndexState]:
        """The states of these indices, or of all in use, by name."""
        used = {name: parts for name, parts in self.used().items() if not names or name in names}
        for name, (store, embedder) in used.items():
            if name not in self.checks:
                self.checks[name] = IndexCheck(name, store, embedder, self.max_index_age)
        return dict(zip(used, await asyncio.gather(*(self.checks[name].state() for name in used)), strict=True))

    async def check_scores(self) -> None:
        """Check that rerankers and postprocessors work for their steps. Raises `SettingsError` if one doesn't."""
        steps = {step.name: step for assistant in self.by_id.values() for group in assistant.plan for step in group}
        for step in steps.values():
            if isinstance(step, ScoringStep):
                await step.check_scores()

    async def close(self) -> None:
        """Close all connections."""
        await self.store.close()
        await self.embedder.close()
        if self.model:
            await self.model.close()
        if self.reranker:
            await self.reranker.close()
        for other in self.others:
            await other.close()

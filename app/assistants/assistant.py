"""An assistant runs one pipeline on one index; all assistants share stores, models and prompts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Collection, Hashable, Iterable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from app.assistants.exam import Exam
from app.assistants.file import AssistantTable, NamedIndex
from app.assistants.health import Health, IndexCheck, IndexState, embedder_mismatch, look_at_servers, part_states
from app.assistants.query_engine import AnswerStream, AskedBundle, AssistantQueryEngine
from app.core.breaker import Breaker
from app.core.errors import IndexMismatch, NoIndex, RequestError, StillReading, StoreError, quoted
from app.core.process import peak_mb
from app.core.prompts import Prompts
from app.core.turn import AnswerRecord, Calls, CitingTrace, Events, Reasoning, Request, Status, Turn, Usage
from app.core.types import Chunk, Filters, Page
from app.index import Store
from app.index.ranking.fuse import read_address
from app.index.run_history import reading
from app.models import Embedder, Model
from app.models.protocols import Closable
from app.pipeline.conversation import with_answer_language
from app.pipeline.recording import Overrides, Recorder, overridden
from app.pipeline.registry import Tools, search_of, upto
from app.pipeline.runner import Group, Plan, ScoringStep, Step, answer, run
from app.pipeline.steps.cite import found_sections
from app.pipeline.steps.synthesize import Synthesize
from app.pipeline.trace import traced


@dataclass(frozen=True, slots=True)
class Plans:
    """What was built of the steps of an assistant: the plan of answers, the same without a language model (`lookup`), and
    that of a search as you type (`typing`).

    `left_out` lists steps that need a language model but have none; `helper_call_warning` is set if the limit of helper
    calls is too low for the steps.
    """

    answer: Plan
    lookup: Plan = ()
    typing: Plan = ()
    left_out: tuple[str, ...] = ()
    helper_call_warning: str = ""

    @property
    def asks_model(self) -> bool:
        """True if a step of an answer asks a language model."""
        return any(getattr(step, "model", None) for group in self.answer for step in group)


@dataclass(frozen=True)
class Assistant:
    """A pipeline that clients select as a model; it answers only from pages within `limits`, which a key may narrow.

    `table` is what assistants.toml says of it.
    """

    table: AssistantTable
    plans: Plans
    store: Store
    prompts: Prompts
    limits: Filters = field(default_factory=Filters)
    persona: str = ""
    directory: Path | None = None
    """Where the index is, if that is a directory: a run that fills it tells there how far it is."""

    @property
    def id(self) -> str:
        """The name by which clients select it."""
        return self.table.id

    @property
    def engine(self) -> AssistantQueryEngine:
        """The query engine of LlamaIndex that answers."""
        return AssistantQueryEngine(self._events)

    async def answer(self, request: Request, record: AnswerRecord | None = None) -> Events:
        """Answer a question from the live generation of the index, as events. `record` gets what the steps find out.

        Raises an `AssistantError` if it fails before the first text; a later failure is a `Failure` event. Closing the
        iterator cancels the upstream calls.
        """
        bundle = AskedBundle(request.question, request=request, record=record or AnswerRecord())
        response: AnswerStream = await self.engine.aquery(bundle)
        async with aclosing(response.events) as events:
            async for event in events:
                yield event

    async def _events(self, request: Request, record: AnswerRecord) -> Events:
        recorder = Recorder(record.began) if request.trace else None
        record.turn = await self.begin(request, record.calls)
        told, plan = False, recorder.watching(self.plans.answer) if recorder else self.plans.answer
        async with aclosing(self._ran(record, plan)) as statuses:
            async for searching in statuses:
                yield searching
                told = True
        turn, languages = record.turn, self.prompts.languages
        record.steps_ended(with_answer_language(turn, languages).asked.language)
        pages = str(len({hit.chunk.url for hit in turn.hits}))
        found = Status(languages[record.language].texts.found.replace("{count}", pages), done=True) if told else None
        if found and turn.passages and (reading_text := languages[record.language].texts.reading):
            yield Status(reading_text.replace("{count}", str(len(turn.passages))))
        elif found:
            yield found
            found = None
        events = answer(turn)
        async with aclosing(traced(events, turn, self.plans.answer, recorder) if recorder else events) as traced_events:
            async for event in traced_events:
                if found and not isinstance(event, Usage | Reasoning):  # the model has read
                    yield found
                    found = None
                yield event

    async def _ran(self, record: AnswerRecord, plan: Iterable[Group]) -> AsyncGenerator[Status, None]:
        """What a reader is told while the steps run, each of which changes the turn of the `record`."""
        assert record.turn
        language, early = None, record.turn.request.early and self.plans.asks_model
        for group in plan:
            turn = record.turn
            if not language and not turn.reply and (language := self.prompts.languages.get(turn.asked.language)):
                yield Status(language.texts.searching)
            record.turn = turn = await run((group,), turn)
            if early and language and (hits := turn.first_hits or turn.hits):
                early = False
                yield Status(language.texts.searching, sections=await found_sections(turn, hits, self.prompts))

    async def still_reading(self) -> Mapping[str, str]:
        """What readers are told while the first run reads the pages, by language; empty if no run does."""
        if (told := await asyncio.to_thread(reading, self.directory)) is None:
            return {}
        languages = self.prompts.languages.items()
        return {code: language.texts.still_reading.format_map(told) for code, language in languages}

    def overridden(self, overrides: Overrides) -> Assistant:
        """Returns a copy with other settings and prompts. Raises `RequestError` for an unknown or invalid prompt."""
        return replace(self, plans=replace(self.plans, answer=overridden(self.plans.answer, overrides)))

    def as_persona(self, id_: str, persona: str, **own: Any) -> Assistant:
        """Returns a copy with this id and persona, and its own values of keys of assistants.toml."""
        return replace(self, table=self.table.model_copy(update={"id": id_, **own}), persona=persona)

    async def edition(self) -> Hashable:
        """The editions of what its steps read beside the index, such as curated answers."""
        steps = (step for group in self.plans.answer for step in group)
        return tuple([await step.edition() for step in steps if isinstance(step, Step)])

    async def find(self, request: Request) -> Turn:
        """The turn after the passages are found, fused and reranked, without evidence check and synthesis."""
        return await run(search_of(self.plans.answer), await self.begin(request), search=True)

    async def assess(self, request: Request) -> Turn:
        """The turn after the evidence check, which decides whether the passages are relevant to the question."""
        return await run(upto(self.plans.answer, "evidence"), await self.begin(request))

    async def search(self, request: Request) -> Turn:
        """The turn after retrieval and, if the plan has it, reranking; never calls a language model."""
        plan = self.plans.typing if request.as_you_type else search_of(self.plans.lookup)
        return await run(plan, await self.begin(request), search=True)

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown; None if it isn't indexed or is outside this assistant's limits."""
        live = await self.store.live()
        page = await live.page(url)
        if page is None:
            return None
        # translations make a page available in more languages
        languages = {page.language, *(chunk.language for chunk in await live.fetch(page.derived.chunk_ids))}
        return page if self.limits.admits(page.url, page.collection, languages, page.versions) else None

    async def page_of_reader(self, address: str) -> Page | None:
        """The indexed page that a reader looks at, with or without a slash or `index.html` at the end of its address; None as in `page`."""
        bare = "".join(read_address(address))
        for form in dict.fromkeys((address, bare, f"{bare}/", f"{bare}/index.html")):
            if page := await self.page(form):
                return page
        return None

    async def around(self, id_: str) -> tuple[str, Chunk, str] | None:
        """The chunk between the texts before and after it on its page, empty at its ends; None outside this assistant's limits."""
        live = await self.store.live()
        chunks = await live.fetch([id_])
        page = await self.page(chunks[0].url) if chunks else None
        if page is None:
            return None
        at = page.derived.chunk_ids.index(id_)
        before, after = page.derived.chunk_ids[:at][-1:], page.derived.chunk_ids[at + 1 :][:1]
        near = await live.fetch([*before, *after])
        texts = {chunk.id: chunk.text for chunk in near if chunk.language == chunks[0].language}
        return "".join(texts.get(id_, "") for id_ in before), chunks[0], "".join(texts.get(id_, "") for id_ in after)

    async def begin(self, request: Request, calls: Calls | None = None) -> Turn:
        """The turn before the first step, with this assistant's limits and persona, on the live generation.

        Raises `NoIndex` without any, `StillReading` if a first run reads the pages.
        """
        if request.persona and request.persona not in (personas := self.prompts.personas):
            raise RequestError(
                f"There is no persona {quoted(request.persona)} here. Available: {', '.join(sorted(personas)) or 'none'}.",
                param="persona",
            )
        filters = request.filters.narrowed(self.limits)
        request = replace(request, filters=filters, persona=request.persona or self.persona)
        citing = CitingTrace() if request.trace else None
        try:
            generation = await self.store.live()
        except NoIndex as error:
            if not (said := await self.still_reading()):
                raise
            turn = await run(self.plans.answer[:1], Turn(request=request, generation=None))
            raise StillReading(said[turn.asked.language]) from error
        return Turn(request=request, generation=generation, calls=calls or Calls(), citing=citing)


@dataclass(frozen=True)
class Assistants:
    """All assistants and their shared parts; close it after use.

    `indices` are by name, which is empty for the configured one. `parts` are the stores and models to close at the end.
    `timeout` is the longest that is set for a model, in seconds. `exams` has the results of those that are heeded, by the model's name;
    `heeding` makes the assistants that heed the results that it is given.
    """

    by_id: dict[str, Assistant]
    indices: Mapping[str, NamedIndex]
    tools: Tools
    parts: tuple[Closable, ...]
    breakers: tuple[Breaker, ...]
    timeout: float
    heeding: Callable[[Mapping[str, Exam]], Mapping[str, Assistant]] = field(repr=False)
    exams: dict[str, Exam] = field(default_factory=dict)
    created: int = field(default_factory=lambda: int(time.time()))
    checks: dict[str, IndexCheck] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """The configured store."""
        return self.indices[""].store

    @property
    def model(self) -> Model | None:
        """The configured language model; None without one."""
        return self.tools.model

    @property
    def prompts(self) -> Prompts:
        """The prompts and texts that all assistants share."""
        return self.tools.prompts

    @property
    def embedder(self) -> Embedder:
        """The configured embedder."""
        return self.indices[""].embedder

    @property
    def llm_timeout(self) -> float:
        """The longest time-out with which a model is asked for an answer, in seconds."""
        steps = (step for assistant in self.by_id.values() for group in assistant.plans.answer for step in group)
        return max([self.timeout, *(step.settings.llm_timeout for step in steps if isinstance(step, Synthesize))])

    def heed(self, exam: Exam) -> None:
        """Answer the next questions as this exam says, in place of an earlier one of its model."""
        exams = {**self.exams, exam.model: exam}
        self.by_id.update(self.heeding(exams))
        self.exams.update(exams)

    def get(self, name: str) -> Assistant:
        """The assistant of this name; the first one if the name is empty. `name:persona` selects a persona of it.

        Raises `RequestError` with the code `model_not_found` for an unknown name.
        """
        if not name:
            return next(iter(self.by_id.values()))
        base, _, persona = name.rpartition(":")  # ids may contain colons; personas, which are file names, may not
        if name not in self.by_id and base in self.by_id and persona in self.prompts.personas:
            return self.by_id[base].as_persona(name, persona)
        if name not in self.by_id:
            tones = ", ".join(self.prompts.personas) if base in self.by_id else ""
            hint = f" Tones of {base}, as {base}:name, are: {tones}." if tones else ""
            raise RequestError(
                f"There is no model {quoted(name)} here. Available: {', '.join(self.by_id)}.{hint}",
                param="model",
                code="model_not_found",
            )
        return self.by_id[name]

    def within(self, ids: Collection[str], collections: tuple[str, ...]) -> Assistants:
        """Returns a copy with these assistants and their personas, limited to these collections. Empty sets no limit."""
        return replace(
            self,
            by_id={
                id_: replace(assistant, limits=assistant.limits.within(collections))
                for id_, assistant in self.by_id.items()
                if not ids or id_ in ids or (assistant.persona and id_.removesuffix(f":{assistant.persona}") in ids)
            },
        )

    def listed(self) -> tuple[Assistant, ...]:
        """The assistants that clients see in the list of models."""
        return tuple(assistant for assistant in self.by_id.values() if assistant.table.listed)

    def empty_collections(self, pages: Mapping[str, Collection[str]]) -> dict[str, list[str]]:
        """For each assistant, its collections without a page. `pages` has the collections with pages of each index by name.

        Assistants whose index isn't in `pages` are left out.
        """
        lacking = {
            a.id: [name for name in a.limits.collections if name not in pages[a.table.index]]
            for a in self.by_id.values()
            if a.table.index in pages
        }
        return {id_: names for id_, names in lacking.items() if names}

    def used(self) -> Mapping[str, NamedIndex]:
        """The indices in use, by name; the first assistant's comes first."""
        return {name: self.indices[name] for name in (assistant.table.index for assistant in self.by_id.values())}

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
        if self.model and (exam := self.exams.get(self.model.name)):
            details["exam"] = exam.said
        if refused := {part.name: part.refused for part in self.parts if isinstance(part, Model) and part.refused}:
            details["refused"] = refused
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
        used = {name: index for name, index in self.used().items() if not names or name in names}
        for name, index in used.items():
            if name not in self.checks:
                self.checks[name] = IndexCheck(name, index.store, index.embedder, self.tools.settings.max_index_age)
        return dict(zip(used, await asyncio.gather(*(self.checks[name].state() for name in used)), strict=True))

    async def check_scores(self) -> None:
        """Check that rerankers and postprocessors work for their steps. Raises `SettingsError` if one doesn't."""
        steps = {
            step.name: step for assistant in self.by_id.values() for group in assistant.plans.answer for step in group
        }
        for step in steps.values():
            if isinstance(step, ScoringStep):
                await step.check_scores()

    async def check_embedders(self) -> None:
        """Raises `IndexMismatch` if the embedder of an index that is used can't be opened; ignores an index that isn't there."""
        for index in self.used().values():
            try:
                built = (await index.store.live()).info
            except StoreError:
                continue
            if embedder_mismatch(built, index.embedder):
                raise IndexMismatch(
                    f"The index was built with the embedder {built.recipe.embedder}, and {index.embedder.name} is set:"
                    " set the embedder of the index, or index the sites again."
                )

    async def close(self) -> None:
        """Close all connections."""
        for part in self.parts:
            await part.close()

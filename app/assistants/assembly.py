"""Builds the assistants of assistants.toml, with their stores, models and prompts, from the settings."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import TypeVar

from app.assistants.assistant import Assistant, Assistants, Plans
from app.assistants.exam import Exam, kept
from app.assistants.file import (
    AssistantsFile,
    AssistantTable,
    NamedIndex,
    NamedModel,
    naming_file,
    open_indices,
    open_models,
    read_assistants,
)
from app.core.errors import SettingsError, did_you_mean
from app.core.prompts import Prompts, check_folder, load_prompts, placeholders
from app.core.settings import Settings
from app.index import directory_of, open_store
from app.index.guarded import GuardedStore
from app.models import Model, open_embedder, open_model, open_reranker
from app.pipeline.conversation import with_patience
from app.pipeline.registry import StepFactory, Tools, flat, helper_call_warning, make_plan, own_prompts
from app.pipeline.runner import Plan
from app.pipeline.steps.postprocess import Postprocess
from app.pipeline.type_ahead import TypeAhead
from app.text.language import LanguageDetector
from app.text.synonyms import synonym_file


def build(settings: Settings, *, model: Model | None = None, file: AssistantsFile | None = None) -> Assistants:
    """Build all assistants. `model` replaces the configured language models, `file` the content of the configured file.

    Raises `SettingsError` for invalid settings.
    """
    if settings.default_language not in settings.languages:
        raise SettingsError(
            f"DOCS_DEFAULT_LANGUAGE is {settings.default_language!r}, but DOCS_LANGUAGES has only {', '.join(settings.languages)}."
        )
    prompts = load_prompts(settings.languages, settings.prompts)
    override = model
    model = model or open_model(settings)
    embedder = open_embedder(settings)
    store = GuardedStore(open_store(settings), "the store")
    detector = LanguageDetector(prompts.languages, settings.default_language)
    reranker = open_reranker(settings)
    exams = kept(settings) if settings.tuning.heed_exam else {}
    bare = Tools(settings, prompts, detector, model, embedder, reranker, store, synonym_file(settings.prompts))
    file = file or read_assistants(settings)
    with naming_file(settings):
        models = {
            id_: replace(named, model=override or named.model)
            for id_, named in open_models(file.models, settings).items()
        }
        indices = {"": NamedIndex("", store, embedder, settings)} | {
            id_: replace(named, store=GuardedStore(named.store, f"the store of {named.name}"))
            for id_, named in open_indices(file.indices, settings).items()
        }
        steps = file.known_steps()

        def heeding(exams: Mapping[str, Exam]) -> dict[str, Assistant]:
            return _by_id(file, _heeding(bare, exams, settings), _Extras(models, indices, steps, exams))

        by_id = heeding(exams)
    if settings.prompts:
        check_folder(settings.prompts, settings.languages, placeholders(), own_prompts(steps.values()))
    asked = [part for part in (model, reranker) if part] + [named.model for named in models.values()]
    parts = [*asked, *(part for index in indices.values() for part in (index.store, index.embedder))]
    running = (step for assistant in by_id.values() for group in assistant.plans.answer for step in group)
    processors = dict.fromkeys(step.postprocessor for step in running if isinstance(step, Postprocess))
    return Assistants(
        by_id,
        indices,
        bare,
        tuple(parts),
        breakers=tuple(breaker for guard in (*parts, *processors) for breaker in getattr(guard, "breakers", ())),
        exams=dict(exams),
        timeout=max([settings.llm_timeout, *(named.settings.llm_timeout for named in models.values())]),
        heeding=heeding,
    )


def _by_id(file: AssistantsFile, tools: Tools, named: _Extras) -> dict[str, Assistant]:
    """The assistants and their listed or named personas, by id."""
    by_id: dict[str, Assistant] = {}
    for entry in file.assistants:
        try:
            several = list(_with_personas(_assistant(entry, tools, named), tools.prompts))
        except SettingsError as error:
            raise SettingsError(f"assistant {entry.id!r}: {error}") from error
        for assistant in several:
            if assistant.id in by_id:
                raise SettingsError(f"assistant {assistant.id!r}: another with its persona has this id.")
            by_id[assistant.id] = assistant
    return by_id


@asynccontextmanager
async def opened(
    settings: Settings, *, model: Model | None = None, by_meaning: bool = False, file: AssistantsFile | None = None
) -> AsyncIterator[Assistants]:
    """Context of the assistants that `build` returns; closes them at the end.

    Raises `IndexMismatch` if they must search `by_meaning`, and an index has vectors of an embedder that can't be opened. A
    service answers by words alone then.
    """
    assistants = build(settings, model=model, file=file)
    try:
        await assistants.check_scores()
        if by_meaning:
            await assistants.check_embedders()
        yield assistants
    finally:
        await assistants.close()


def _with_personas(assistant: Assistant, prompts: Prompts) -> Iterator[Assistant]:
    """The assistant, then one for each of its personas in assistants.toml."""
    yield assistant
    for persona in assistant.table.persona:
        if persona.id not in prompts.personas:
            raise SettingsError(
                f"it has the persona {persona.id!r}, but there is no file prompts/<language>/persona/{persona.id}.md."
            )
        names = persona.names or {code: f"{name} ({persona.id})" for code, name in assistant.table.names.items()}
        yield assistant.as_persona(f"{assistant.id}:{persona.id}", persona.id, names=names, listed=persona.listed)


@dataclass(frozen=True, slots=True)
class _Extras:
    """The models and indices of assistants.toml, in addition to the configured ones, all steps, and the exams of models."""

    models: Mapping[str, NamedModel]
    indices: Mapping[str, NamedIndex]
    steps: Mapping[str, StepFactory]
    exams: Mapping[str, Exam]

    def tools(self, entry: AssistantTable, tools: Tools) -> Tools:
        """The tools of an assistant, with the index and the model that it names."""
        if entry.index:
            index = _lookup(self.indices, entry.index, "index")
            tools = replace(tools, embedder=index.embedder, settings=index.settings, store=index.store)
        if entry.unproven:
            tuning = tools.settings.tuning.model_copy(update={"unproven": entry.unproven})
            tools = replace(tools, settings=tools.settings.model_copy(update={"tuning": tuning}))
        return self._with_model(entry.model, tools) if entry.model else tools

    def by_step(self, entry: AssistantTable, tools: Tools) -> Mapping[str, Tools]:
        """The tools of the assistant's steps that use a different model, by step."""
        return {step: self._with_model(name, tools) for step, name in entry.models.items()}

    def _with_model(self, name: str, tools: Tools) -> Tools:
        named = _lookup(self.models, name, "model")
        limits = ("llm_timeout", "llm_context_window", "llm_max_tokens", "llm_form")
        own = {limit: named.settings.value(limit) for limit in limits}
        asked = replace(tools, model=named.model, settings=tools.settings.model_copy(update=own))
        return _heeding(asked, self.exams, named.settings)


def _heeding(tools: Tools, exams: Mapping[str, Exam], written: Settings) -> Tools:
    """The tools as the exam of their model says, if it has had one; `written` are the settings of that model."""
    settings, exam = tools.settings, exams.get(tools.model.name) if tools.model else None
    if exam is None:
        return replace(tools, left_out=frozenset(), quoted=frozenset())
    if exam.form == "short" and settings.tuning.llm_form == "auto":
        settings = settings.model_copy(update={"llm_form": "short"})
    if exam.characters and tools.model:
        tools.model.reading.told(exam.characters)
        settings = with_patience(settings, tools.prompts, written, characters=exam.characters, writes=exam.writes)
    return replace(tools, settings=settings, left_out=frozenset(exam.left_out), quoted=exam.quoted)


T = TypeVar("T")


def _lookup(known: Mapping[str, T], name: str, kind: str) -> T:
    if name not in known:
        there = ", ".join(known) or "none"
        raise SettingsError(
            f"it uses the {kind} {name!r}, but there is no such [[{kind}]].{did_you_mean(name, known)} Available: {there}."
        )
    return known[name]


def _without_models(plan: Plan) -> Plan:
    """The plan without postprocessors that have a language model of their own."""
    groups = (
        tuple(step for step in group if not (isinstance(step, Postprocess) and step.postprocessor.asks_model))
        for group in plan
    )
    return tuple(group for group in groups if group)


def _limited_to_languages(entry: AssistantTable, tools: Tools) -> Tools:
    """The tools with a detector whose default language is among the languages that the assistant is limited to."""
    languages, default = tools.prompts.languages, tools.settings.default_language
    own = [code for code in entry.languages if code in languages]
    if not own or default in own:
        return tools
    return replace(tools, detector=LanguageDetector(languages, own[0]))


def _assistant(entry: AssistantTable, tools: Tools, named: _Extras) -> Assistant:
    own = _limited_to_languages(entry, named.tools(entry, tools))
    plan = make_plan(entry.steps, own, named.by_step(entry, own), named.steps)
    running = {step.name for group in plan for step in group}
    plans = Plans(
        plan,
        lookup=_without_models(make_plan(entry.steps, replace(own, model=None), known=named.steps)),
        typing=((TypeAhead(own.prompts, own.settings, own.detector),),),
        left_out=tuple(name for name in flat(entry.steps) if name not in running),
        helper_call_warning=helper_call_warning(plan, own.settings.tuning.helper_calls),
    )
    directory = directory_of(tools.settings) if not entry.index else None
    return Assistant(entry, plans, named.indices[entry.index].store, tools.prompts, entry.limits, directory=directory)

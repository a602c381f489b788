"""Puts the service together: settings -> store, models, prompts, and the assistants of assistants.toml."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, TypeVar

from app.assistants_file import KEYS, LIMITS, names, read_assistants, shown_sources, suggestions
from app.core.errors import AssistantError, NoIndex, RequestError, SettingsError
from app.core.language import LanguageDetector
from app.core.models import Embedder, Model, open_embedder, open_model, open_reranker
from app.core.models.named import NamedIndex, NamedModel, open_indices, open_models
from app.core.models.rerank import Reranker
from app.core.prompts import Language, Prompts, load_prompts
from app.core.settings import Settings
from app.core.store import Store, open_store
from app.core.turn import Events, Request, Status, Turn
from app.core.types import Filters, GenerationInfo, Page
from app.pipeline.registry import Tools, flat, make_plan, upto
from app.pipeline.rerank import Rerank
from app.pipeline.step import Plan, run
from app.pipeline.trace import traced


@dataclass(frozen=True)
class Assistant:
    """One pipeline under the name of a model; `limits`, as `collections`, are what it never answers from beyond.

    `lookup` are its steps without a language model. `descriptions` and `suggestions` (first questions) are shown to
    readers, by language; `sources` says how its sources are sent, empty where that depends on the client. `left_out` are
    steps that need a language model and have none.
    """

    id: str
    names: Mapping[str, str]
    plan: Plan
    store: Store
    collections: tuple[str, ...] = ()
    listed: bool = True
    persona: str = ""
    lookup: Plan = ()
    languages: Mapping[str, Language] = field(default_factory=dict)
    descriptions: Mapping[str, str] = field(default_factory=dict)
    suggestions: Mapping[str, Sequence[str]] = field(default_factory=dict)
    sources: str = ""
    limits: Filters = field(default_factory=Filters)
    personas: frozenset[str] = frozenset()
    left_out: tuple[str, ...] = ()

    async def answer(self, request: Request) -> Events:
        """The answer's events, on the index as it is now.

        Raises an `AssistantError` before the first text when it can't answer; later failures are a
        `Failure` event. Closing the iterator cancels the work upstream.
        """
        turn, texts = await self.begin(request), None
        for group in self.plan:
            if not texts and not turn.smalltalk and (texts := self.languages.get(turn.language)):
                yield Status(texts.searching)
            turn = await run((group,), turn)
        if texts:
            yield Status(texts.found.replace("{count}", str(len({hit.chunk.url for hit in turn.hits}))), done=True)
        assert turn.events is not None  # proved by make_plan
        async with aclosing(traced(turn.events, turn, self.plan) if request.trace else turn.events) as events:
            async for event in events:
                yield event

    async def find(self, request: Request) -> Turn:
        """The turn as it is once the passages are ranked; nothing is judged or synthesized."""
        return await run(upto(self.plan, "search"), await self.begin(request))

    async def weigh(self, request: Request) -> Turn:
        """The turn as it is once it was judged whether the passages say anything of the question."""
        return await run(upto(self.plan, "evidence"), await self.begin(request))

    async def search(self, request: Request) -> Turn:
        """As `find`, without asking a language model."""
        return await run(upto(self.lookup, "search"), await self.begin(request))

    async def page(self, url: str) -> Page | None:
        """The page with its Markdown; None where there is none in this assistant's collections."""
        page = await (await self.store.live()).page(url)
        return page if page and (not self.collections or page.collection in self.collections) else None

    async def begin(self, request: Request) -> Turn:
        """The turn before its first step: within this assistant's limits, in its tone, on the index as it is now."""
        if request.persona and request.persona not in self.personas:
            raise RequestError(
                f"There is no persona {request.persona!r} here. There is: {', '.join(sorted(self.personas)) or 'none'}.",
                param="persona",
            )
        filters = request.filters.within(self.collections).narrowed(self.limits)
        request = replace(request, filters=filters, persona=request.persona or self.persona)
        return Turn(request=request, generation=await self.store.live())


@dataclass(frozen=True)
class Health:
    """Whether questions can be answered, and what with."""

    ok: bool
    store: str
    index: GenerationInfo | None
    model: str
    embedder: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Closable(Protocol):
    """What holds connections."""

    async def close(self) -> None:
        """Let go of them."""
        ...


@dataclass(frozen=True)
class Assistants:
    """All assistants and what they share. Close it when done."""

    by_id: Mapping[str, Assistant]
    store: Store
    model: Model | None
    embedder: Embedder
    reranker: Reranker | None
    prompts: Prompts
    created: int
    others: tuple[Closable, ...] = ()

    def get(self, name: str) -> Assistant:
        """The assistant of this name; the first one for an empty name. `name:persona` writes in that tone."""
        if not name:
            return next(iter(self.by_id.values()))
        base, _, persona = name.partition(":")
        if name not in self.by_id and base in self.by_id and persona in self.prompts.personas:
            return replace(self.by_id[base], id=name, persona=persona, listed=False)
        if name not in self.by_id:
            known = ", ".join(self.by_id)
            raise RequestError(
                f"There is no model {name!r} here. There is: {known}. {self._tones(base)}".rstrip(),
                param="model",
                code="model_not_found",
            )
        return self.by_id[name]

    def _tones(self, base: str) -> str:
        tones = ", ".join(self.prompts.personas)
        return f"Tones of {base}, as {base}:name, are: {tones}." if base in self.by_id and tones else ""

    def listed(self) -> tuple[Assistant, ...]:
        """Those that are shown to clients."""
        return tuple(assistant for assistant in self.by_id.values() if assistant.listed)

    async def health(self) -> Health:
        """What can be said without asking a model."""
        model = self.model.name if self.model else "none: answers are extractive"
        try:
            info = (await self.store.live()).info
        except NoIndex as error:
            return Health(
                ok=False,
                store="ok",
                index=None,
                model=model,
                embedder=self.embedder.name,
                details={"index": str(error)},
            )
        except AssistantError as error:
            return Health(ok=False, store=str(error), index=None, model=model, embedder=self.embedder.name)
        fits = info.recipe.embedder == self.embedder.name
        details = (
            {} if fits else {"index": f"built with the embedder {info.recipe.embedder}: index anew, or set that one"}
        )
        return Health(ok=fits, store="ok", index=info, model=model, embedder=self.embedder.name, details=details)

    async def prove(self) -> None:
        """Ask what only a server can tell. Raises `SettingsError` where a step couldn't work with what it says."""
        steps = [step for one in self.by_id.values() for group in one.plan for step in group]
        if first := next((step for step in steps if isinstance(step, Rerank)), None):
            await first.prove()

    async def close(self) -> None:
        """Let go of all connections."""
        await self.store.close()
        await self.embedder.close()
        if self.model:
            await self.model.close()
        if self.reranker:
            await self.reranker.close()
        for other in self.others:
            await other.close()


def build(settings: Settings, *, model: Model | None = None) -> Assistants:
    """Everything from settings; `model` stands in for the configured language model. Wrong ones raise `SettingsError`."""
    if settings.default_language not in settings.languages:
        raise SettingsError(
            f"DOCS_DEFAULT_LANGUAGE is {settings.default_language!r}, but DOCS_LANGUAGES has only {', '.join(settings.languages)}."
        )
    prompts = load_prompts(settings.languages, settings.prompts)
    stand_in, model = model, model or open_model(settings)
    embedder = open_embedder(settings)
    store = open_store(settings)
    detector = LanguageDetector(prompts.languages, settings.default_language)
    reranker = open_reranker(settings)
    tools = Tools(settings, prompts, detector, model, embedder, reranker)
    file = read_assistants(settings)
    named = _Named(open_models(file.models, settings), open_indices(file.indices, settings))
    if stand_in:
        named = replace(named, models={id_: replace(one, model=stand_in) for id_, one in named.models.items()})
    assistants = [
        one
        for entry in file.assistants
        for one in _with_personas(_assistant(entry, tools, store, named), entry, prompts)
    ]
    by_id = {assistant.id: assistant for assistant in assistants}
    if len(by_id) != len(assistants):
        raise SettingsError("Two assistants in assistants.toml have the same id.")
    others: list[Closable] = [one.model for one in named.models.values()]
    others += [part for one in named.indices.values() for part in (one.store, one.embedder)]
    return Assistants(by_id, store, model, embedder, reranker, prompts, int(time.time()), tuple(others))


@asynccontextmanager
async def opened(settings: Settings, *, model: Model | None = None) -> AsyncIterator[Assistants]:
    """`build`, closed at the end."""
    assistants = build(settings, model=model)
    try:
        await assistants.prove()
        yield assistants
    finally:
        await assistants.close()


def _with_personas(assistant: Assistant, entry: Mapping[str, Any], prompts: Prompts) -> Iterator[Assistant]:
    """The assistant, and those tones of it that have a name of their own or are listed."""
    yield assistant
    tones = entry.get("persona", [])
    if not isinstance(tones, list) or not all(isinstance(tone, dict) and tone.get("id") for tone in tones):
        raise SettingsError(
            f"assistants.toml: write each persona of {assistant.id} as [[assistant.persona]] with an id."
        )
    for tone in tones:
        if unknown := set(tone) - {"id", "names", "listed"}:
            raise SettingsError(
                f"assistants.toml: unknown {', '.join(sorted(unknown))} in a persona of {assistant.id}."
            )
        if tone["id"] not in prompts.personas:
            raise SettingsError(
                f"assistants.toml: {assistant.id} has the persona {tone['id']!r}, but there is no file prompts/<language>/persona/{tone['id']}.md."
            )
        id_ = f"{assistant.id}:{tone['id']}"
        names = dict(tone.get("names", {})) or {
            code: f"{name} ({tone['id']})" for code, name in assistant.names.items()
        }
        yield replace(assistant, id=id_, names=names, listed=bool(tone.get("listed", False)), persona=tone["id"])


@dataclass(frozen=True, slots=True)
class _Named:
    """What assistants and steps can be made of besides the configured model and index."""

    models: Mapping[str, NamedModel]
    indices: Mapping[str, NamedIndex]

    def tools(self, entry: Mapping[str, Any], tools: Tools) -> Tools:
        """Those of an assistant."""
        if index := entry.get("index"):
            found = _chosen(self.indices, index, "index", entry)
            tools = replace(tools, embedder=found.embedder, settings=found.settings)
        return self._asking(entry, entry.get("model"), tools)

    def by_step(self, entry: Mapping[str, Any], tools: Tools) -> Mapping[str, Tools]:
        """Those of its steps that ask another model."""
        models = entry.get("models", {})
        if not isinstance(models, dict):
            raise SettingsError(f'assistants.toml: {entry["id"]}: write models as {{ keywords = "small" }}.')
        return {str(step): self._asking(entry, name, tools) for step, name in models.items()}

    def _asking(self, entry: Mapping[str, Any], name: object, tools: Tools) -> Tools:
        if not name:
            return tools
        found = _chosen(self.models, name, "model", entry)
        limits = ("llm_timeout", "llm_context_window", "llm_max_tokens")
        own = {limit: getattr(found.settings, limit) for limit in limits}
        return replace(tools, model=found.model, settings=tools.settings.model_copy(update=own))


T = TypeVar("T")


def _chosen(known: Mapping[str, T], name: object, kind: str, entry: Mapping[str, Any]) -> T:
    if not isinstance(name, str) or name not in known:
        there = ", ".join(known) or "none"
        raise SettingsError(
            f"assistants.toml: {entry['id']} uses the {kind} {name!r}, but there is no such [[{kind}]]. There is: {there}."
        )
    return known[name]


def _assistant(entry: Mapping[str, Any], tools: Tools, store: Store, named: _Named) -> Assistant:
    if unknown := set(entry) - KEYS:
        raise SettingsError(f"assistants.toml: unknown {', '.join(sorted(unknown))}. Known: {', '.join(sorted(KEYS))}.")
    if not entry.get("id") or not entry.get("steps"):
        raise SettingsError("assistants.toml: each [[assistant]] needs an id and steps.")
    own = named.tools(entry, tools)
    by_step = named.by_step(entry, own)
    plan = make_plan(entry["steps"], own, by_step)
    running = {step.name for group in plan for step in group}
    return Assistant(
        id=str(entry["id"]),
        names=dict(entry.get("names", {})),
        plan=plan,
        left_out=tuple(name for name in flat(entry["steps"]) if name not in running),
        store=named.indices[entry["index"]].store if entry.get("index") else store,
        collections=names(entry, "collections"),
        listed=bool(entry.get("listed", True)),
        lookup=make_plan(entry["steps"], replace(own, model=None)),
        languages=tools.prompts.languages,
        personas=frozenset(tools.prompts.personas),
        descriptions=dict(entry.get("descriptions", {})),
        suggestions=suggestions(entry),
        sources=shown_sources(entry),
        limits=Filters(**{field: names(entry, key) for key, field in LIMITS.items()}),
    )

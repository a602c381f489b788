"""Puts the service together: settings -> store, models, prompts, and the assistants of assistants.toml."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from app.assistant import Assistant, Assistants, Closable
from app.assistants_file import KEYS, LIMITS, names, read_assistants, shown_sources, suggestions
from app.core.errors import SettingsError
from app.core.filters import Filters
from app.core.language import LanguageDetector
from app.core.models import Model, open_embedder, open_model, open_reranker
from app.core.models.named import NamedIndex, NamedModel, open_indices, open_models
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.store import Store, open_store
from app.pipeline.registry import Tools, flat, make_plan


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


def _speaking(entry: Mapping[str, Any], tools: Tools) -> Tools:
    """The tools of an assistant that is limited to some languages: where a question shows none, it is in one of those."""
    languages, default = tools.prompts.languages, tools.settings.default_language
    own = [code for code in names(entry, "languages") if code in languages]
    if not own or default in own:
        return tools
    return replace(tools, detector=LanguageDetector(languages, own[0]))


def _assistant(entry: Mapping[str, Any], tools: Tools, store: Store, named: _Named) -> Assistant:
    if unknown := set(entry) - KEYS:
        raise SettingsError(f"assistants.toml: unknown {', '.join(sorted(unknown))}. Known: {', '.join(sorted(KEYS))}.")
    if not entry.get("id") or not entry.get("steps"):
        raise SettingsError("assistants.toml: each [[assistant]] needs an id and steps.")
    own = _speaking(entry, named.tools(entry, tools))
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

"""Puts the service together: settings -> store, models, prompts, and the assistants of assistants.toml."""

from __future__ import annotations

import time
import tomllib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, field, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.core.errors import AssistantError, NoIndex, RequestError, SettingsError
from app.core.language import LanguageDetector
from app.core.models import Embedder, Model, open_embedder, open_model
from app.core.prompts import Prompts, load_prompts
from app.core.settings import Settings
from app.core.store import Store, open_store
from app.core.turn import Events, Request, Turn
from app.core.types import Filters, GenerationInfo
from app.pipeline.registry import Tools, make_plan, upto
from app.pipeline.step import Plan, run


@dataclass(frozen=True)
class Assistant:
    """One pipeline under the name of a model; `limits`, as `collections`, are what it never answers from beyond."""

    id: str
    names: Mapping[str, str]
    plan: Plan
    store: Store
    collections: tuple[str, ...] = ()
    listed: bool = True
    limits: Filters = field(default_factory=Filters)

    async def answer(self, request: Request) -> Events:
        """The answer's events, on the index as it is now.

        Raises an `AssistantError` before the first text when it can't answer; later failures are a
        `Failure` event. Closing the iterator cancels the work upstream.
        """
        turn = await run(self.plan, await self._turn(request))
        assert turn.events is not None  # proved by make_plan
        async with aclosing(turn.events) as events:
            async for event in events:
                yield event

    async def find(self, request: Request) -> Turn:
        """The turn as it is once the passages are ranked; nothing is judged or synthesized."""
        return await run(upto(self.plan, "search"), await self._turn(request))

    async def _turn(self, request: Request) -> Turn:
        request = replace(request, filters=request.filters.within(self.collections).narrowed(self.limits))
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


@dataclass(frozen=True)
class Assistants:
    """All assistants and what they share. Close it when done."""

    by_id: Mapping[str, Assistant]
    store: Store
    model: Model | None
    embedder: Embedder
    prompts: Prompts
    created: int

    def get(self, name: str) -> Assistant:
        """The assistant of this name; the first one for an empty name."""
        if not name:
            return next(iter(self.by_id.values()))
        if name not in self.by_id:
            known = ", ".join(self.by_id)
            raise RequestError(
                f"There is no model {name!r} here. There is: {known}.", param="model", code="model_not_found"
            )
        return self.by_id[name]

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

    async def close(self) -> None:
        """Let go of all connections."""
        await self.store.close()
        await self.embedder.close()
        if self.model:
            await self.model.close()


def build(settings: Settings, *, model: Model | None = None) -> Assistants:
    """Everything from settings; `model` stands in for the configured language model. Wrong ones raise `SettingsError`."""
    if settings.default_language not in settings.languages:
        raise SettingsError(
            f"DOCS_DEFAULT_LANGUAGE is {settings.default_language!r}, but DOCS_LANGUAGES has only {', '.join(settings.languages)}."
        )
    prompts = load_prompts(settings.languages, settings.prompts)
    model = model or open_model(settings)
    embedder = open_embedder(settings)
    store = open_store(settings)
    detector = LanguageDetector(prompts.languages, settings.default_language)
    tools = Tools(settings, prompts, detector, model, embedder)
    assistants = [_assistant(entry, tools, store) for entry in _entries(settings)]
    by_id = {assistant.id: assistant for assistant in assistants}
    if len(by_id) != len(assistants):
        raise SettingsError("Two assistants in assistants.toml have the same id.")
    return Assistants(by_id, store, model, embedder, prompts, int(time.time()))


@asynccontextmanager
async def opened(settings: Settings, *, model: Model | None = None) -> AsyncIterator[Assistants]:
    """`build`, closed at the end."""
    assistants = build(settings, model=model)
    try:
        yield assistants
    finally:
        await assistants.close()


def _entries(settings: Settings) -> Sequence[Mapping[str, Any]]:
    name = settings.assistants or "the shipped assistants.toml"
    try:
        if settings.assistants:
            text = Path(settings.assistants).read_text(encoding="utf-8")
        else:
            text = files("app").joinpath("assistants.toml").read_text(encoding="utf-8")
        entries = tomllib.loads(text).get("assistant", [])
    except OSError as error:
        raise SettingsError(f"DOCS_ASSISTANTS={name} can't be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name} is no valid TOML: {error}") from error
    if not isinstance(entries, list) or not entries:
        raise SettingsError(f"{name} has no [[assistant]] in it.")
    return entries


LIMITS = {"languages": "languages", "sites": "url_prefixes", "sections": "sections", "versions": "versions"}
KEYS = {"id", "names", "steps", "collections", "listed", *LIMITS}


def _assistant(entry: Mapping[str, Any], tools: Tools, store: Store) -> Assistant:
    if unknown := set(entry) - KEYS:
        raise SettingsError(f"assistants.toml: unknown {', '.join(sorted(unknown))}. Known: {', '.join(sorted(KEYS))}.")
    if not entry.get("id") or not entry.get("steps"):
        raise SettingsError("assistants.toml: each [[assistant]] needs an id and steps.")
    return Assistant(
        id=str(entry["id"]),
        names=dict(entry.get("names", {})),
        plan=make_plan(entry["steps"], tools),
        store=store,
        collections=_names(entry, "collections"),
        listed=bool(entry.get("listed", True)),
        limits=Filters(**{field: _names(entry, key) for key, field in LIMITS.items()}),
    )


def _names(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names under a key; none where the assistant isn't limited by it."""
    names = entry.get(key)
    if names is None:
        return ()
    # a lone string would pass for a list of letters, and an empty list for no limit
    if not isinstance(names, list) or not names or not all(isinstance(name, str) and name.strip() for name in names):
        raise SettingsError(
            f'assistants.toml: {entry["id"]} has {key} = {names!r}. Write a list of names, as ["docs", "blog"], '
            "or leave it out to answer from all."
        )
    if doubled := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise SettingsError(f"assistants.toml: {entry['id']} names {doubled[0]!r} twice in {key}.")
    return tuple(names)

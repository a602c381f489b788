"""Steps from outside this package: those of a project, and postprocessors of LlamaIndex.

A step in assistants.toml is the name of a shipped step, the id of a `[[step]]`, the name of an entry point in the group
`docs_assistant.steps`, or `module:Class`. Each is checked when the service starts, as the shipped ones are.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from importlib.metadata import entry_points
from inspect import getfile, iscoroutinefunction, signature
from pathlib import Path
from typing import Any

from app.core.errors import SettingsError, StepError
from app.core.plugins import check_arguments, instance, load
from app.core.turn import Turn
from app.models.postprocessor import Scores, is_postprocessor, open_postprocessor
from app.pipeline.registry import STEPS, NoModel, NoReranker, StepFactory, Tools
from app.pipeline.runner import Changes, Fallback
from app.pipeline.steps.optional.postprocess import Postprocess

GROUP = "docs_assistant.steps"
DECLARED: Mapping[str, type] = {"reads": tuple, "uses": tuple, "writes": tuple, "optional": bool, "helper_calls": int}
_TOOLS = frozenset(one.name for one in fields(Tools))
_FIELDS = frozenset(one.name for one in fields(Turn))


@dataclass(frozen=True, slots=True)
class OwnStep:
    """A `[[step]]` of assistants.toml. `timeout` in seconds, 0 means DOCS_HELPER_TIMEOUT; `scores` is for postprocessors."""

    path: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    timeout: float = 0.0
    scores: Scores | None = None


def known_steps(
    tables: Mapping[str, OwnStep], names: Iterable[str] = (), *, installed: bool = False
) -> Mapping[str, StepFactory]:
    """The shipped steps, those of the tables, and those of `names` that are an entry point or `module:Class`.

    With `installed`, all entry points. Raises `SettingsError` for a class that is no step, or for wrong arguments.
    """
    if taken := next((name for name in tables if name in STEPS), ""):
        raise SettingsError(f"step {taken!r}: a shipped step has this name. Write another id.")
    entries = {entry.name: entry.value for entry in entry_points(group=GROUP)}
    found = {name: _factory(name, table, f"step {name!r}: class") for name, table in tables.items()}
    for name in dict.fromkeys((*names, *(entries if installed else ()))):
        if name not in STEPS and name not in found and (name in entries or ":" in name):
            what = f"entry point {name}" if name in entries else "steps"
            found[name] = _factory(name, OwnStep(entries.get(name, name)), what)
    return {**STEPS, **found}


def own_prompts(steps: Iterable[StepFactory]) -> frozenset[str]:
    """The names of the prompts beside these steps, in any language."""
    found = {_prompts_beside(one.step) for one in steps}
    return frozenset(path.stem for folder in found for path in folder.glob("*/*.md"))


def _prompts_beside(step: Any) -> Path:
    return Path(getfile(step)).parent / "prompts"


def _factory(name: str, table: OwnStep, what: str) -> StepFactory:
    found = load(table.path, object, what)
    if is_postprocessor(found):
        return _postprocess(name, table, what)
    what = f"{what}={table.path}"
    if table.scores:
        raise SettingsError(f"{what}: `scores` is for postprocessors of LlamaIndex, and this is none.")
    _check_declaration(found, what)
    tools = {key: one for key, one in signature(found).parameters.items() if key in _TOOLS}
    if both := ", ".join(tools.keys() & table.arguments.keys()):
        raise SettingsError(f"{what}: {both} comes from the settings, so leave it out of `args`.")
    check_arguments(found, {**tools, **table.arguments}, what)

    def make(given: Tools) -> Any:
        given = replace(given, prompts=given.prompts.with_own(_prompts_beside(found), given.settings.prompts))
        parts = {key: getattr(given, key) for key in tools}
        lacking = {key for key, one in tools.items() if parts[key] is None and one.default is one.empty}
        if "model" in lacking:
            raise NoModel
        if lacking:
            raise NoReranker(f"The step {name} needs a reranker: set DOCS_RERANK_URL and DOCS_RERANK_MODEL.")
        seconds = table.timeout or given.settings.helper_timeout
        return instance(_guarded(found, name, seconds), {**parts, **table.arguments}, what)

    return StepFactory(_guarded(found, name), make)


def _postprocess(name: str, table: OwnStep, what: str) -> StepFactory:
    processor = open_postprocessor(name, table.path, table.arguments, table.scores or "relative", what)
    named: Any = type(Postprocess.__name__, (Postprocess,), {"name": name})
    return StepFactory(
        named, lambda tools: named(processor, tools.settings, table.timeout or tools.settings.helper_timeout)
    )


def _check_declaration(found: type, what: str) -> None:
    """Raises `SettingsError` if the class doesn't declare what a step declares, or no turn has the fields."""
    lacking = [name for name in DECLARED if not hasattr(found, name)]
    lacking += [] if iscoroutinefunction(found.__call__) else ["async def __call__(self, turn)"]
    if lacking:
        raise SettingsError(f"{what} is neither a step nor a LlamaIndex postprocessor: it lacks {', '.join(lacking)}.")
    if named := [name for name in ("name", *DECLARED) if name in signature(found).parameters]:
        raise SettingsError(f"{what}: write {', '.join(named)} without a type, else it is an argument.")
    for name, kind in DECLARED.items():
        if not isinstance(value := getattr(found, name), kind):
            example = ', as ("hits",)' if kind is tuple else ""
            raise SettingsError(f"{what}: {name} must be a {kind.__name__}{example}, not {value!r}.")
    used = (*found.reads, *found.uses, *found.writes)  # type: ignore[attr-defined]  # checked above
    if unknown := [name for name in used if name.partition(".")[0] not in _FIELDS]:
        raise SettingsError(f"{what}: a turn has no {', '.join(unknown)}. It has: {', '.join(sorted(_FIELDS))}.")


def _guarded(found: Any, name: str, seconds: float = 0.0) -> Any:
    """The class under the name that the assistant gives it; its changes are checked. Optional steps have a time limit."""

    async def call(self: Any, turn: Turn) -> Changes:
        limit = asyncio.timeout(seconds if found.optional else None)
        try:
            async with limit:
                return _declared(await found.__call__(self, turn), found, name)
        except Fallback as fallback:
            _declared(fallback.changes, found, name)
            raise
        except TimeoutError as error:
            if not limit.expired():
                raise
            raise StepError(f"The step {name} took over {seconds:g} s.") from error

    return type(found.__name__, (found,), {"name": name, "__call__": call, "__module__": found.__module__})


def _declared(changes: Any, found: Any, name: str) -> Changes:
    if not isinstance(changes, Mapping):
        raise StepError(f"The step {name} returned {type(changes).__name__} instead of a dict of changed fields.")
    if undeclared := [key for key in changes if key not in found.writes]:
        raise StepError(f"The step {name} changes {', '.join(undeclared)}, which it doesn't declare in `writes`.")
    return changes

"""Other settings and prompts for one request; the plan that other requests use stays as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Any

from app.core.errors import PromptError, RequestError, quoted
from app.core.nearest import did_you_mean
from app.core.prompt_files import shipped_files
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.pipeline.parts import with_parts
from app.pipeline.runner import Plan

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
    found: dict[str, str] = {}
    for name, text in given.items():
        files = [file for file in known if name in {file, file.partition("/")[2]}]
        if not files:
            near = did_you_mean(name, [*known, *(file.partition("/")[2] for file in known)])
            raise RequestError(
                f"{PARAM}: no step of this assistant has a prompt {quoted(name)}.{near} /v1/admin/prompts lists them.",
                param=PARAM,
            )
        found |= dict.fromkeys(files, text)
    return found

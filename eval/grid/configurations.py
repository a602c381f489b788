"""The configurations of a grid: combinations of settings, steps, prompts and models, and the indexes they need."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

from app.core.settings import Settings
from app.index import open_store
from eval.errors import EvaluationError
from eval.files import read_text
from eval.grid.rebuild import INDEX_SETTINGS, rebuild
from eval.grid.steps import UNCHANGED, Variant

MOST = 200
ASSISTANT, STEPS = "assistant", "steps"  # the two axes that aren't settings
BESIDE_STEPS: Mapping[str, Mapping[str, Any]] = {
    "fusion by ranks (rrf)": {"fusion": "rrf"},
    "0.6 vectors, 0.4 words": {"fusion": "weighted", "vector_weight": {"*": 0.6}},
    "exact nearest neighbours": {"exact": True},
}


@dataclass(frozen=True, slots=True)
class Configuration:
    """One combination: its name in tables, its settings, and the id of the assistant (empty: the first).

    `steps` is the name of a variant of the assistant's steps, `changed` the steps that differ in it; `needs` names what
    this machine lacks to measure it.
    """

    name: str
    settings: Mapping[str, Any]
    assistant: str = ""
    steps: str = ""
    changed: tuple[str, ...] = ()
    needs: str = ""

    @property
    def index(self) -> Mapping[str, Any]:
        """The settings that need a separate index."""
        return {name: value for name, value in self.settings.items() if name in INDEX_SETTINGS}


def load_grid(path: str | Path) -> tuple[Configuration, ...]:
    """Every combination of `[axes]`, with `[settings]` in all of them. The first values make the combination that
    others are compared with.

    Raises `EvaluationError` for a wrong file or an unknown setting, `SettingsError` for a wrong value.
    """
    try:
        document = tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise EvaluationError(f"{path} isn't valid TOML: {error}") from error
    common, axes = document.pop("settings", {}), document.pop("axes", {})
    tables = isinstance(common, dict) and isinstance(axes, dict)
    if document or not axes or not tables or not all(isinstance(values, list) and values for values in axes.values()):
        raise EvaluationError(
            f"{path}: [axes] with a list of values for each setting is needed; [settings] is optional."
        )
    unknown = [
        name for name in (*common, *axes) if name not in Settings.model_fields and name not in {ASSISTANT, STEPS}
    ]
    if unknown:
        raise EvaluationError(
            f"{path}: {', '.join(sorted(unknown))}: there is no such setting. Write DOCS_TOP_K as top_k."
        )
    combinations = list(product(*axes.values()))
    if len(combinations) > MOST:
        raise EvaluationError(f"{path}: {len(combinations)} combinations are more than {MOST}: leave some values out.")
    found = []
    for values in combinations:
        chosen = dict(zip(axes, values, strict=True))
        name = " ".join(f"{axis}={_short(value)}" for axis, value in chosen.items() if len(axes[axis]) > 1)
        own = {**common, **chosen}
        assistant, steps = (str(own.pop(axis, "")) for axis in (ASSISTANT, STEPS))
        found.append(Configuration(name or "as set", own, assistant, steps))
    for one in found:
        Settings.load(**one.settings)  # a wrong value is an error before the first question
    return tuple(found)


def step_configurations(found: Sequence[Variant]) -> tuple[Configuration, ...]:
    """Every variant of the steps, and the settings that are measured with them."""
    steps = [Configuration(one.name, {}, steps=one.name) for one in found]
    return (*steps, *(Configuration(name, own, steps=UNCHANGED) for name, own in BESIDE_STEPS.items()))


def with_steps(
    configurations: Sequence[Configuration], found: Sequence[Variant], assistants: Path
) -> tuple[Configuration, ...]:
    """The configurations with their variants of steps, which are assistants in the file `assistants`.

    Raises `EvaluationError` for an unknown variant.
    """
    by_name = {one.name: one for one in found}
    for one in configurations:
        if one.assistant or one.steps not in by_name:
            raise EvaluationError(
                f"{one.name}: the axis `steps` takes {', '.join(by_name)}; choose the assistant with --assistant."
            )
    if by_name[configurations[0].steps].needs:
        needed = by_name[configurations[0].steps].needs
        raise EvaluationError(
            f"The others are compared with the first configuration, but {configurations[0].steps!r} needs {needed}."
        )
    return tuple(
        replace(
            one,
            settings={"assistants": str(assistants), **one.settings},
            assistant=one.steps,
            changed=by_name[one.steps].changed,
            needs=by_name[one.steps].needs,
        )
        for one in configurations
    )


@asynccontextmanager
async def indexed(
    settings: Settings, configurations: Sequence[Configuration], report: Callable[[str], object]
) -> AsyncIterator[list[tuple[Configuration, Mapping[str, Any]]]]:
    """Each configuration with all settings it needs, including its store; calls `report` with the name of a
    configuration before its pages are indexed.

    Configurations with equal settings share a temporary index; those that change nothing in the index use the live one.
    """
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as folder:
        stores = dict[str, str]()
        live = open_store(settings)
        try:
            for one in configurations:
                key = json.dumps(one.index, sort_keys=True)
                if one.index and key not in stores:
                    stores[key] = str(Path(folder) / str(len(stores)))
                    report(one.name)
                    await rebuild(await live.live(), Settings.load(**{**one.settings, "store": stores[key]}))
        finally:
            await live.close()
        keys = [json.dumps(one.index, sort_keys=True) for one in configurations]
        yield [
            (one, {**one.settings, "store": stores[key]} if one.index else one.settings)
            for one, key in zip(configurations, keys, strict=True)
        ]


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{one}" for name, one in value.items())
    return str(value)

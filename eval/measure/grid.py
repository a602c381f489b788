"""A grid of configurations: settings that vary, every combination of them, and their results side by side."""

from __future__ import annotations

import json
import tempfile
import tomllib
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

from app.core.settings import Settings
from app.core.store import open_store
from eval.errors import EvaluationError
from eval.measure.compare import Comparison, RowDifference, compare
from eval.measure.metrics import title
from eval.measure.rebuild import INDEX_SETTINGS, rebuild
from eval.measure.result import ALL, MEAN, RetrievalResult
from eval.measure.tables import as_table
from eval.questions.cases import read_text

MOST = 200
ASSISTANT = "assistant"  # the one axis that is no setting: models, moods and boxes are told by it


@dataclass(frozen=True, slots=True)
class Configuration:
    """One combination: its name in tables, the settings that it has, and which assistant is asked (empty: the first)."""

    name: str
    settings: Mapping[str, Any]
    assistant: str = ""

    @property
    def index(self) -> Mapping[str, Any]:
        """Those of its settings that need an index of their own."""
        return {name: value for name, value in self.settings.items() if name in INDEX_SETTINGS}


def load_grid(path: str | Path) -> tuple[Configuration, ...]:
    """Every combination of `[axes]` upon `[settings]`; the first values make the first one, that others are compared
    with. Raises `EvaluationError` for a wrong file, an unknown setting or a value that it can't have.
    """
    try:
        document = tomllib.loads(read_text(Path(path)))
    except tomllib.TOMLDecodeError as error:
        raise EvaluationError(f"{path} is no valid TOML: {error}") from error
    common, axes = document.pop("settings", {}), document.pop("axes", {})
    tables = isinstance(common, dict) and isinstance(axes, dict)
    if document or not axes or not tables or not all(isinstance(values, list) and values for values in axes.values()):
        raise EvaluationError(
            f"{path}: needed are [axes] with a list of values for each setting, and maybe [settings]."
        )
    unknown = [name for name in (*common, *axes) if name not in Settings.model_fields and name != ASSISTANT]
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
        found.append(Configuration(name or "as set", own, str(own.pop(ASSISTANT, ""))))
    for one in found:
        Settings.load(**one.settings)  # a wrong value is told before the first question
    return tuple(found)


@asynccontextmanager
async def indexed(
    settings: Settings, configurations: Sequence[Configuration], tell: Callable[[str], object]
) -> AsyncIterator[list[tuple[Configuration, Mapping[str, Any]]]]:
    """Each configuration with all settings it needs, its store among them; `tell` hears whose index is being made.

    An index is made once for each way of making one and gone at the end; the live one serves those that change
    nothing of it.
    """
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as folder:
        stores = dict[str, str]()
        live = open_store(settings)
        try:
            for one in configurations:
                key = json.dumps(one.index, sort_keys=True)
                if one.index and key not in stores:
                    stores[key] = str(Path(folder) / str(len(stores)))
                    tell(one.name)
                    await rebuild(await live.live(), Settings.load(**{**one.settings, "store": stores[key]}))
        finally:
            await live.close()
        keys = [json.dumps(one.index, sort_keys=True) for one in configurations]
        yield [
            (one, {**one.settings, "store": stores[key]} if one.index else one.settings)
            for one, key in zip(configurations, keys, strict=True)
        ]


def grid_text(results: Sequence[tuple[Configuration, RetrievalResult]]) -> str:
    """One line for each configuration: the mean of the languages, and its difference to the first one."""
    first = results[0][1]
    header = ["configuration", title("rr", first.k), "95 %", "hit@1", "against the first", "ms"]
    rows = [
        [
            configuration.name,
            *_figures(result),
            "–" if result is first else against_first(compare(first, result)),
            f"{result.milliseconds.get('p50', 0):.0f}",
        ]
        for configuration, result in results
    ]
    note = "* the 95 % interval leaves out 0. With many configurations one in twenty does so by chance: confirm it on"
    return "\n".join([*as_table(header, rows), "", f"{note} other questions."])


def grid_json(results: Sequence[tuple[Configuration, RetrievalResult]]) -> dict[str, Any]:
    """All of it as JSON values."""
    first = results[0][1]
    return {
        "configurations": [
            {
                "name": configuration.name,
                "settings": dict(configuration.settings),
                "assistant": configuration.assistant,
                "result": result.summary(),
                "against_first": compare(first, result).summary()["rows"],
            }
            for configuration, result in results
        ]
    }


def _figures(result: RetrievalResult) -> list[str]:
    row = result.row(MEAN) or result.rows[-1]
    rr = row.measures["rr"]
    return [f"{rr.mean:.3f}", f"{rr.low:.2f}–{rr.high:.2f}", f"{row.measures['hit_1'].mean:.3f}"]


def against_first(comparison: Comparison) -> str:
    """The difference of the mean of languages with its interval; * where it is outside the noise."""
    row = _whole(comparison.rows)
    one = row.measures["rr"]
    star = "*" if one.outside_noise else " "
    return f"{one.estimate.mean:+.3f}{star} {one.estimate.low:+.3f}…{one.estimate.high:+.3f}"


def _whole(rows: Sequence[RowDifference]) -> RowDifference:
    return next((row for row in rows if row.language == MEAN and row.variant == ALL), rows[-1])


def _short(value: Any) -> str:
    if isinstance(value, dict):
        return ",".join(f"{name}:{one}" for name, one in value.items())
    return str(value)

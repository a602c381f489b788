"""A grid: settings that are compared in one run, as a TOML file names them, and the figures of its tables."""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.resources import files
from itertools import product
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from app.core.errors import did_you_mean
from app.core.settings import FIELDS
from eval.files import EvaluationError, parse_row, read_text
from eval.measure.result import ANSWERS, MEASURES, RETRIEVAL, Outcome, Result
from eval.measure.rows import ALL, MEAN, Difference, Estimate

KINDS = (RETRIEVAL, ANSWERS)
OWN = ("assistant", "persona", "steps")
"""Values of axes that aren't settings: who answers, in which tone, and in which steps."""
MOST = 200
Value = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Combination:
    """One value of each axis, by name in `values`, with all that they set: settings, and what `OWN` names."""

    name: str
    values: Mapping[str, str]
    chosen: Value

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that differ from those in force."""
        return {name: value for name, value in self.chosen.items() if name not in OWN}


class Table(BaseModel):
    """A table of a grid: every combination of its axes (the others have their first value), and what is measured of it.

    With `by_question`, its rows are the questions, with the means over these combinations.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: str = Field(min_length=1)
    measures: tuple[str, ...] = Field(min_length=1)
    axes: tuple[str, ...] = ()
    by_question: bool = False

    def of(self, kind: str) -> tuple[str, ...]:
        """Its measures that this kind of run has."""
        return tuple(name for name in self.measures if name in MEASURES[kind])


class Grid(BaseModel):
    """A file of a grid. `settings` hold for all combinations, `axes` have their values by name; a list of values of a setting is
    short for a table of them. Retrieval is measured in the first `k` pages.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    table: tuple[Table, ...] = Field(min_length=1)
    axes: Mapping[str, Annotated[Mapping[str, Value], Field(min_length=1)]] = {}
    settings: Value = {}
    k: int = Field(5, ge=1, le=50)

    def combinations(self, table: Table) -> tuple[Combination, ...]:
        """Those of a table; the first one is what the others are compared with."""
        return tuple(self._combined(table))

    def needed(self, kind: str) -> tuple[Combination, ...]:
        """Those that must be measured in a run of this kind, each once."""
        tables = [table for table in self.table if table.of(kind)]
        return tuple({one.name: one for table in tables for one in self.combinations(table)}.values())

    def _combined(self, table: Table) -> Iterator[Combination]:
        first = {axis: next(iter(values)) for axis, values in self.axes.items()}
        for names in product(*(self.axes[axis] for axis in table.axes)):
            values = first | dict(zip(table.axes, names, strict=True))
            other = [f"{axis} {name}" for axis, name in values.items() if name != first[axis]]
            chosen: dict[str, Any] = dict(self.settings)
            for axis, name in values.items():
                chosen |= self.axes[axis][name]
            yield Combination(", ".join(other) or "first values", values, chosen)


def presets() -> list[str]:
    """The names of the shipped grids."""
    return sorted(item.name.removesuffix(".toml") for item in files("eval").joinpath("grids").iterdir())


def load_grid(name: str, values: str = "") -> Grid:
    """The grid of a file, or the shipped one of this name; the file `values` replaces some of its axes and settings.

    Raises `EvaluationError` that names the file and what is wrong in it.
    """
    path = str(files("eval").joinpath("grids", f"{name}.toml")) if name in presets() else name
    document = _document(path)
    if values:
        own = _document(values)
        merged = {part: document.get(part, {}) | own.get(part, {}) for part in ("axes", "settings")}
        document = {**document, **own, **merged}
    document["axes"] = {axis: _by_name(axis, one) for axis, one in document.get("axes", {}).items()}
    grid = parse_row(Grid, values or path, document)
    _check(grid, values or path)
    return grid


def _document(path: str) -> dict[str, Any]:
    try:
        return tomllib.loads(read_text(path))
    except tomllib.TOMLDecodeError as error:
        raise EvaluationError(f"{path} isn't valid TOML: {error}.") from error


def _by_name(axis: str, values: Any) -> Any:
    return {str(value): {axis: value} for value in values} if isinstance(values, list) else values


def _check(grid: Grid, path: str) -> None:
    set_there = [grid.settings, *(value for values in grid.axes.values() for value in values.values())]
    known = {
        "setting": ({*FIELDS, *OWN}, [name for value in set_there for name in value]),
        "axis": ({*grid.axes}, [axis for table in grid.table for axis in table.axes]),
        "measure": ({name for kind in KINDS for name in MEASURES[kind]}, [m for t in grid.table for m in t.measures]),
    }
    for what, (names, used) in known.items():
        if wrong := next((name for name in used if name not in names), None):
            raise EvaluationError(f"{path}: there is no {what} {wrong!r}.{did_you_mean(wrong, names)}")
    if (count := len({one.name for kind in KINDS for one in grid.needed(kind)})) > MOST:
        raise EvaluationError(f"{path}: {count} combinations are more than {MOST}: leave some values out.")


@dataclass(frozen=True, slots=True)
class Line:
    """A row of a table: a combination or a question, what was measured of it, and the paired differences from the first one."""

    label: str
    n: int
    measures: Mapping[str, Estimate]
    differences: Mapping[str, Difference] = field(default_factory=dict)
    values: tuple[str, ...] = ()


def lines_of(grid: Grid, table: Table, results: Mapping[str, Result]) -> list[Line]:
    """The rows of a table, best first by its first measure; those of questions worst first."""
    own = {kind: _within(results[kind], grid.combinations(table)) for kind in KINDS if table.of(kind)}
    found = _questions(table, own) if table.by_question else _compared(grid, table, own)
    first = table.measures[0]
    known = [line for line in found if line.measures]
    return sorted(known, key=lambda line: _mean(line, first), reverse=not table.by_question)


def _mean(line: Line, measure: str) -> float:
    return line.measures[measure].mean if measure in line.measures else 0.0


def _within(result: Result, combinations: Sequence[Combination]) -> Result:
    """The outcomes of these combinations alone; the first one is the base."""
    names = [one.name for one in combinations]
    outcomes = tuple(outcome for outcome in result.outcomes if outcome.contestant in names)
    return replace(result, outcomes=outcomes, config={**result.config, "against": names[0]})


def _compared(grid: Grid, table: Table, own: Mapping[str, Result]) -> Iterator[Line]:
    for one in grid.combinations(table):
        estimates, differences, n = dict[str, Estimate](), dict[str, Difference](), 0
        for kind, result in own.items():
            row = _whole(result.rows[one.name])
            n = max(n, row.n)
            estimates |= {name: row.measures[name] for name in table.of(kind) if name in row.measures}
            for comparison in result.comparisons:
                if comparison.names[1] == one.name:
                    pairs = _whole(comparison.rows).measures
                    differences |= {name: pairs[name] for name in table.of(kind) if name in pairs}
        ordered = {name: estimates[name] for name in table.measures if name in estimates}
        values = tuple(one.values[axis] for axis in table.axes)
        yield Line(", ".join(values) or one.name, n, ordered, differences, values)


def _whole(rows: Sequence[Any]) -> Any:
    """The row of the mean of languages; of all questions, if there are only those across languages."""
    found = [row for row in rows if row.variant == ALL]
    return next((row for row in found if row.language == MEAN), found[0])


def _questions(table: Table, own: Mapping[str, Result]) -> Iterator[Line]:
    by_case: dict[str, list[Outcome]] = {}
    for result in own.values():
        for outcome in result.outcomes:
            by_case.setdefault(outcome.case.id, []).append(outcome)
    for outcomes in by_case.values():
        means = dict[str, Estimate]()
        for name in table.measures:
            known = [value for one in outcomes if (value := one.values.get(name)) is not None]
            if known:
                means[name] = Estimate(sum(known) / len(known), min(known), max(known))
        yield Line(outcomes[0].case.question, len({one.contestant for one in outcomes}), means)

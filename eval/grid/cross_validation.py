"""Chooses the best configuration of a grid on some questions and judges it on others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.turn import Request
from app.core.types import Legs, Query
from app.index.protocols import Generation
from app.index.ranking.fuse import fuse
from eval.cache import Progress
from eval.files import EvaluationError
from eval.grid.configurations import Configuration
from eval.measure.metrics import Estimate, intervals, score
from eval.measure.retrieval import Finder
from eval.measure.rows import enough_to_judge
from eval.questions.cases import HALVES, Case
from eval.questions.documents import Documents

Values = NDArray[np.float64]
SEED = 7
LEAST_GAIN = 0.005
NEAR = 10  # configurations within a tenth of a numeric axis are judged together


@dataclass(frozen=True, slots=True)
class Choice:
    """The best configuration for questions in one language, and its gain on other questions than it was chosen by.

    `gain` is the cross-validated difference to the first baseline, with an interval over pages; `apparent_gain` is the
    gain on the questions that it was chosen by. `accepted`: the gain is significant and at least `LEAST_GAIN`.
    """

    language: str
    n: int
    best: Configuration
    before: float
    gain: Estimate
    apparent_gain: float
    accepted: bool


@dataclass(frozen=True, slots=True)
class Fold:
    """The configurations chosen on the other folds, by language, and judged on the `n` questions of this fold.

    `gains` has the mean of languages compared with each baseline; `least` is the language and variant with the smallest
    gain over the last baseline.
    """

    name: str
    n: int
    best: Mapping[str, Configuration]
    gains: Mapping[str, Estimate]
    least: tuple[str, str, float]


@dataclass(frozen=True, slots=True)
class CrossValidation:
    """The choices by language and the folds they were judged on."""

    choices: tuple[Choice, ...]
    folds: tuple[Fold, ...]


@dataclass(frozen=True)
class Table:
    """Reciprocal ranks: a row for each configuration, a column for each question, and baselines to compare with.

    A configuration is chosen for each of the `languages`, which are given by question.
    """

    tried: Sequence[Configuration]
    cases: Sequence[Case]
    languages: Sequence[str]
    values: Values
    baselines: Mapping[str, Values]

    def only_own_language(self) -> Table:
        """The table without questions whose page is in another language: keyword search can't find them, so they would
        favour vectors.
        """
        own = [i for i, case in enumerate(self.cases) if not case.cross]
        return Table(
            self.tried,
            [self.cases[i] for i in own],
            [self.languages[i] for i in own],
            self.values[:, own],
            {name: values[own] for name, values in self.baselines.items()},
        )


def cross_validate(table: Table, folds: int) -> CrossValidation:
    """The best configuration for each language, judged on folds. Two folds are the even and the odd questions, more
    folds are drawn by page. Raises `EvaluationError` for too few questions.
    """
    table = table.only_own_language()
    language, of_fold = np.array(table.languages), _folds(table, folds)
    near = neighbours(table.tried)
    chosen = np.empty(len(table.cases))
    best_by_fold: list[dict[str, Configuration]] = [{} for _ in range(folds)]
    for code in sorted(set(table.languages)):
        own = language == code
        if len(set(of_fold[own])) < folds:
            raise EvaluationError(f"There are too few questions or pages in {code} for {folds} folds.")
        for fold in range(folds):
            best = best_of(table.values[:, own & (of_fold != fold)].mean(axis=1), near)
            best_by_fold[fold][code] = table.tried[best]
            chosen[own & (of_fold == fold)] = table.values[best, own & (of_fold == fold)]
    choices = tuple(_choice(table, code, language == code, chosen, near) for code in sorted(set(table.languages)))
    names = list(HALVES) if folds == len(HALVES) else [f"{number + 1} of {folds}" for number in range(folds)]
    parts = (_fold(table, names[i], of_fold == i, best, chosen) for i, best in enumerate(best_by_fold))
    return CrossValidation(choices, tuple(parts))


def best_of(means: Values, near: Sequence[Sequence[int]]) -> int:
    """The position of the configuration with the best mean of itself and its neighbours.

    The best one of hundreds is partly best by chance; one with good neighbours stays good on other questions.
    """
    return int(np.argmax([means[list(own)].mean() for own in near]))


def neighbours(tried: Sequence[Configuration]) -> tuple[tuple[int, ...], ...]:
    """For each configuration, the positions of those that differ by at most a tenth of each numeric axis, including
    itself.
    """
    axes = {
        name: sorted({s[name] for s in (configuration.settings for configuration in tried) if _is_number(s.get(name))})
        for name in {name for configuration in tried for name in configuration.settings}
    }
    places = [
        {
            name: axes[name].index(value) if _is_number(value) else value
            for name, value in configuration.settings.items()
        }
        for configuration in tried
    ]
    return tuple(
        tuple(
            i
            for i, other in enumerate(places)
            if _are_near(place, other, axes)
            and tried[i].steps == configuration.steps
            and tried[i].assistant == configuration.assistant
        )
        for place, configuration in zip(places, tried, strict=True)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _are_near(one: Mapping[str, Any], other: Mapping[str, Any], axes: Mapping[str, Sequence[float]]) -> bool:
    return one.keys() == other.keys() and all(
        abs(value - other[name]) <= round(len(axes[name]) / NEAR)
        if axes[name] and _is_number(value)
        else value == other[name]
        for name, value in one.items()
    )


def _folds(table: Table, folds: int) -> NDArray[np.int64]:
    if folds == len(HALVES):
        return np.arange(len(table.cases)) % len(HALVES)
    folds_of_cases = np.zeros(len(table.cases), dtype=np.int64)
    for code in set(table.languages):
        own = [i for i, language in enumerate(table.languages) if language == code]
        names = sorted({table.cases[i].doc for i in own})
        order = np.random.default_rng(SEED).permutation(len(names))
        fold_of = {names[place]: number % folds for number, place in enumerate(order)}
        folds_of_cases[own] = [fold_of[table.cases[i].doc] for i in own]
    return folds_of_cases


def _choice(table: Table, code: str, own: NDArray[np.bool_], chosen: Values, near: Sequence[Sequence[int]]) -> Choice:
    now = next(iter(table.baselines.values()))[own]
    pages = [table.cases[i].doc for i in map(int, np.flatnonzero(own))]
    gain = intervals([(chosen[own] - now)[:, None]], [pages])[0]
    means = table.values[:, own].mean(axis=1)
    best = best_of(means, near)
    accepted = enough_to_judge([pages]) and gain.low > 0 and gain.mean >= LEAST_GAIN
    before = float(now.mean())
    return Choice(code, len(pages), table.tried[best], before, gain, float(means[best]) - before, accepted)


def _fold(
    table: Table, name: str, judged: NDArray[np.bool_], best: Mapping[str, Configuration], chosen: Values
) -> Fold:
    language = np.array(table.languages)
    groups = [np.flatnonzero((language == code) & judged) for code in best]
    pages = [[table.cases[i].doc for i in map(int, group)] for group in groups]
    gains = {
        baseline: intervals([(chosen - values)[group][:, None] for group in groups], pages)[0]
        for baseline, values in table.baselines.items()
    }
    last = chosen - list(table.baselines.values())[-1]
    cells: dict[tuple[str, str], list[float]] = {}
    for i in map(int, np.flatnonzero(judged)):
        cells.setdefault((table.languages[i], table.cases[i].variant), []).append(float(last[i]))
    least = min((float(np.mean(own)), cell) for cell, own in sorted(cells.items()))
    return Fold(name, int(judged.sum()), best, gains, (*least[1], least[0]))


VECTOR_WEIGHTS = tuple(round(0.05 * step, 2) for step in range(21))
OTHER_LANGUAGE = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 1.0)
PLAIN = {"fusion": "rrf", "other_language": 1.0}  # not tuned: fused by rank, no preference for a language


@dataclass(frozen=True, slots=True)
class Searched:
    """One question with the results of both searches, and the query that fused them."""

    case: Case
    legs: Legs
    query: Query
    generation: Generation


def fusion_settings() -> tuple[Configuration, ...]:
    """All settings that are tried: the weight of the vectors and the factor for other languages; and ranks with that
    factor.
    """
    weighted = [
        Configuration(f"vector {share:g}, other language {other:g}, weighted", _settings("weighted", other, share))
        for share, other in product(VECTOR_WEIGHTS, OTHER_LANGUAGE)
    ]
    ranks = [Configuration(f"other language {other:g}, rrf", _settings("rrf", other)) for other in OTHER_LANGUAGE]
    return (*weighted, *ranks)


def _settings(fusion: str, other_language: float, share: float | None = None) -> Mapping[str, Any]:
    weight = {} if share is None else {"vector_weight": share}
    return {"fusion": fusion, "other_language": other_language, **weight}


async def search(finder: Finder, cases: Sequence[Case], assistant: str, progress: Progress) -> list[Searched]:
    """Search every question in both ways. Raises `EvaluationError` for an assistant that doesn't search."""
    searches = list[Searched]()
    for number, case in enumerate(cases, start=1):
        turn = await finder.find(Request(case.messages, assistant, f"eval-{number}"))
        if turn.legs is None or turn.search is None:
            raise EvaluationError("The assistant has no step `retrieve`, so it does not search.")
        searches.append(Searched(case, turn.legs, turn.search, turn.generation))
        progress(number, len(cases))
    return searches


def reciprocal_ranks(
    searched: Sequence[Searched], documents: Documents, k: int, settings: Mapping[str, Any] | None = None
) -> NDArray[np.float64]:
    """1/rank of the first right page of each question, 0 below k; with these settings or those in force."""
    return np.array([_rr(question, _with(question.query, settings or {}), documents, k) for question in searched])


def table_of(
    searched: Sequence[Searched],
    tried: Sequence[Configuration],
    documents: Documents,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """The reciprocal ranks of all questions, one row for each configuration."""
    table = np.empty((len(tried), len(searched)))
    for i, configuration in enumerate(tried):
        table[i] = reciprocal_ranks(searched, documents, k, configuration.settings)
        if progress:
            progress(i + 1, len(tried))
    return table


def _with(query: Query, settings: Mapping[str, Any]) -> Query:
    known: dict[str, Any] = dict(settings)
    if "vector_weight" in known:
        known["lexical_weight"] = 1 - known["vector_weight"]
    return replace(query, **known)


def _rr(one: Searched, query: Query, documents: Documents, k: int) -> float:
    labels = [documents.label(ranked.url, one.case.relevant) for ranked in fuse(one.legs, query)]
    return score(labels, one.case.relevant, k).rr

"""Measures at several depths, of pages and of chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from eval.measure.metrics import CURVE, Estimate, Ranks, at, intervals
from eval.questions.cases import Case

CUTOFFS = (1, 3, 5, 10, 15, 20)
DEPTH = 40  # passages: with at most two per page, these are at least 20 pages


@dataclass(frozen=True, slots=True)
class Point:
    """The measures of one level ("page" or "chunk") in one language ("mean": of the languages) at one k."""

    level: str
    language: str
    k: int
    n: int
    measures: Mapping[str, Estimate]


def points(level: str, ranked: Sequence[tuple[Case, Ranks | None]], depth: int) -> tuple[Point, ...]:
    """Points by language, then the mean of languages; questions across languages and those without ranks are left out."""
    known = [(case, ranks) for case, ranks in ranked if ranks is not None and not case.cross]
    languages = sorted({case.language for case, _ in known})
    wholes = {code: [(case, ranks) for case, ranks in known if case.language == code] for code in languages}
    groups = [(code, [whole]) for code, whole in wholes.items()]
    if len(groups) > 1:
        groups.append(("mean", list(wholes.values())))
    # a page may have two passages, so twice as many are needed; up to 5 as in the main table
    reach = depth if level == "chunk" else max(depth // 2, min(depth, 5))
    return tuple(
        Point(level, language, k, sum(map(len, parts)), _measures(parts, k))
        for language, parts in groups
        for k in CUTOFFS
        if k <= reach
    )


def _measures(parts: Sequence[Sequence[tuple[Case, Ranks]]], k: int) -> dict[str, Estimate]:
    values = [np.array([at(ranks, k) for _, ranks in part], dtype=np.float64) for part in parts]
    clusters = [[case.doc for case, _ in part] for part in parts]
    return dict(zip(CURVE, intervals(values, clusters), strict=True))

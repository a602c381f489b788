"""Tries settings of the fusion on search results: each question is searched once, so hundreds of settings take seconds."""

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
from eval.errors import EvaluationError
from eval.grid.configurations import Configuration
from eval.measure.metrics import score
from eval.measure.retrieval import Finder
from eval.parallel import Progress
from eval.questions.cases import Case
from eval.questions.documents import Documents

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
    found = list[Searched]()
    for number, case in enumerate(cases, start=1):
        turn = await finder.find(Request(case.messages, assistant, f"eval-{number}"))
        if turn.legs is None or turn.search is None:
            raise EvaluationError("The assistant has no step `retrieve`, so it does not search.")
        found.append(Searched(case, turn.legs, turn.search, turn.generation))
        progress(number, len(cases))
    return found


def reciprocal_ranks(
    searched: Sequence[Searched], documents: Documents, k: int, settings: Mapping[str, Any] | None = None
) -> NDArray[np.float64]:
    """1/rank of the first right page of each question, 0 below k; with these settings or those in force."""
    return np.array([_rr(one, _with(one.query, settings or {}), documents, k) for one in searched])


def table_of(
    searched: Sequence[Searched],
    tried: Sequence[Configuration],
    documents: Documents,
    k: int,
    progress: Callable[[int, int], None] | None = None,
) -> NDArray[np.float64]:
    """The reciprocal ranks of all questions, one row for each configuration."""
    table = np.empty((len(tried), len(searched)))
    for i, one in enumerate(tried):
        table[i] = reciprocal_ranks(searched, documents, k, one.settings)
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

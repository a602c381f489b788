"""Corrections of a leg before it is fused: offsets of languages, summaries of pages, and lists of several searches merged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from operator import itemgetter
from typing import TYPE_CHECKING

from app.core.types import Candidate, Vector

if TYPE_CHECKING:
    import numpy as np

SAMPLE = 200
"""Chunks of each language that its mean is made from. Those with the lowest ids: ids are hashes, so it's chance that chooses."""


def sample(languages: Mapping[str, str]) -> list[str]:
    """The ids of the sample, from the languages of all chunks by id."""
    by_language: dict[str, list[str]] = defaultdict(list)
    for id_ in sorted(languages):
        by_language[languages[id_]].append(id_)
    return [id_ for ids in by_language.values() for id_ in islice(ids, SAMPLE)]


def centres(vectors: Iterable[tuple[str, Vector]]) -> Mapping[str, Vector]:
    """The mean direction of each language, from pairs of language and vector."""
    by_language: dict[str, list[Vector]] = defaultdict(list)
    for language, vector in vectors:
        by_language[language].append(vector)
    return {language: _unit(rows).mean(axis=0).tolist() for language, rows in by_language.items()}


def offsets(means: Mapping[str, Vector], vector: Vector, language: str) -> tuple[tuple[str, float], ...]:
    """Returns by how much each language is nearer to the question's vector than the question's own, in cosines.

    Empty if the index has nothing in the question's language, or nothing else.
    """
    if language not in means or len(means) == 1:
        return ()
    question = _unit([vector])[0]
    near = {code: float(question @ mean) for code, mean in means.items()}
    return tuple((code, cosine - near[language]) for code, cosine in sorted(near.items()) if code != language)


def _unit(rows: Sequence[Vector]) -> np.ndarray:
    import numpy as np

    matrix = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)


PAGES = 20
"""The number of summaries per search: later pages wouldn't reach the hits."""


def pages_without_chunks(leg: Sequence[Candidate], pages: Mapping[str, float], depth: int) -> list[str]:
    """The pages without a chunk in the leg, of those with the cosines of their summaries, whose score is high enough for it."""
    there = {candidate.url for candidate in leg}
    least = leg[-1].score if len(leg) >= depth else -1.0
    return [url for url, score in pages.items() if url not in there and score > least]


def raised_to_summaries(leg: Sequence[Candidate], pages: Mapping[str, float], depth: int) -> tuple[Candidate, ...]:
    """The leg with the scores of each page raised by the same amount, so that its best chunk has the summary's score.

    The order of the chunks within a page stays that of their own vectors.
    """
    best: dict[str, float] = {}
    for candidate in leg:
        best[candidate.url] = max(candidate.score, best.get(candidate.url, candidate.score))
    rise = {url: max(0.0, score - best[url]) for url, score in pages.items() if url in best}
    moved = (one._replace(score=one.score + rise[one.url]) if rise.get(one.url) else one for one in leg)
    return tuple(best_first(moved)[:depth])


def best_of_each_page(candidates: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The first candidate of each page."""
    best: dict[str, Candidate] = {}
    for candidate in candidates:
        best.setdefault(candidate.url, candidate)
    return tuple(best.values())


def best_first(candidates: Iterable[Candidate]) -> list[Candidate]:
    """The candidates by score, those with equal scores by id."""
    return sorted(sorted(candidates, key=_ID), key=_SCORE, reverse=True)


_ID, _SCORE = (itemgetter(Candidate._fields.index(name)) for name in ("id", "score"))


def nearest(*found: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """Each candidate once, with its best score, best first."""
    best: dict[str, Candidate] = {}
    for candidates in found:
        for candidate in candidates:
            if candidate.id not in best or candidate.score > best[candidate.id].score:
                best[candidate.id] = candidate
    return tuple(best_first(best.values()))

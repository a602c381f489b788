"""Corrections of a leg before it is fused: offsets of languages, summaries of pages, and lists of several searches merged."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
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


def pages_without_chunks(leg: Sequence[Candidate], pages: Collection[str]) -> list[str]:
    """The addresses of those of the pages that have no chunk in the leg."""
    there = {candidate.url for candidate in leg}
    return [url for url in pages if url not in there]


def of_summaries(pages: Mapping[str, float], leg: Sequence[Candidate]) -> tuple[Candidate, ...]:
    """The leg of the summaries: of each page with the cosine of its summary, the nearest chunk of the vector `leg` with that cosine."""
    nearest_of = {candidate.url: candidate for candidate in reversed(leg)}  # a leg is sorted, best first
    return tuple(nearest_of[url]._replace(score=score) for url, score in pages.items() if url in nearest_of)


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

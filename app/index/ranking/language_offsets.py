"""What a multilingual model's cosines owe to the languages of question and page, not to what they say.

Such models put texts in one language near each other: a page in the question's language is nearer than one in another language
that answers it. The mean of a language's chunks shows by how much (mean centering, as in SHIFT, arXiv 2606.18801).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from app.core.types import Vector

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
    """How much nearer to the question's vector each language is than the question's own, in cosines.

    Empty if the index has nothing in the question's language, or nothing else.
    """
    if language not in means or len(means) == 1:
        return ()
    question = _unit([vector])[0]
    near = {code: float(question @ np.asarray(mean)) for code, mean in means.items()}
    return tuple((code, cosine - near[language]) for code, cosine in sorted(near.items()) if code != language)


def _unit(rows: Sequence[Vector]) -> np.ndarray:
    matrix = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return matrix / np.where(lengths > 0, lengths, 1.0)

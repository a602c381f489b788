"""Two-stage search: the clusters whose centres are nearest to the question, then the chunks in them. Only a step and an evaluation that
ask for it import this module; making clusters needs scikit-learn (the extra `clusters`).
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.core.types import Candidate, Filters, Legs, Query, Vector
from app.index.observed import ObservedGeneration
from app.index.protocols import Generation
from app.index.ranking.legs import best_first

TIMES_ROOT = (
    8  # clusters for the root of the number of chunks: with the root alone, a fifth of them had .90 of the nearest 30
)
STARTS = 3
READ_AT_ONCE = 1000  # chunks
SEED = 500
EVERY = Filters()


@dataclass(frozen=True, slots=True)
class Embedded:
    """Chunks without a score, and the vectors of their texts in the same order, of length 1."""

    chunks: tuple[Candidate, ...]
    vectors: NDArray[np.float32]

    @classmethod
    async def read(cls, generation: Generation) -> Embedded:
        """All chunks of a generation that have a vector. Reads each of them, so do it once for a generation."""
        ids = [id_ for page in await generation.pages() for id_ in page.derived.chunk_ids]
        found, rows = list[Candidate](), list[Vector]()
        for start in range(0, len(ids), READ_AT_ONCE):
            some = ids[start : start + READ_AT_ONCE]
            vectors = await generation.vectors(some)
            for chunk in await generation.fetch([id_ for id_ in some if id_ in vectors]):
                facts = (chunk.url, chunk.language, 0.0, chunk.dated, chunk.versions, chunk.collection)
                found.append(Candidate(chunk.id, *facts))
                rows.append(vectors[chunk.id])
        return cls(tuple(found), unit_rows(rows))


def unit_rows(rows: Sequence[Vector] | NDArray[Any]) -> NDArray[np.float32]:
    """The vectors below one another, with length 1 or 0."""
    matrix = np.asarray(rows, np.float32)
    if not len(matrix):
        return np.zeros((0, 1), np.float32)
    lengths = np.linalg.norm(matrix, axis=1, keepdims=True)
    return np.asarray(matrix / np.where(lengths > 0, lengths, 1), np.float32)


def number_of_clusters(chunks: int, most: int) -> int:
    """Returns `most`, or eight times the root of the number of chunks where that is less; never more than there are chunks."""
    return max(1, min(most, round(TIMES_ROOT * math.sqrt(chunks)), chunks))


@dataclass(frozen=True, slots=True)
class Clusters:
    """Clusters of chunks: the number of that of each chunk, the centres with length 1, and the chunks of each as places."""

    of: Embedded
    labels: NDArray[np.int32]
    centres: NDArray[np.float32]
    members: tuple[NDArray[np.intp], ...]

    @classmethod
    def made(cls, of: Embedded, number: int) -> Clusters:
        """So many clusters by k-means, the same ones each time. Takes .3 s for 314 chunks, 6 s for 20,000: call it in a thread."""
        from sklearn.cluster import MiniBatchKMeans
        from threadpoolctl import threadpool_limits

        with threadpool_limits(1):  # on a busy machine, threads that wait for each other take ten times as long
            means = MiniBatchKMeans(number, random_state=SEED, n_init=STARTS).fit(of.vectors)
        members = tuple(np.flatnonzero(means.labels_ == one) for one in range(number))
        return cls(of, means.labels_, unit_rows(means.cluster_centers_), members)

    def nearest(self, vector: Vector, k: int, filters: Filters = EVERY) -> tuple[Candidate, ...]:
        """The first k chunks that the filters admit: the clusters in the order of their centres, in each the chunks in that of their
        cosines, which are the scores.
        """
        (asked,) = unit_rows([vector])
        taken = list[Candidate]()
        for cluster in np.argsort(-(self.centres @ asked), kind="stable"):
            places = self.members[cluster]
            cosines = self.of.vectors[places] @ asked
            for at in np.argsort(-cosines, kind="stable"):
                chunk = self.of.chunks[places[at]]
                if filters.admits(chunk.url, chunk.collection, {chunk.language}, chunk.versions):
                    taken.append(chunk._replace(score=float(cosines[at])))
            if len(taken) >= k:
                break
        return tuple(taken[:k])


async def clusters_of(generation: Generation, most: int) -> Clusters:
    """The clusters of all chunks of a generation. Raises `ImportError` without scikit-learn."""
    embedded = await Embedded.read(generation)
    return await asyncio.to_thread(Clusters.made, embedded, number_of_clusters(len(embedded.chunks), most))


class ClusteredGeneration(ObservedGeneration):
    """A generation whose vector leg has the chunks of the nearest clusters, at most `chunks` of them."""

    def __init__(self, generation: Generation, clusters: Clusters, chunks: int) -> None:
        super().__init__(generation)
        self._clusters, self._chunks = clusters, chunks

    async def search(self, query: Query) -> Legs:
        """The lexical leg, and the vector leg of the nearest clusters, best first."""
        if query.vector is None or not any(query.vector):
            return await super().search(query)
        recipe = self.info.recipe
        # summaries and questions are searched along with the vectors of chunks
        asked = query if recipe.summaries or recipe.questions else replace(query, vector=None)
        legs = await super().search(asked)
        near = self._clusters.nearest(query.vector, min(query.depth, self._chunks), query.filters)
        return replace(legs, vector=tuple(best_first(near)))

"""Measures the clusters of the two-stage search: whether what belongs together lies together.

Rosenberg & Hirschberg 2007, "V-Measure: A Conditional Entropy-Based External Cluster Evaluation Measure" (EMNLP-CoNLL).
"""

from __future__ import annotations

import tempfile
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.tables import FEWEST_IN_CLUSTER, TIMES_ROOT, Tables, cluster
from eval.files import EvaluationError


@dataclass(frozen=True, slots=True)
class ClusterScores:
    """Homogeneity: chunks of a cluster are of one class. Completeness: chunks of a class are in one cluster. `v` is their
    harmonic mean. All are 0 to 1; shuffled chunks have 0 only where clusters are large.
    """

    homogeneity: float
    completeness: float
    v: float


@dataclass(frozen=True, slots=True)
class Clustering:
    """An index in `clusters` clusters, of which the largest has `largest` chunks; scores by page and by folder of pages."""

    clusters: int
    largest: int
    by_page: ClusterScores
    by_folder: ClusterScores


def scores(classes: Sequence[Hashable], clusters: Sequence[Hashable]) -> ClusterScores:
    """The scores of clusters against classes; entry by entry, both are of the same chunk. Without chunks, all are 1."""
    of_class, of_cluster = _numbered(classes), _numbered(clusters)
    both = _entropy(_numbered(list(zip(of_class.tolist(), of_cluster.tolist(), strict=True))))
    homogeneity = _explained(_entropy(of_class), both - _entropy(of_cluster))
    completeness = _explained(_entropy(of_cluster), both - _entropy(of_class))
    total = homogeneity + completeness
    return ClusterScores(homogeneity, completeness, 2 * homogeneity * completeness / total if total else 0.0)


def _numbered(labels: Sequence[Hashable]) -> NDArray[np.int64]:
    numbers = {label: number for number, label in enumerate(dict.fromkeys(labels))}
    return np.array([numbers[label] for label in labels], dtype=np.int64)


def _entropy(labels: NDArray[np.int64]) -> float:
    shares = np.bincount(labels) / max(len(labels), 1)
    return float(-(shares * np.log(shares)).sum())


def _explained(entropy: float, unexplained: float) -> float:
    return 1 - max(unexplained, 0.0) / entropy if entropy else 1.0


async def clusterings(live: EmbeddedGeneration, numbers: Sequence[int] = ()) -> list[Clustering]:
    """The chunks of the index in so many clusters, made anew; without numbers, in as many as a large index would have.

    Raises `EvaluationError` for fewer than 2 clusters, or more than a tenth of the chunks.
    """
    rows = (await live.chunks.query().select(["id", "url", "vector"]).to_arrow()).combine_chunks()
    most = rows.num_rows // FEWEST_IN_CLUSTER
    wanted = numbers or [min(round(TIMES_ROOT * rows.num_rows**0.5), most)]
    if wrong := [number for number in wanted if not 2 <= number <= most]:
        raise EvaluationError(
            f"{rows.num_rows} chunks can't be in {wrong[0]} clusters: between 2 and {most} are possible, so that each has "
            f"{FEWEST_IN_CLUSTER} chunks."
        )
    urls = rows.column("url").to_pylist()
    folders = [url.rpartition("/")[0] for url in urls]
    measured = []
    for number in wanted:
        assigned = await _assigned(rows, number)
        sizes = np.bincount(assigned)
        measured.append(Clustering(len(sizes), int(sizes.max()), scores(urls, assigned), scores(folders, assigned)))
    return measured


async def _assigned(rows: Any, number: int) -> list[int]:
    """The cluster of each row. LanceDB doesn't tell it: a search in one cluster returns what lies in that."""
    place = {id_: at for at, id_ in enumerate(rows.column("id").to_pylist())}
    vectors = np.stack(rows.column("vector").to_numpy(zero_copy_only=False))
    assigned, clusters = [-1] * len(place), 0
    with tempfile.TemporaryDirectory() as folder:
        tables = Tables(Path(folder))
        _, table = await tables.create("chunks", rows.select(["id", "vector"]))
        await cluster(table, number)
        for at, vector in enumerate(vectors):
            if assigned[at] >= 0:
                continue
            near = (
                table.query()
                .nearest_to(vector)
                .distance_type("dot")
                .nprobes(1)
                .select(["id", "_distance"])
                .limit(len(place))
            )
            inside = [place[row["id"]] for row in await near.to_list()]
            for other in {at, *(row for row in inside if assigned[row] < 0)}:
                assigned[other] = clusters
            clusters += 1
        tables.close()
    return assigned

"""Clustered search beside naive search, how well clusters agree with labels of chunks, and the space of the embeddings. Needs
scikit-learn (the extra `clusters`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from app.core.types import Vector
from app.index.protocols import Generation
from app.index.ranking.clusters import Clusters, Embedded, number_of_clusters, unit_rows
from app.models import Embedder
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.result import CLUSTERS, Outcome, Result
from eval.measure.rows import DEPTHS, Estimate, at, intervals, ranks_of
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule

NAIVE = "naive"
TRIED = (5, 10, 20, 50, 100, 200)
AT_ONCE = 32  # questions in one call to the embedder
BINS = 40
DRAWN = 2000  # chunks and questions in the picture: more can't be told apart
F1 = 4  # its place in `CURVE`


@dataclass(frozen=True)
class Space:
    """The chunks of an index and questions as vectors, and the places of the chunks that are relevant to each question."""

    chunks: Embedded
    cases: tuple[Case, ...]
    questions: NDArray[np.float32]
    relevant: tuple[frozenset[str], ...]

    @classmethod
    async def read(
        cls,
        generation: Generation,
        embedder: Embedder,
        cases: Sequence[Case],
        *,
        labelled: Mapping[str, frozenset[str]] | None = None,
        rules: Sequence[Rule] = (),
        progress: Progress | None = None,
    ) -> Space:
        """The space of an index. Relevant are the chunks that are `labelled` so by case, or else those of the right pages.

        Questions without a relevant chunk are left out. Raises `EvaluationError` if none is left.
        """
        chunks = await Embedded.read(generation)
        if labelled is None:
            labelled = _of_right_pages(chunks, cases, rules)
        known = {one.id for one in chunks.chunks}
        kept = [case for case in cases if labelled.get(case.id, frozenset()) & known]
        if not kept:
            raise EvaluationError("No question has a relevant chunk in the index: is it the index of these questions?")
        parts = [kept[start : start + AT_ONCE] for start in range(0, len(kept), AT_ONCE)]

        async def embedded(_: int, part: Sequence[Case]) -> Sequence[Vector]:
            return await embedder.embed_queries([case.standalone or case.question for case in part])

        vectors = [vector for part in await in_parallel(parts, embedded, 1, progress) for vector in part]
        return cls(chunks, tuple(kept), unit_rows(vectors), tuple(labelled[case.id] & known for case in kept))

    def folders(self) -> list[str]:
        """The folder of the page of each chunk."""
        return [urlsplit(chunk.url).path.rpartition("/")[0] or "/" for chunk in self.chunks.chunks]

    def kinds(self, *, labelled: bool) -> Mapping[str, Sequence[str]]:
        """Labels of the chunks, by kind: their pages, their folders and, if labels were given, the questions that they are relevant to."""
        kinds: dict[str, Sequence[str]] = {"page": [chunk.url for chunk in self.chunks.chunks]}
        kinds["folder"] = self.folders()
        if labelled:
            of = {one.id: list[str]() for one in self.chunks.chunks}
            for case, ids in zip(self.cases, self.relevant, strict=True):
                for id_ in ids:
                    of[id_].append(case.id)
            kinds["questions"] = [" ".join(sorted(of[one.id])) for one in self.chunks.chunks]
        return kinds


def _of_right_pages(chunks: Embedded, cases: Sequence[Case], rules: Sequence[Rule]) -> dict[str, frozenset[str]]:
    by_url: dict[str, set[str]] = {}
    for one in chunks.chunks:
        by_url.setdefault(one.url, set()).add(one.id)
    documents = Documents(by_url, rules)
    urls = {case.id: {url for doc in case.relevant for url in documents.pages(doc)} for case in cases}
    return {id_: frozenset(chunk for url in of for chunk in by_url[url]) for id_, of in urls.items()}


@dataclass(frozen=True, slots=True)
class Clustering:
    """How well so many clusters agree with labels of one kind, each 0..1; `largest` is the number of chunks in the largest cluster.

    Homogeneity is 1 if each cluster has chunks of one label only, completeness if each label is in one cluster only; `v` is their
    harmonic mean.
    """

    clusters: int
    kind: str
    homogeneity: float
    completeness: float
    v: float
    largest: int


async def clustered(
    space: Space, numbers: Sequence[int], most: int, *, labelled: bool, progress: Progress | None = None
) -> tuple[Result, tuple[Clustering, ...]]:
    """Naive search and search by clusters, of the default number or of these `numbers`, as contestants; and how well the clusters of
    these and of other numbers agree with labels.
    """
    count = len(space.chunks.chunks)
    default = number_of_clusters(count, most)
    searched = sorted({min(number, count) for number in numbers} or {default})
    tried = sorted({*searched, default, *(number for number in TRIED if number < count)})
    found, outcomes = list[Clustering](), _searched(space, NAIVE, partial(_by_cosine, space))
    for done, number in enumerate(tried, start=1):
        clusters = await asyncio.to_thread(Clusters.made, space.chunks, number)
        found += _agreements(clusters, space.kinds(labelled=labelled))
        if number in searched:
            outcomes += _searched(space, f"{number} clusters", partial(_by_clusters, clusters))
        if progress:
            progress(done, len(tried))
    return Result(CLUSTERS, tuple(outcomes), {"against": NAIVE}), tuple(found)


Ranking = Callable[[NDArray[np.float32]], Sequence[str]]


def _by_cosine(space: Space, row: NDArray[np.float32]) -> Sequence[str]:
    best = np.argsort(-(space.chunks.vectors @ row), kind="stable")[: max(DEPTHS)]
    return [space.chunks.chunks[place].id for place in best]


def _by_clusters(clusters: Clusters, row: NDArray[np.float32]) -> Sequence[str]:
    return [one.id for one in clusters.nearest(row.tolist(), max(DEPTHS))]


def _searched(space: Space, name: str, ranking: Ranking) -> list[Outcome]:
    outcomes = list[Outcome]()
    for case, row, relevant in zip(space.cases, space.questions, space.relevant, strict=True):
        ids = ranking(row)
        values = {f"f1_{k}": at(ranks_of(ids[:k], relevant), k)[F1] for k in DEPTHS}
        outcomes.append(Outcome(case, name, values, details={"relevant": len(relevant)}))
    return outcomes


def _agreements(clusters: Clusters, kinds: Mapping[str, Sequence[str]]) -> list[Clustering]:
    from sklearn.metrics import homogeneity_completeness_v_measure

    number, largest = len(clusters.centres), max(map(len, clusters.members))
    found = list[Clustering]()
    for kind, labels in kinds.items():
        homogeneity, completeness, v = homogeneity_completeness_v_measure(labels, clusters.labels)
        found.append(Clustering(number, kind, float(homogeneity), float(completeness), float(v), largest))
    return found


def f1_rows(result: Result) -> list[tuple[str, list[tuple[float, float]], list[Estimate]]]:
    """For each depth: its name, mean and standard deviation over questions of each contestant, and the paired differences of each to
    the base with 95 % intervals over pages.
    """
    values = {
        name: np.array([[outcome.values[m] for m in result.measures] for outcome in result.of(name).outcomes], float)
        for name in result.contestants
    }
    pages = [[case.doc for case in result.cases]]
    base = values[result.base]
    gaps = [intervals([own - base], pages) for name, own in values.items() if name != result.base]
    return [
        (
            f"F1@{k}",
            [(float(own[:, at_].mean()), float(own[:, at_].std(ddof=int(len(own) > 1)))) for own in values.values()],
            [gap[at_] for gap in gaps],
        )
        for at_, k in enumerate(DEPTHS)
    ]


def picture(space: Space) -> dict[str, Any]:
    """The first two principal components of the chunks, with the questions: `x`, `y`, `kind`, `folder` and `name` of each point, of a
    sample in a large index; `explained` is the share of the variance that they have.
    """
    from sklearn.decomposition import PCA

    components = PCA(2, random_state=0).fit(space.chunks.vectors)
    folders = space.folders()
    folder_of = {one.id: folder for one, folder in zip(space.chunks.chunks, folders, strict=True)}
    chunks = [("chunk", folder, one.url) for one, folder in zip(space.chunks.chunks, folders, strict=True)]
    asked = [
        ("question", folder_of[min(ids)], case.question) for case, ids in zip(space.cases, space.relevant, strict=True)
    ]
    points = [
        {"x": round(float(x), 4), "y": round(float(y), 4), "kind": kind, "folder": folder, "name": name}
        for rows, facts in ((space.chunks.vectors, chunks), (space.questions, asked))
        for (x, y), (kind, folder, name) in zip(components.transform(rows), facts, strict=True)
    ]
    step = -(-len(points) // DRAWN)
    return {"explained": float(components.explained_variance_ratio_.sum()), "points": points[::step]}


def cosines(space: Space) -> dict[str, Any]:
    """The distribution of the cosines of relevant pairs of a question and a chunk, and of the others: mean and standard deviation,
    the share of pairs in each bin from `low` to `high`, and the probability that a relevant pair has the larger one (`auc`).
    """
    from sklearn.metrics import roc_auc_score

    every = space.questions @ space.chunks.vectors.T
    right = np.array([[one.id in ids for one in space.chunks.chunks] for ids in space.relevant])
    low, high = float(every.min()), float(every.max())
    found: dict[str, Any] = {"low": low, "high": high}
    for name, own in (("relevant", every[right]), ("other", every[~right])):
        counts, _ = np.histogram(own, BINS, (low, high))
        shares = (counts / max(len(own), 1)).tolist()
        found[name] = {"n": len(own), "mean": float(own.mean()), "sd": float(own.std()), "shares": shares}
    return found | {"auc": float(roc_auc_score(right.ravel(), every.ravel()))}

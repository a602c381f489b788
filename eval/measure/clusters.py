"""Clustered search beside naive search, how well clusters agree with labels of chunks, and the space of the embeddings. Needs
scikit-learn (the extra `clusters`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from app.index.protocols import Generation
from app.index.ranking.clusters import Clusters, Embedded, number_of_clusters, unit_rows
from app.models import Embedder
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.result import CLUSTERS, Outcome, Result
from eval.measure.rows import CURVE, DEPTHS, at, ranks_of
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule

NAIVE = "naive"
SCORES = ("homogeneity", "completeness", "v")
TRIED = (5, 10, 20, 50, 100, 200)  # clusters
BINS = 40
DRAWN = 2000  # points of the picture: more can't be told apart


@dataclass(frozen=True)
class Space:
    """The chunks of an index and questions as vectors, the ids of the chunks that are relevant to each question, and labels of the
    chunks by kind: their pages, their folders and, if somebody labelled relevance, the questions that they are relevant to.
    """

    chunks: Embedded
    cases: tuple[Case, ...]
    questions: NDArray[np.float32]
    relevant: tuple[frozenset[str], ...]
    kinds: Mapping[str, Sequence[str]]

    @classmethod
    async def read(
        cls,
        generation: Generation,
        embedder: Embedder,
        cases: Sequence[Case],
        relevant: Mapping[str, frozenset[str]] | Sequence[Rule],
        progress: Progress | None = None,
    ) -> Space:
        """The space of an index. `relevant` are the ids of chunks by case, or else rules by which the right pages are found: then all
        of their chunks are relevant. Questions without any are left out; raises `EvaluationError` if none is left.
        """
        chunks = await Embedded.read(generation)
        urls = [one.url for one in chunks.chunks]
        kinds = {"page": urls, "folder": [urlsplit(url).path.rpartition("/")[0] or "/" for url in urls]}
        if isinstance(relevant, Mapping):
            kinds["questions"] = [
                " ".join(sorted(c for c in relevant if one.id in relevant[c])) for one in chunks.chunks
            ]
            known = frozenset(one.id for one in chunks.chunks)
            right = {case.id: relevant.get(case.id, frozenset()) & known for case in cases}
        else:
            documents = Documents(set(urls), relevant)
            pages = {case.id: {url for doc in case.relevant for url in documents.pages(doc)} for case in cases}
            right = {id_: frozenset(c.id for c in chunks.chunks if c.url in own) for id_, own in pages.items()}
        kept = tuple(case for case in cases if right[case.id])
        if not kept:
            raise EvaluationError("No question has a relevant chunk in the index: is it the index of these questions?")
        asked = [case.standalone or case.question for case in kept]
        rows = await in_parallel(asked, lambda _, text: embedder.embed_queries([text]), 4, progress)
        return cls(chunks, kept, unit_rows([row for (row,) in rows]), tuple(right[case.id] for case in kept), kinds)


async def clustered(
    space: Space, numbers: Sequence[int], most: int, progress: Progress | None = None
) -> tuple[Result, list[dict[str, Any]]]:
    """Naive search and search by clusters, of the default number or of these `numbers`, as contestants; and how well clusters of
    these and of other numbers agree with each kind of labels: `SCORES`, 0..1, and the number of chunks in the `largest` one.

    Homogeneity is 1 if each cluster has chunks of one label only, completeness if each label is in one cluster only.
    """
    from sklearn.metrics import homogeneity_completeness_v_measure

    ids, found = [one.id for one in space.chunks.chunks], list[dict[str, Any]]()
    default = number_of_clusters(len(ids), most)
    searched = {min(number, len(ids)) for number in numbers} or {default}
    tried = sorted({*searched, default, *(number for number in TRIED if number < len(ids))})
    best = np.argsort(-(space.questions @ space.chunks.vectors.T), axis=1, kind="stable")[:, : max(DEPTHS)]
    outcomes = _outcomes(space, NAIVE, [[ids[place] for place in row] for row in best])
    for done, number in enumerate(tried, start=1):
        clusters = await asyncio.to_thread(Clusters.made, space.chunks, number)
        largest = max(map(len, clusters.members))
        for kind, labels in space.kinds.items():
            scores = map(float, homogeneity_completeness_v_measure(labels, clusters.labels))
            found.append(
                {"clusters": number, "largest": largest, "kind": kind, **dict(zip(SCORES, scores, strict=True))}
            )
        if number in searched:
            near = [[one.id for one in clusters.nearest(row, max(DEPTHS))] for row in space.questions.tolist()]
            outcomes += _outcomes(space, f"{number} clusters", near)
        if progress:
            progress(done, len(tried))
    return Result(CLUSTERS, tuple(outcomes), {"against": NAIVE}), found


def _outcomes(space: Space, name: str, rankings: Sequence[Sequence[str]]) -> list[Outcome]:
    """The F1 of each question at `DEPTHS`."""
    f1, outcomes = CURVE.index("f1"), list[Outcome]()
    for case, relevant, ids in zip(space.cases, space.relevant, rankings, strict=True):
        values = {f"f1_{k}": at(ranks_of(ids, relevant), k)[f1] for k in DEPTHS}
        outcomes.append(Outcome(case, name, values, details={"relevant": len(relevant)}))
    return outcomes


def picture(space: Space) -> dict[str, Any]:
    """Chunks and questions on the first two principal components, 0..1, a sample of them in a large index: `x`, `y`, the `folder` of a
    point, its `name`, and whether it is a question (`asked`). `explained` is the share of the variance that they have.
    """
    from sklearn.decomposition import PCA

    components, folder = PCA(2, random_state=0).fit(space.chunks.vectors), space.kinds["folder"]
    folder_of = {one.id: folder[place] for place, one in enumerate(space.chunks.chunks)}
    facts = [(False, folder_of[one.id], one.url) for one in space.chunks.chunks]
    asked = zip(space.cases, space.relevant, strict=True)
    facts += [(True, folder_of[min(ids)], case.question) for case, ids in asked]
    places = components.transform(np.concatenate([space.chunks.vectors, space.questions]))
    places = ((places - places.min(axis=0)) / np.maximum(np.ptp(places, axis=0), 1e-9)).round(4).tolist()
    points = [
        {"x": x, "y": y, "asked": is_asked, "folder": own, "name": name}
        for (x, y), (is_asked, own, name) in zip(places, facts, strict=True)
    ]
    return {
        "explained": float(components.explained_variance_ratio_.sum()),
        "points": points[:: -(-len(points) // DRAWN)],
    }


def cosines(space: Space) -> dict[str, Any]:
    """The distribution of the cosines of `relevant` pairs of a question and a chunk, and of the `other` ones: how many, mean, standard
    deviation, and a curve of the share of pairs by cosine; and the probability that a relevant pair has the larger one (`auc`).
    """
    from sklearn.metrics import roc_auc_score

    every = space.questions @ space.chunks.vectors.T
    right = np.array([[one.id in ids for one in space.chunks.chunks] for ids in space.relevant])
    found: dict[str, Any] = {"auc": float(roc_auc_score(right.ravel(), every.ravel()))}
    for name, own in (("relevant", every[right]), ("other", every[~right])):
        counts, edges = np.histogram(own, BINS, (every.min(), every.max()))
        shares = zip(((edges[1:] + edges[:-1]) / 2).tolist(), (counts / len(own)).tolist(), strict=True)
        found[name] = {"n": len(own), "mean": float(own.mean()), "sd": float(own.std()), "curve": list(shares)}
    return found

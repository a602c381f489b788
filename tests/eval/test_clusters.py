"""Measures of clusters: those of the paper, and the clusters of a real index."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from app.core.generation import Recipe
from app.core.settings import Settings
from app.core.types import Chunk, Page
from app.index.embedded.store import EmbeddedStore
from eval.measure.vector_clusters import ClusterScores, scores
from tests.eval.conftest import command

KINDS = 6


def test_scores_are_those_of_the_paper() -> None:
    """By hand where they are plain, and those of scikit-learn where that is installed."""
    assert scores("aabb", [1, 1, 2, 2]) == ClusterScores(1, 1, 1)
    assert scores("aabb", [1, 1, 1, 1]) == ClusterScores(0, 1, 0)
    whole = scores("aabb", [1, 2, 3, 4])
    assert (whole.homogeneity, whole.completeness) == (pytest.approx(1), pytest.approx(0.5))
    assert scores("", []) == ClusterScores(1, 1, 1)
    metrics = pytest.importorskip("sklearn.metrics")
    rng = random.Random(3)
    for many in (2, 5, 40):
        classes, clusters = [[rng.randrange(many) for _ in range(300)] for _ in range(2)]
        found = scores(classes, clusters)
        expected = metrics.homogeneity_completeness_v_measure(classes, clusters)
        assert (found.homogeneity, found.completeness, found.v) == pytest.approx(expected)


async def test_the_clusters_of_an_index_are_measured_by_page_and_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Chunks of a page point the same way, so as many clusters as pages keep every page whole."""
    rng, store = random.Random(5), EmbeddedStore(tmp_path / "index")
    async with await store.draft(Recipe("e", KINDS, "s", "a")) as draft:
        for kind in range(KINDS):
            url = f"https://x/{'ab'[kind % 2]}/{kind}"
            chunks = [Chunk(f"c{kind}-{i}", "docs", url, i, f"text {kind} {i}", "en", "P") for i in range(20)]
            axis = [float(kind == i) for i in range(KINDS)]
            vectors = {chunk.id: [one + rng.gauss(0, 0.01) for one in axis] for chunk in chunks}
            await draft.put(Page(url, "docs", "P", "en", "", str(kind)), chunks, vectors)
        await draft.publish()
    await store.close()
    settings = Settings.load(env_file=None, store=str(tmp_path / "index"))
    assert await command(settings, "clusters", "--number", "6", "--json") == 0
    (six,) = json.loads(capsys.readouterr().out)
    assert (six["clusters"], six["largest"]) == (KINDS, 20)
    assert six["by_page"]["v"] == pytest.approx(1)
    assert six["by_folder"]["homogeneity"] == pytest.approx(1)
    assert six["by_folder"]["completeness"] == pytest.approx(math.log(2) / math.log(6))
    assert await command(settings, "clusters", "--number", "50") == 2
    assert "between 2 and 12" in capsys.readouterr().err

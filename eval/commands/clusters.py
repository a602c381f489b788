"""`eval clusters`: measures whether the clusters of the two-stage search keep pages together."""

from __future__ import annotations

import argparse
from dataclasses import asdict

from app.core.settings import Settings
from app.index import open_store
from app.index.embedded.generation import EmbeddedGeneration
from eval.commands.options import OK, Commands, OpenFinder, check_writable, finish, new_command, positive
from eval.errors import EvaluationError
from eval.measure.clusters import Clustering, ClusterScores, clusterings
from eval.measure.tables import as_table

COLUMNS = ("homogeneity", "completeness", "v")


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "clusters",
        _clusters,
        ("--json", "--out"),
        help="measure how well clusters of vectors keep pages and folders together",
        description="Clusters the vectors of the index anew in a temporary directory. Needs no questions and no model.",
    )
    parser.add_argument(
        "--number", type=positive, nargs="+", default=(), metavar="N", help="numbers of clusters to try"
    )


async def _clusters(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    check_writable(options, "out")
    store = open_store(settings)
    try:
        live = await store.live()
        if not isinstance(live, EmbeddedGeneration):
            raise EvaluationError(
                "OpenSearch searches a graph and has no clusters: this needs an index in a directory."
            )
        found = await clusterings(live, options.number)
    finally:
        await store.close()
    finish(options, [asdict(one) for one in found], text=lambda: _text(found))
    return OK


def _text(found: list[Clustering]) -> str:
    header = ["clusters", "largest", *(f"{name} by {kind}" for kind in ("page", "folder") for name in COLUMNS)]
    rows = [[str(one.clusters), str(one.largest), *_cells(one.by_page), *_cells(one.by_folder)] for one in found]
    return "\n".join(as_table(header, rows))


def _cells(scores: ClusterScores) -> list[str]:
    return [f"{value:.3f}" for value in (scores.homogeneity, scores.completeness, scores.v)]

"""`eval clusters`: search by clusters beside naive search, clusters against labels, and the space of the embeddings."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

import eval.commands.labelling as module
from app.core.types import Candidate
from app.index.ranking.clusters import Embedded, unit_rows
from eval.measure.clusters import NAIVE, Space, clustered, cosines, f1_rows, picture
from eval.measure.result import load_result
from eval.questions.cases import Case, load_cases
from eval.questions.labels import Label, write_labels
from eval.questions.own_docs import own_set
from tests.eval.conftest import command

pytestmark = pytest.mark.skipif(not find_spec("sklearn"), reason="needs the extra clusters")

GROUPS, SIZE = 4, 10


def space() -> Space:
    """Four pages of ten chunks around directions of their own, and a question in the middle of each; the last one is off towards 0."""
    dice = np.random.default_rng(1)
    rows = np.repeat(np.eye(GROUPS, 8), SIZE, axis=0) + dice.normal(0, 0.05, (GROUPS * SIZE, 8))
    chunks = tuple(
        Candidate(f"{page}-{n}", f"https://x/{page // 2}/{page}", "en", 0.0)
        for page in range(GROUPS)
        for n in range(SIZE)
    )
    cases = tuple(Case(f"q{page}", "en", f"What is {page}?", f"{page // 2}/{page}") for page in range(GROUPS))
    asked = np.eye(GROUPS, 8)
    asked[3, 0] = 0.97
    relevant = tuple(frozenset(f"{page}-{n}" for n in range(SIZE)) for page in range(GROUPS))
    return Space(Embedded(chunks, unit_rows(rows)), cases, unit_rows(asked), relevant)


async def test_clusters_are_taken_whole_before_the_next_one():
    """Naive search mixes two pages for a question between them; by clusters, all of the nearer one come first, as in the paper."""
    result, found = await clustered(space(), [GROUPS], 500, labelled=True)
    assert result.contestants == (NAIVE, "4 clusters")
    naive, by_clusters = (result.of(name).outcomes for name in result.contestants)
    assert by_clusters[3].values["f1_10"] == 1.0
    assert naive[3].values["f1_10"] < 0.9
    assert by_clusters[0].values["f1_5"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert by_clusters[0].values["f1_30"] == pytest.approx(2 * (10 / 30) / (10 / 30 + 1))
    ((name, ((mean, sd), _), (gap,)), *others) = f1_rows(result)
    values = [outcome.values["f1_5"] for outcome in naive]
    assert (name, len(others)) == ("F1@5", 5)
    assert (mean, sd) == (pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)))
    assert gap.mean == pytest.approx(np.mean([b.values["f1_5"] for b in by_clusters]) - mean)
    exact = {one.kind: one for one in found if one.clusters == GROUPS}
    assert (exact["page"].homogeneity, exact["page"].completeness, exact["page"].v) == pytest.approx((1, 1, 1))
    assert exact["questions"].v == pytest.approx(1)
    # two pages a folder: clusters of pages are pure, but split each folder
    assert exact["folder"].homogeneity == pytest.approx(1)
    assert exact["folder"].completeness == pytest.approx(0.5)
    assert {one.clusters for one in found} == {4, 5, 10, 20, 40}


def test_the_space_is_drawn_and_its_cosines_are_counted():
    one = space()
    drawn = picture(one)
    assert len(drawn["points"]) == GROUPS * SIZE + GROUPS
    assert [point["folder"] for point in drawn["points"] if point["kind"] == "question"] == ["/0", "/0", "/1", "/1"]
    assert 0.5 < drawn["explained"] < 1
    near = cosines(one)
    assert (near["relevant"]["n"], near["other"]["n"]) == (GROUPS * SIZE, GROUPS * SIZE * (GROUPS - 1))
    assert sum(near["relevant"]["shares"]) == pytest.approx(1)
    assert near["relevant"]["mean"] > near["other"]["mean"] + 0.5
    assert near["auc"] > 0.95


async def test_the_command_makes_table_file_and_page(index, tmp_path, capsys):
    """On a real index, with the right pages or with labels as what is relevant; the file can be compared."""
    out, html = tmp_path / "c.json", tmp_path / "c.html"
    with own_set() as path:
        assert await command(index, "clusters", path, "--limit", "30", "--out", out, "--html", html) == 0
        case = load_cases(path)[0]
        printed = capsys.readouterr().out
        assert "F1@30" in printed
        assert "v by folder" in printed
        saved = load_result(out)
        assert len(saved.contestants) == 2
        assert json.loads(out.read_text())["picture"]["points"]
        page = html.read_text()
        assert page.count("<circle") > 100 < page.count("<path d=") * 10
        assert "Cosines of questions and chunks" in page
        unknown = tmp_path / "l.jsonl"
        write_labels([Label(case.id, "gone", relevant=True, by="x")], unknown)
        assert await command(index, "clusters", path, "--labels", unknown) == 2
        assert "No question has a relevant chunk" in capsys.readouterr().err
        assert await command(index, "clusters", path, "--number", "some") == 2
        assert "--number some" in capsys.readouterr().err


async def test_without_scikit_learn_the_extra_is_named(index, monkeypatch, capsys):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert await command(index, "clusters", "q.jsonl") == 2
    assert "docs-assistant[clusters]" in capsys.readouterr().err

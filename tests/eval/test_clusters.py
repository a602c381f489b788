"""`eval clusters`: search by clusters beside naive search, clusters against labels, and the space of the embeddings."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

import eval.commands.labelling as module
from app.core.types import Candidate
from app.index import open_store
from app.index.ranking.clusters import Embedded, unit_rows
from eval.measure.clusters import NAIVE, Space, clustered, cosines, picture
from eval.measure.result import load_result
from eval.measure.tables import clusters_table
from eval.questions.cases import Case, load_cases
from eval.questions.documents import Documents
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
    kinds = {"page": [one.url for one in chunks], "folder": [one.url.rpartition("/")[0] for one in chunks]}
    return Space(Embedded(chunks, unit_rows(rows)), cases, unit_rows(asked), relevant, kinds)


async def test_clusters_are_taken_whole_before_the_next_one():
    """Naive search mixes two pages for a question between them; by clusters, all of the nearer one come first, as in the paper."""
    result, found = await clustered(space(), [GROUPS], 500)
    assert result.contestants == (NAIVE, "4 clusters")
    naive, by_clusters = (result.of(name).outcomes for name in result.contestants)
    assert by_clusters[3].values["f1_10"] == 1.0
    assert naive[3].values["f1_10"] < 0.9
    assert by_clusters[0].values["f1_5"] == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert by_clusters[0].values["f1_30"] == pytest.approx(2 * (10 / 30) / (10 / 30 + 1))
    header, rows = clusters_table(result)
    assert header == ["chunks", NAIVE, "4 clusters", "4 clusters: difference"]
    before, after = ([outcome.values["f1_10"] for outcome in own] for own in (naive, by_clusters))
    assert rows[1][:2] == ["F1@10", f"{np.mean(before):.3f} ± {np.std(before):.3f}"]
    assert rows[1][3].startswith(f"{np.mean(after) - np.mean(before):+.3f} ")
    assert len(rows) == 6
    exact = {one["kind"]: one for one in found if one["clusters"] == GROUPS}
    assert [exact["page"][name] for name in ("homogeneity", "completeness", "v")] == pytest.approx([1, 1, 1])
    # two pages a folder: clusters of pages are pure, but split each folder
    assert exact["folder"]["homogeneity"] == pytest.approx(1)
    assert exact["folder"]["completeness"] == pytest.approx(0.5)
    assert {one["clusters"] for one in found} == {4, 5, 10, 20, 40}


def test_the_space_is_drawn_and_its_cosines_are_counted():
    one = space()
    drawn = picture(one)
    assert len(drawn["points"]) == GROUPS * SIZE + GROUPS
    assert [point["folder"] for point in drawn["points"] if point["asked"]] == [f"https://x/{n}" for n in (0, 0, 1, 1)]
    assert {value for point in drawn["points"] for value in (point["x"], point["y"])} >= {0.0, 1.0}
    assert 0.5 < drawn["explained"] < 1
    near = cosines(one)
    assert (near["relevant"]["n"], near["other"]["n"]) == (GROUPS * SIZE, GROUPS * SIZE * (GROUPS - 1))
    assert sum(share for _, share in near["relevant"]["curve"]) == pytest.approx(1)
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
        assert "completeness" in printed
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
        ids = [one.id for one in await chunks_about(index, case.doc)]
        write_labels([Label(case.id, id_, relevant=True, by="x") for id_ in ids], unknown)
        assert await command(index, "clusters", path, "--labels", unknown, "--number", "7", "--out", out) == 0
        assert "1 of" in capsys.readouterr().out
        kinds = {one["kind"] for one in json.loads(out.read_text())["clusterings"]}
        assert kinds == {"page", "folder", "questions"}
        assert load_result(out).contestants == (NAIVE, "7 clusters")


async def chunks_about(index, doc: str):
    store = open_store(index)
    live = await store.live()
    pages = await live.pages()
    (url,) = Documents([page.url for page in pages]).pages(doc)
    chunks = (await live.chunks_of([url]))[url]
    await store.close()
    return chunks


async def test_without_scikit_learn_the_extra_is_named(index, monkeypatch, capsys):
    monkeypatch.setattr(module, "find_spec", lambda _: None)
    assert await command(index, "clusters", "q.jsonl") == 2
    assert "docs-assistant[clusters]" in capsys.readouterr().err

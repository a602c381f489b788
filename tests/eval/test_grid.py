"""`eval grid`: settings are compared in one run, over a real index, with a scripted language model and a second embedder over HTTP."""

import asyncio
import json
import os
import re
import sys
from pathlib import Path

import lxml.html
import pytest

from app.core.settings import Settings
from eval.measure.grid import load_grid, presets
from tests.docs_assistant.cli.stored_index import copied_docs, index_docs
from tests.eval.conftest import command
from tests.fake_llm import FakeLLM, Reply, fake_llm

ROOT = Path(__file__).parents[2]
ROWS = [
    {"id": "a", "question": "Which command starts the service over my site?", "doc": "en/start", "lang": "en"},
    {"id": "b", "question": "How do I add another site to the index?", "doc": "en/sites", "lang": "en"},
    {"id": "c", "question": "Where is a site paused?", "doc": "en/sites", "lang": "en"},
    {"id": "d", "question": "Can I ask in Slack, Teams or Matrix?", "doc": "en/chats", "lang": "en"},
]
FOUND = """
[[table]]
title = "Found"
axes = ["embedder", "search"]
measures = ["f1", "precision", "recall"]

[[table]]
title = "By question"
measures = ["f1", "recall"]
by_question = true
"""
SEARCH = """
[axes.search]
"hybrid" = {}
"words" = { vector_weight = { "*" = 0.0 } }
"exact vectors" = { vector_weight = { "*" = 1.0 }, exact = true }
"""
TOLD = "Run `docs-assistant run` with the address of your site [1]."


@pytest.fixture(scope="session")
def three_docs(tmp_path_factory: pytest.TempPathFactory) -> Settings:
    """Settings whose store is an index of three pages in two languages."""
    folder = tmp_path_factory.mktemp("three-docs")
    docs = copied_docs(folder / "docs", "start", "sites", "chats")
    asyncio.run(index_docs(Settings.load(env_file=None), folder / "index", docs))
    return Settings.load(env_file=None, store=str(folder / "index"), collection="docs")


@pytest.fixture
def questions(write_jsonl) -> Path:
    """The rows as a set, with what an answer must say."""
    return write_jsonl(
        "questions.jsonl", *({**row, "answer": "Run docs-assistant run with your site."} for row in ROWS)
    )


def embedders(llm: FakeLLM) -> str:
    return f"""
[axes.embedder]
"words" = {{}}
"served" = {{ embedding_url = "{llm.url}", embedding_model = "served" }}
"""


async def compared(tmp_path: Path, settings: Settings, questions: Path, text: str, *more: object) -> tuple[int, dict]:
    """The exit code of a run of this grid, and the rows of each of its tables by label."""
    (tmp_path / "grid.toml").write_text(text, "utf-8")
    code = await command(settings, "grid", tmp_path / "grid.toml", questions, "--out", tmp_path / "out", *more)
    saved = json.loads((tmp_path / "out/grid.json").read_text("utf-8"))
    return code, {table["title"]: {row["label"]: row for row in table["rows"]} for table in saved["tables"]}


async def test_embedders_and_search_methods_are_compared_in_one_run(tmp_path, three_docs, questions, capsys):
    """Each combination has its figures with intervals, the paired differences from the first one, and a plot; best first."""
    async with fake_llm() as llm:
        code, tables = await compared(tmp_path, three_docs, questions, "k = 1\n" + embedders(llm) + SEARCH + FOUND)
        assert code == 0
        assert set(llm.embedding_models) == {"served"}
    rows = tables["Found"]
    assert set(rows) == {f"{one}, {how}" for one in ("words", "served") for how in ("hybrid", "words", "exact vectors")}
    assert all(set(row["measures"]) == {"f1", "precision", "recall"} for row in rows.values())
    means = [row["measures"]["f1"]["mean"] for row in rows.values()]
    assert means == sorted(means, reverse=True)
    # vectors of the letters of a text, which the server makes, find less than words
    assert rows["served, exact vectors"]["measures"]["f1"]["mean"] < rows["words, hybrid"]["measures"]["f1"]["mean"]
    base, other = rows["words, hybrid"]["measures"]["f1"], rows["served, exact vectors"]["differences"]["f1"]
    assert other["before"] == pytest.approx(base["mean"])
    assert other["estimate"]["mean"] == pytest.approx(other["after"] - other["before"])
    assert rows["words, hybrid"]["differences"] == {}
    # the search by words alone needs no vectors: both embedders find the same
    assert rows["served, words"]["measures"] == rows["words, words"]["measures"]
    assert set(tables["By question"]) == {row["question"] for row in ROWS}
    page = lxml.html.document_fromstring((tmp_path / "out/grid.html").read_text("utf-8"))
    assert len(page.xpath("//svg[.//rect[starts-with(@class, 'fill-')]]")) == 6 * 3 + len(ROWS) * 2
    told = capsys.readouterr().out
    assert re.search(r"embedder, search +n +F1@1 +difference +P@1", told)
    assert told.index("words, hybrid") < told.index("served, exact vectors")


ANSWERS = """
[axes.model]
"good" = { llm_model = "good" }
"bad" = { llm_model = "bad" }

[[table]]
title = "Answers"
axes = ["model", "embedder"]
measures = ["correctness", "similarity", "faithful"]

[[table]]
title = "Embedders"
axes = ["embedder"]
measures = ["similarity", "f1"]
"""


def replied(body: dict) -> Reply:
    """A good model says what it should, a bad one something else; the judge believes only the good one."""
    text = body["messages"][-1]["content"]
    if body["model"] == "judge":
        faithful = "-----SOURCE" in text and "docs-assistant run" in text.partition("-----ANSWER")[2]
        category = "COMPLETE" if "-----REFERENCE" in text else "FAITHFUL" if faithful else "UNKNOWN"
        return Reply(json.dumps({"category": category}))
    return Reply({"good": TOLD, "bad": "Ferrets sleep."}[body["model"]] if body.get("stream") else "same")


async def test_models_and_embedders_are_compared_by_their_answers(tmp_path, three_docs, questions, monkeypatch):
    """Cosine and correctness are measured, faithfulness by a judge; answers and their table by the judge are in the directory."""
    monkeypatch.setattr("eval.judge.find_spec", lambda _: None)  # the judge reads our wording
    async with fake_llm() as llm:
        llm.reply = replied
        answering = three_docs.model_copy(update={"llm_url": llm.url, "min_evidence": 0.0, "unproven": "off"})
        grid = embedders(llm) + ANSWERS
        judge = ["--judge-url", llm.url, "--judge-model", "judge"]
        code, tables = await compared(tmp_path, answering, questions, grid, *judge)
        assert code == 0
        rows = tables["Answers"]
        assert set(rows) == {f"{model}, {one}" for model in ("good", "bad") for one in ("words", "served")}
        for embedder in ("words", "served"):
            good, bad = rows[f"good, {embedder}"]["measures"], rows[f"bad, {embedder}"]["measures"]
            assert good["correctness"]["mean"] > bad["correctness"]["mean"] + 0.2
            assert good["faithful"]["mean"] == 1
        assert next(iter(rows)).startswith("good")
        assert set(tables["Embedders"]["served"]["measures"]) == {"similarity", "f1"}
        page = (tmp_path / "out/grid.html").read_text("utf-8")
        assert "Faithful, complete, in the right language" in page
        assert "Ferrets sleep." in (tmp_path / "out/answers.json").read_text("utf-8")
        assert (tmp_path / "out/answers.html").is_file()
        judge[-1] = "bad"
        assert (
            await command(answering, "grid", tmp_path / "grid.toml", questions, "--out", tmp_path / "out", *judge) == 2
        )


async def test_moods_are_compared_by_the_three_measures(tmp_path, three_docs, questions, monkeypatch):
    """Each tone of the shipped grid answers with its own prompt, and is measured by cosine, correctness and faithfulness."""
    monkeypatch.setattr("eval.judge.find_spec", lambda _: None)
    moods = ("neutral", "elderly", "kids", "emojis", "rhymes")
    told: set[str] = set()

    def reply(body: dict) -> Reply:
        if body["model"] == "good" and body.get("stream"):
            told.add(body["messages"][0]["content"].partition("Only the tone")[0].strip().rpartition("\n")[2])
            rhymes = "rhym" in json.dumps(body["messages"])
            return Reply("Roses are red." if rhymes else TOLD)
        return replied(body)

    own = tmp_path / "own.toml"
    own.write_text(
        '[[table]]\ntitle = "Moods"\naxes = ["mood"]\nmeasures = ["similarity", "correctness", "faithful"]\n', "utf-8"
    )
    async with fake_llm() as llm:
        llm.reply = reply
        answering = three_docs.model_copy(
            update={"llm_url": llm.url, "llm_model": "good", "min_evidence": 0.0, "unproven": "off"}
        )
        words = ["grid", "moodibot", questions, "--values", own, "--out", tmp_path / "out", "--judge-url", llm.url]
        assert await command(answering, *words, "--judge-model", "judge") == 0
    (table,) = json.loads((tmp_path / "out/grid.json").read_text("utf-8"))["tables"]
    rows = {row["label"]: row for row in table["rows"]}
    assert set(rows) == set(moods)
    assert len(told) == len(moods)
    assert list(rows)[-1] == "rhymes"  # the worst, of those that say something else
    assert rows["rhymes"]["differences"]["correctness"]["estimate"]["mean"] < -0.2
    assert all("faithful" in rows[mood]["measures"] for mood in moods if mood != "rhymes")


INDEXED = """
[axes.chunks]
"as set" = {}
"short" = { chunk_size = 300 }
"with neighbours" = { chunk_neighbours = 200 }

[axes.search]
"hybrid" = {}
"words" = { vector_weight = { "*" = 0.0 } }

[[table]]
title = "Chunks"
axes = ["chunks", "search"]
measures = ["rr", "chunk"]

[[table]]
title = "Embedders"
axes = ["embedder"]
measures = ["rr"]
"""


async def test_settings_that_need_another_index_build_it_once(tmp_path, three_docs, questions):
    """Combinations of one recipe share an index, a later run finds it, and the live one serves those that it is of."""
    async with fake_llm() as llm:
        code, tables = await compared(tmp_path, three_docs, questions, embedders(llm) + INDEXED)
        assert code == 0
        indexes = sorted(path.name for path in (tmp_path / "out/indexes").iterdir() if path.is_dir())
        assert len(indexes) == 3  # short, with neighbours, served
        assert len(tables["Chunks"]) == 6
        texts = [text for call in llm.embedded for text in call]
        long = [text for text in texts if len(text) > 200]
        assert len(long) == len(set(long))  # no passage was embedded twice
        before = len(texts)
        code, again = await compared(tmp_path, three_docs, questions, embedders(llm) + INDEXED)
        assert (code, again) == (0, tables)
        assert not any(len(text) > 200 for call in llm.embedded for text in call[before:])
        assert sorted(path.name for path in (tmp_path / "out/indexes").iterdir() if path.is_dir()) == indexes
    assert json.loads((tmp_path / "out/retrieval.json").read_text("utf-8"))["failed"] == 0


async def test_a_stopped_run_goes_on(tmp_path, three_docs, questions):
    """Killed at the fourth answer, the same command repeats no answer that it has."""
    grid = tmp_path / "grid.toml"
    async with fake_llm() as llm:
        grid.write_text(
            '[axes.model]\n"one" = { llm_model = "one" }\n"two" = { llm_model = "two" }\n'
            '[[table]]\ntitle = "Answers"\naxes = ["model"]\nmeasures = ["correctness", "rr"]\n',
            "utf-8",
        )
        env = {**os.environ, "DOCS_STORE": three_docs.store, "DOCS_LLM_URL": llm.url, "DOCS_MIN_EVIDENCE": "0"}
        words = [
            sys.executable,
            "-m",
            "docs_assistant.cli",
            "eval",
            "grid",
            grid,
            questions,
            "--parallel",
            "1",
            "--out",
            tmp_path / "out",
        ]
        streams: list[str] = []
        run: list[asyncio.subprocess.Process] = []

        def reply(body: dict) -> Reply:
            if not body.get("stream"):
                return Reply("same")
            if len(streams) == 3 and len(run) == 1:
                run[0].kill()
                return Reply(TOLD, delay=5)
            streams.append(body["model"])
            return Reply(TOLD)

        llm.reply = reply
        run.append(await asyncio.create_subprocess_exec(*map(str, words), cwd=ROOT, env=env))
        assert await run[0].wait() < 0
        assert streams == ["one"] * 3
        run.append(
            await asyncio.create_subprocess_exec(*map(str, words), cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE)
        )
        told, _ = await run[1].communicate()
        assert run[1].returncode == 0
        assert streams == ["one"] * 4 + ["two"] * 4
        assert "Answers" in told.decode()
        asked = len(llm.calls)
        run.append(
            await asyncio.create_subprocess_exec(*map(str, words), cwd=ROOT, env=env, stdout=asyncio.subprocess.PIPE)
        )
        assert await run[2].wait() == 0
        assert len(llm.calls) == asked


async def test_a_wrong_grid_is_named_before_anybody_is_asked(tmp_path, three_docs, questions, capsys):
    """The message names the file and the word; the shipped grids have no mistake."""
    for name in presets():
        assert load_grid(name).table
    table = '[[table]]\ntitle = "T"\naxes = ["one"]\nmeasures = ["rr"]\n'
    for text, told in (
        ('[axes.one]\n"a" = { chunk_sise = 300 }\n' + table, "no setting 'chunk_sise'. Did you mean chunk_size?"),
        ('[axes.two]\n"a" = {}\n' + table, "no axis 'one'"),
        ('[axes.one]\n"a" = {}\n' + table.replace("rr", "mrr"), "no measure 'mrr'"),
        ('[axes.one]\n"a" = {}\n"b" = { chunk_size = 1 }\n' + table, "one b: chunk_size is 1"),
        ("[axes.one]\n", "'table' is missing"),
        ("[axes", "isn't valid TOML"),
    ):
        (tmp_path / "grid.toml").write_text(text, "utf-8")
        words = ["grid", tmp_path / "grid.toml", questions, "--out", tmp_path / "out"]
        assert await command(three_docs, *words) == 2
        assert told in capsys.readouterr().err
    assert not (tmp_path / "out").exists()

"""Grids: combinations, indexes made anew, results side by side; and contestants by the command line."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import sys
from collections import Counter
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.assembly import opened
from app.core.models import open_embedder
from app.core.settings import Settings
from app.core.store.embedded import EmbeddedStore
from app.core.types import Page
from eval.commands import add_commands, run
from eval.errors import EvaluationError
from eval.measure.grid import load_grid
from eval.measure.rebuild import rebuild
from eval.questions.cases import load_cases
from eval.questions.own_docs import indexed_docs, own_set
from tests.fake_llm import Reply, fake_llm

ROOT = Path(__file__).parents[2]
GRID = """
[settings]
per_page = 1

[axes]
fusion = ["weighted", "rrf"]
chunk_size = [1500, 600]
"""


@dataclass
class Finder:
    assistants: Any

    async def find(self, request):
        return await self.assistants.get("").find(request)


@asynccontextmanager
async def open_finder(overrides, model=None):
    async with opened(Settings.load(**overrides), model=model) as assistants:
        yield Finder(assistants)


async def command(settings: Settings, *words: object) -> int:
    parser = argparse.ArgumentParser()
    add_commands(parser.add_subparsers(required=True))
    return await run(parser.parse_args([str(word) for word in words]), settings, open_finder)


def written(tmp_path, text: str):
    path = tmp_path / "grid.toml"
    path.write_text(text, encoding="utf-8")
    return path


def test_every_combination_is_named_by_what_varies(tmp_path):
    """The first values come first; only some settings need an index of their own."""
    found = load_grid(written(tmp_path, GRID))
    assert [one.name for one in found] == [
        "fusion=weighted chunk_size=1500", "fusion=weighted chunk_size=600",
        "fusion=rrf chunk_size=1500", "fusion=rrf chunk_size=600",
    ]  # fmt: skip
    assert found[1].settings == {"per_page": 1, "fusion": "weighted", "chunk_size": 600}
    assert found[1].index == {"chunk_size": 600}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("axes = 3", "needed are"),
        ("[axes]\nchunk_size = 600", "needed are"),
        ("[axes]\nchunk = [600]", "no such setting"),
        ("[axes", "no valid TOML"),
        ("[settings]\ntop_k = 5", "needed are"),
        (f"[axes]\ntop_k = {list(range(1, 21))}\nper_page = {list(range(1, 21))}", "400 combinations"),
    ],
)
def test_wrong_grids_are_refused(tmp_path, text, said):
    """Before anything is measured."""
    with pytest.raises(EvaluationError, match=said):
        load_grid(written(tmp_path, text))


async def test_an_index_is_made_anew_from_its_own_pages(tmp_path):
    """Smaller chunks, same pages, same Markdown; the first index stays as it was."""
    settings = Settings.load(env_file=None, store=str(tmp_path / "a"), chunk_size=1500)
    source = EmbeddedStore(settings.store, keep=1)
    text = "\n\n".join(f"## Part {n}\n\n{'Words about storage. ' * 20}" for n in range(6))
    page = Page("https://d.example/a", "docs", "A", "en", f"# A\n\n{text}", "h")
    first = await _write(source, page, settings)
    live = await source.live()
    made = await rebuild(live, settings.model_copy(update={"store": str(tmp_path / "b"), "chunk_size": 600}))
    assert (made.pages, first.pages) == (1, 1)
    assert made.chunks > first.chunks
    assert "/600/" in made.recipe.splitter
    other = EmbeddedStore(str(tmp_path / "b"), keep=1)
    assert (await (await other.live()).page(page.url)).markdown == page.markdown
    assert (await source.live()).info == live.info
    await source.close()
    await other.close()


async def _write(store, page: Page, settings: Settings):
    from ingestion.run import recipe_for
    from ingestion.split import open_splitter

    embedder = open_embedder(settings)
    async with await store.draft(await recipe_for(embedder, settings)) as draft:
        chunks = open_splitter(settings).split(page)
        vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
        await draft.put(page, chunks, {c.id: v for c, v in zip(chunks, vectors, strict=True)})
        return await draft.publish()


async def test_a_grid_is_measured_over_our_own_docs(tmp_path, monkeypatch, capsys):
    """Four configurations, two of them on an index made for them; each is compared with the first."""
    async with indexed_docs(Settings.load(env_file=None)) as settings:
        monkeypatch.setenv("DOCS_STORE", settings.store)
        with own_set() as path:
            out = tmp_path / "grid.json"
            code = await command(
                settings,
                "grid",
                path,
                written(tmp_path, GRID),
                "--limit",
                "40",
                "--out",
                out,
                "--html",
                tmp_path / "grid.html",
            )
    shown = capsys.readouterr().out
    assert code == 0
    assert shown.count("chunk_size=600") == 2
    html = (tmp_path / "grid.html").read_text(encoding="utf-8")
    assert "fusion=rrf chunk_size=600" in html
    assert not re.search(r"(?:src|href)=", html)
    kept = json.loads(out.read_text(encoding="utf-8"))["configurations"]
    splitters = [one["result"]["config"]["index"]["recipe"]["splitter"].split("/")[-2] for one in kept]
    assert splitters == ["1500", "600", "1500", "600"]
    assert all(row["measures"]["rr"]["estimate"]["mean"] == 0 for row in kept[0]["against_first"])


async def test_our_assistant_and_a_foreign_api_answer_side_by_side(tmp_path, monkeypatch, capsys):
    """Answers, judgements and both reports are kept; the same command again asks nobody."""
    async with indexed_docs(Settings.load(env_file=None)) as settings, fake_llm() as llm:
        verdict = '{"category": "UNKNOWN", "reasoning": "?"}'
        llm.reply = lambda body: Reply("Ask somebody." if body["model"] == "old-bot" else verdict)
        monkeypatch.setenv("DOCS_STORE", settings.store)
        answering = settings.model_copy(update={"llm_url": llm.url, "llm_model": "ours"})
        with own_set() as path, own_set("docs_unanswerable.jsonl") as none:
            words = [
                "run", path, "--unanswerable", none, "--limit", "20", "--assistant", "docs-assistant",
                "--url", f"old={llm.url},old-bot", "--judge-url", llm.url, "--judge-model", "judge",
                "--own-criteria", "--out", tmp_path / "out",
            ]  # fmt: skip
            assert await command(answering, *words) == 0
            asked = len(llm.calls)
            assert await command(answering, *words) == 0
    assert len(llm.calls) == asked
    assert sum(call["model"] == "old-bot" for call in llm.calls) == 20
    assert "Against docs-assistant" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert {row["contestant"] for row in kept["rows"]} == {"docs-assistant", "old"}
    assert kept["failed_judgements"] == kept["failed_answers"] == 0
    tokens = {one["contestant"]: one["prompt_tokens"] for one in kept["efforts"]}
    assert tokens["docs-assistant"] > tokens["old"] == 11  # helper calls count as well
    assert (tmp_path / "out/answers.html").is_file()
    with own_set() as path:
        same = Settings.load(env_file=None, llm_url="http://127.0.0.1:9/v1", llm_model="judge")
        assert await command(same, "run", path, "--judge-url", "x", "--judge-model", "judge", "--out", tmp_path) == 2
    assert "can't judge" in capsys.readouterr().err


async def test_a_grid_of_settings_answers(tmp_path, monkeypatch, capsys):
    """Each combination is a contestant, on an index of its own where it needs one; another setting asks anew."""
    text = '[settings]\nmin_evidence = {}\n[axes]\nchunk_size = [1500, 600]\nassistant = ["docs-assistant"]\n'
    async with indexed_docs(Settings.load(env_file=None)) as settings:
        monkeypatch.setenv("DOCS_STORE", settings.store)
        with own_set() as path:
            words = ["run", path, "--limit", "8", "--out", tmp_path / "out", "--grid"]
            assert await command(settings, *words, written(tmp_path, text.format("0.0"))) == 0
            kept = (tmp_path / "out/answers.jsonl").read_text(encoding="utf-8")
            assert await command(settings, *words, written(tmp_path, text.format("0.0"))) == 0
            assert (tmp_path / "out/answers.jsonl").read_text(encoding="utf-8") == kept
            assert await command(settings, *words, written(tmp_path, text.format("1.0"))) == 0
    assert len(kept.splitlines()) == 16
    assert len((tmp_path / "out/answers.jsonl").read_text(encoding="utf-8").splitlines()) == 32
    assert "Against chunk_size=1500" in capsys.readouterr().out
    result = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert {row["contestant"] for row in result["rows"]} == {"chunk_size=1500", "chunk_size=600"}
    assert sum(bool(answer["answer"]["passages"]) for answer in result["answers"]) < 8  # 1.0 is hardly ever reached
    judged = Settings.load(env_file=None, store=settings.store)
    grid = written(tmp_path, '[axes]\nllm_model = ["judge", "other"]\n')
    words = ["run", path, "--grid", grid, "--judge-url", "x", "--judge-model", "judge", "--out", tmp_path / "o"]
    assert await command(judged, *words) == 2


@pytest.mark.server
async def test_a_killed_run_of_answers_goes_on_and_repeats_nothing(tmp_path):
    """The command itself, SIGKILL while answers come and again while they are judged: nothing is paid for twice."""
    asked = Counter[str]()

    def reply(body) -> Reply:
        asked[body["model"] + body["messages"][-1]["content"]] += 1
        return Reply("Ask." if body["model"] == "bot" else '{"category": "UNKNOWN", "reasoning": ""}', delay=0.05)

    async with indexed_docs(Settings.load(env_file=None)) as settings, fake_llm() as llm:
        llm.reply = reply
        with own_set() as path:
            words = [
                sys.executable, "-m", "app.cli", "eval", "run", str(path), "--limit", "30", "--parallel", "3",
                "--url", f"old={llm.url},bot", "--judge-url", llm.url, "--judge-model", "judge", "--own-criteria",
                "--out", str(tmp_path / "out"),
            ]  # fmt: skip
            for kill_after in (12, 60, None):
                running = await asyncio.create_subprocess_exec(
                    *words, cwd=ROOT, env={**os.environ, "DOCS_STORE": settings.store}, stdout=asyncio.subprocess.PIPE
                )
                while kill_after and asked.total() < kill_after:
                    await asyncio.sleep(0.01)
                if kill_after:
                    running.kill()
                await running.communicate()
    assert running.returncode == 0
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert (len(kept["answers"]), kept["failed_answers"], kept["failed_judgements"]) == (30, 0, 0)
    again = sum(n - 1 for n in asked.values())
    assert again <= 2 * 3  # only what was under way when it was killed
    assert sum(key.startswith("bot") for key in asked) == 30


def test_our_set_has_questions_to_run_on():
    """The tests above take some of them."""
    with own_set() as path:
        assert len(load_cases(path)) > 40

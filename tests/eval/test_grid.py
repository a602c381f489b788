"""Grids: combinations, indexes made anew, results side by side; and contestants by the command line."""

from __future__ import annotations

import argparse
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from app.assistant import opened
from app.core.models import open_embedder
from app.core.settings import Settings
from app.core.store.embedded import EmbeddedStore
from app.core.types import Page
from eval.cases import load_cases
from eval.commands import add_commands, run
from eval.errors import EvaluationError
from eval.grid import load_grid
from eval.own import indexed_docs, own_set
from eval.rebuild import rebuild
from tests.fake_llm import Reply, fake_llm

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
            code = await command(settings, "grid", path, written(tmp_path, GRID), "--limit", "40", "--out", out)
    shown = capsys.readouterr().out
    assert code == 0
    assert shown.count("chunk_size=600") == 2
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
        with own_set() as path, own_set("docs_unanswerable.jsonl") as none:
            words = [
                "run", path, "--unanswerable", none, "--limit", "20", "--assistant", "docs-assistant",
                "--url", f"old={llm.url},old-bot", "--judge-url", llm.url, "--judge-model", "judge",
                "--own-criteria", "--out", tmp_path / "out",
            ]  # fmt: skip
            assert await command(settings, *words) == 0
            asked = len(llm.calls)
            assert await command(settings, *words) == 0
    assert len(llm.calls) == asked
    assert sum(call["model"] == "old-bot" for call in llm.calls) == 20
    assert "Against docs-assistant" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert {row["contestant"] for row in kept["rows"]} == {"docs-assistant", "old"}
    assert kept["failed_judgements"] == kept["failed_answers"] == 0
    assert (tmp_path / "out/answers.html").is_file()
    with own_set() as path:
        same = Settings.load(env_file=None, llm_url="http://127.0.0.1:9/v1", llm_model="judge")
        assert await command(same, "run", path, "--judge-url", "x", "--judge-model", "judge", "--out", tmp_path) == 2
    assert "can't judge" in capsys.readouterr().err


def test_our_set_has_questions_to_run_on():
    """The tests above take some of them."""
    with own_set() as path:
        assert len(load_cases(path)) > 40

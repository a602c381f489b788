"""Grids: combinations of settings, steps, prompts and models; indexes made anew; results side by side."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from app.assistants.assembly import build
from app.core.settings import Settings
from app.core.types import Page
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from app.pipeline import registry
from eval.answers.score import Answer, Scored
from eval.files import EvaluationError
from eval.grid.configurations import UNCHANGED, Configuration, load_grid, rebuild, variants
from eval.grid.result import GridResult, Measured, grid_text, retrieval_of
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.own_docs import own_set
from tests.app.pipeline.test_registry import STEPS, tools
from tests.eval.conftest import command
from tests.fake_llm import Reply, fake_llm

ROOT = Path(__file__).parents[2]
GRID = """
[settings]
per_page = 1

[axes]
fusion = ["weighted", "rrf"]
chunk_size = [1500, 600]
"""


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


@pytest.mark.plugins
async def test_wrong_grids_are_refused(tmp_path, capsys, own_index):
    """Before anything is measured."""
    for text, message in (
        ("axes = 3", "is needed"),
        ("[axes]\nchunk_size = 600", "is needed"),
        ("[axes]\nchunk = [600]", "no such setting"),
        ("[axes", "isn't valid TOML"),
        ("[settings]\ntop_k = 5", "is needed"),
        (f"[axes]\ntop_k = {list(range(1, 21))}\nper_page = {list(range(1, 21))}", "400 combinations"),
    ):
        with pytest.raises(EvaluationError, match=message):
            load_grid(written(tmp_path, text))
    grid = written(tmp_path, '[axes]\nllm_model = ["judge", "other"]\n')
    judge = ["--judge-url", "x", "--judge-model", "judge", "--answers", "--out", tmp_path / "o"]
    steps = tmp_path / "steps.toml"
    steps.write_text('[axes]\nsteps = ["as it is", "without thinking"]\n', encoding="utf-8")
    first = tmp_path / "first.toml"
    first.write_text('[axes]\nsteps = ["with hyde", "as it is"]\n', encoding="utf-8")
    with own_set() as path:
        for words, message in (
            ([], "Give exactly one of"),
            (["--steps", "--weights"], "Give exactly one of"),
            ([grid, "--folds", "1"], "at least 2"),
            ([grid, "--unanswerable", path], "--unanswerable needs --answers"),
            ([grid, "--answers"], "--answers needs --out DIR"),
            ([grid, *judge], "judge answers in 'llm_model=judge', so it can't judge"),
            ([steps], "the axis `steps` takes as it is, without refine"),
            ([first], "'with hyde' needs a language model"),
            (["--steps", "--assistant", "nobody"], "no assistant 'nobody'. Available: docs-assistant"),
            ([grid, "--k", "50"], "can't hold 50 pages"),
        ):
            assert await command(own_index, "grid", path, *words) == 2
            assert message in capsys.readouterr().err


@pytest.mark.plugins
def test_each_optional_step_is_put_in_or_left_out_at_its_place() -> None:
    """The default assistant's steps; what can't be left out isn't, and what this machine lacks is named."""
    found = {one.name: one for one in variants(STEPS, tools())}
    assert next(iter(found)) == UNCHANGED
    assert {"without refine", "without keywords", "without relevance", "without cite"} <= set(found)
    assert not {"without detect", "without retrieve", "without synthesize"} & set(found)
    assert found["with hyde"].steps[1] == ("refine", "keywords", "probe", "hyde")
    assert found["with period"].steps[1] == ("refine", "keywords", "probe", "period")
    assert found["with condense"].steps[3:5] == (("relevance",), ("condense",))
    assert found["analyze for refine and keywords"].steps[1] == ("analyze", "probe")
    assert found["without keywords"].changed == ("keywords",)
    assert {step for one in found.values() for group in one.steps for step in group} == set(registry.steps())
    lacking = {one.name: one.needs for one in variants(STEPS, tools(model=False)) if one.needs}
    assert {name for name, needs in lacking.items() if needs == "a language model"} == {
        "without refine", "without keywords", "with multi_query", "with hyde", "with associate", "with second_search",
        "with condense", "analyze for refine and keywords",
    }  # fmt: skip
    assert lacking["with rerank"] == lacking["with rerank + helpful"] == "a reranker"


def scored(name: str, ranks: list[int], *, refused: bool = False, failed: tuple = ()) -> tuple[Scored, ...]:
    rows = []
    for number, rank in enumerate(ranks):
        pages = tuple(f"https://x/{'right' if place == rank else 'other'}-{number}" for place in range(1, 6))
        case = Case(f"en{number}", "en", "?", f"right-{number}", variant="1")
        answer = Answer(
            name, case.id, pages=pages, calls=2, prompt_tokens=60, completion_tokens=40, ms=5.0, failed_steps=failed
        )
        rows.append(Scored(case, answer, {}))
    none = Case("none", "en", "?", "", variant="near")
    return (*rows, Scored(none, Answer(name, none.id, refused=refused), {}))


def test_answers_are_compared_with_those_of_the_first_configuration():
    """The pages that they were made from, refusals, calls and tokens; what wasn't measured says why."""

    def measured(name: str, own: tuple[Scored, ...], **more) -> Measured:
        result = retrieval_of(own, Documents(()), 5, {}) if own else None
        return Measured(Configuration(name, {}, **more), result, own)

    result = GridResult((
        measured(UNCHANGED, scored(UNCHANGED, [1] * 6 + [2] * 6, refused=True)),
        measured("without a", scored("without a", [2] * 12)),
        measured("with c", scored("with c", [1] * 12, failed=("c",)), changed=("c",)),
        measured("with d", (), needs="a reranker"),
    ))  # fmt: skip
    base, without, with_c, missing = result.measured
    assert base.result
    assert base.result.row("en").measures["rr"].mean == 0.75
    assert (base.refused(answerable=False), base.refused(answerable=True)) == (1.0, 0.0)
    assert result.everything(without).estimate.mean == result.languages("without a").estimate.mean == -0.25
    assert without.refused(answerable=False) == 0.0
    assert result.everything(with_c).estimate.mean == 0.25
    assert result.everything(with_c).outside_noise
    assert (with_c.calls, with_c.tokens) == (pytest.approx(24 / 13), pytest.approx(1200 / 13))
    assert with_c.note == "failed on 12 of 13 questions"
    assert missing.note == "not measured: needs a reranker"
    text = grid_text(result)
    assert "+0.250* +" in text
    assert "100 % / 0 %" in text


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
    assert made.recipe.splitter.endswith("/600")
    other = EmbeddedStore(str(tmp_path / "b"), keep=1)
    assert (await (await other.live()).page(page.url)).markdown == page.markdown
    assert (await source.live()).info == live.info
    await source.close()
    await other.close()


async def _write(store, page: Page, settings: Settings):
    from ingestion.publish.recipe import recipe_for
    from ingestion.split import open_splitter

    embedder = open_embedder(settings)
    async with await store.draft(await recipe_for(embedder, settings)) as draft:
        chunks = open_splitter(settings).split(page)
        vectors = await embedder.embed_passages([chunk.embedded_text for chunk in chunks])
        await draft.put(page, chunks, {c.id: v for c, v in zip(chunks, vectors, strict=True)})
        return await draft.publish()


@pytest.mark.slow
async def test_a_grid_is_measured_over_our_own_docs(tmp_path, index, capsys):
    """Four configurations, two of them on an index made for them; each is compared with the first."""
    out, page = tmp_path / "grid.json", tmp_path / "grid.html"
    with own_set() as path:
        words = ["--limit", "40", "--folds", "2", "--out", out, "--html", page]
        assert await command(index, "grid", path, written(tmp_path, GRID), *words) == 0
    shown = capsys.readouterr().out
    assert "chunk_size=600" in shown
    assert "Fold even, 20 questions" in shown
    html = page.read_text(encoding="utf-8")
    assert "fusion=rrf chunk_size=600" in html
    assert "Fold even, 20 questions" in html
    assert not re.search(r"(?:src|href)=", html)
    kept = json.loads(out.read_text(encoding="utf-8"))["configurations"]
    splitters = [one["result"]["config"]["index"]["recipe"]["splitter"].split("/")[-1] for one in kept]
    assert splitters == ["1500", "600", "1500", "600"]
    assert all(row["measures"]["rr"]["estimate"]["mean"] == 0 for row in kept[0]["against_first"])


@pytest.mark.slow
async def test_prompts_and_models_are_axes_and_what_was_answered_is_kept(tmp_path, index, capsys):
    """Each prompts directory with each model is a contestant; the same command again asks nobody."""
    shutil.copytree(ROOT / "prompts", tmp_path / "other", ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    for prompt in (tmp_path / "other").glob("*/synthesize.md"):
        prompt.write_text("Be short.\n" + prompt.read_text("utf-8"), encoding="utf-8")
    async with fake_llm() as llm:
        llm.reply = lambda _: Reply("It is so [1].")
        text = f'[settings]\nllm_url = "{llm.url}"\n[axes]\nprompts = ["", "{tmp_path / "other"}"]\nllm_model = ["a", "b"]\n'
        with own_set() as path:
            words = ["grid", path, written(tmp_path, text), "--answers", "--limit", "3", "--out", tmp_path / "out"]
            assert await command(index, *words) == 0
            asked = len(llm.calls)
            assert await command(index, *words) == 0
    assert len(llm.calls) == asked
    assert set(Counter(call["model"] for call in llm.calls)) == {"a", "b"}
    assert any("Be short." in call["messages"][0]["content"] for call in llm.calls)
    rows = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))["rows"]
    assert len({row["contestant"] for row in rows}) == 4
    assert len(json.loads((tmp_path / "out/grid.json").read_text(encoding="utf-8"))["configurations"]) == 4
    assert "llm_model=b" in (tmp_path / "out/grid.html").read_text(encoding="utf-8")


@pytest.mark.slow
async def test_steps_are_compared_by_whole_answers(tmp_path, index, capsys) -> None:
    """Without a model, over our documentation; the file of assistants that was measured can be used as it is."""
    steps = ["as it is", "without relevance", "with period", "with hyde"]
    grid = written(tmp_path, f"[axes]\nsteps = {json.dumps(steps)}\n")
    with own_set() as path, own_set("docs_unanswerable.jsonl") as none:
        words = ["grid", path, grid, "--answers", "--unanswerable", none, "--limit", "12", "--out", tmp_path / "out"]
        assert await command(index, *words) == 0
        kept = (tmp_path / "out/answers.jsonl").read_text("utf-8")
        assert await command(index, *words) == 0
    assert (tmp_path / "out/answers.jsonl").read_text("utf-8") == kept  # nothing is asked twice
    assert "not measured: needs a language model" in capsys.readouterr().out
    found = json.loads((tmp_path / "out/grid.json").read_text("utf-8"))["configurations"]
    rows = {row["name"].removeprefix("steps="): row for row in found}
    assert rows["without relevance"]["refused_unanswerable"] == 0.0
    assert rows[UNCHANGED]["refused_unanswerable"] > 0.5
    assert rows[UNCHANGED]["calls"] == 0
    assert rows["with period"]["ms"] > 0
    file = tmp_path / "out/assistants.toml"
    ids = [one["id"] for one in tomllib.loads(file.read_text("utf-8"))["assistant"]]
    assert "with clarify" in ids
    assert list(build(Settings.load(None, assistants=str(file), store=str(tmp_path / "x"))).by_id) == ids

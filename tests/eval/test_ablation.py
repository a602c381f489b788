"""What a step is worth: which ways of steps are measured, and that the figures are those of the answers."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from app.assembly import build
from app.core.settings import Settings
from eval.answers.score import Scored
from eval.answers.types import Answer
from eval.answers.worth import worth_text, worths
from eval.measure.ablation import BASE, Variant, variants
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.own_docs import indexed_docs, own_set
from tests.app.pipeline.test_registry import STEPS, tools
from tests.eval.test_commands import Bench


def of(found: tuple[Variant, ...], name: str) -> Variant:
    return next(one for one in found if one.name == name)


def test_each_box_is_put_in_or_taken_out_at_its_place() -> None:
    """The default assistant's steps; what can't be left out isn't."""
    found = variants(STEPS, tools())
    names = [one.name for one in found]
    assert names[0] == BASE
    assert {"without refine", "without keywords", "without relevance", "without cite"} <= set(names)
    assert not {"without detect", "without retrieve", "without synthesize"} & set(names)
    assert of(found, "with hyde").steps[1] == ("refine", "keywords", "probe", "hyde")
    assert of(found, "with period").steps[:2] == (("detect",), ("period",))
    assert of(found, "with condense").steps[3:5] == (("relevance",), ("condense",))
    assert of(found, "analyze for refine and keywords").steps[1] == ("analyze", "probe")
    assert of(found, "without keywords").out


def test_what_is_missing_is_named() -> None:
    found = variants(STEPS, tools(model=False))
    assert {one.name for one in found if one.needs == "a language model"} == {
        "without refine", "without keywords", "with multi_query", "with hyde", "with associate", "with second_search",
        "with condense", "analyze for refine and keywords",
    }  # fmt: skip
    assert of(found, "with rerank").needs == of(found, "with rerank + helpful").needs == "a reranker"


def scored(
    name: str, ranks: list[int], *, language: str = "en", refused: bool = False, failed: tuple = ()
) -> list[Scored]:
    rows = []
    for number, rank in enumerate(ranks):
        pages = tuple(f"https://x/{'right' if place == rank else 'other'}-{number}" for place in range(1, 6))
        case = Case(f"{language}{number}", language, "?", f"right-{number}", variant="1")
        answer = Answer(
            name, case.id, pages=pages, calls=2, prompt_tokens=60, completion_tokens=40, ms=5.0, failed_steps=failed
        )
        rows.append(Scored(case, answer, {}))
    none = Case(f"none-{language}", language, "?", "", variant="near")
    return [*rows, Scored(none, Answer(name, none.id, refused=refused), {})]


def test_worth_is_with_the_box_minus_without_it() -> None:
    """Taken out or put in: what helps is above 0 in both."""
    found = (
        Variant(BASE, (("a",),)),
        Variant("without a", (("b",),), ("a",), out=True),
        Variant("with c", (("a",), ("c",)), ("c",)),
        Variant("with d", (("a",), ("d",)), ("d",), needs="a reranker"),
    )
    rows = [
        *scored(BASE, [1] * 6 + [2] * 6, refused=True),
        *scored("without a", [2] * 12),
        *scored("with c", [1] * 12, failed=("c",)),
    ]
    base, without, with_c, missing = worths(found, rows, Documents(()), 5)
    assert base.mrr == {("en", False): 0.75}
    assert (base.gain, base.refused_unanswerable, base.refused_answerable) == (None, 1.0, 0.0)
    assert without.gain
    assert without.gain.mean == pytest.approx(0.25)
    assert without.refused_unanswerable == 0.0
    assert with_c.gain
    assert with_c.gain.mean == pytest.approx(0.25)
    assert with_c.outside_noise
    assert with_c.note == "failed on 12 of 13 questions"
    assert (with_c.calls, with_c.tokens) == (pytest.approx(24 / 13), pytest.approx(1200 / 13))
    assert missing.note == "not measured: needs a reranker"
    text = worth_text([base, without, with_c, missing], 5)
    assert "+0.250* +" in text
    assert "100 % / 0 %" in text


@pytest.mark.server
async def test_the_command_measures_and_writes_a_page(tmp_path: Path, monkeypatch, capsys, lookup) -> None:
    """Without a model, over our documentation; the file of assistants it ran can be used as it is."""
    bench = Bench(lookup({}), tmp_path)
    async with indexed_docs(Settings.load(env_file=None)) as settings:
        monkeypatch.setenv("DOCS_STORE", settings.store)
        bench.settings = settings
        with own_set() as path, own_set("docs_unanswerable.jsonl") as none:
            words = ("ablation", path, "--unanswerable", none, "--limit", "12", "--out", tmp_path / "out")
            assert await bench(*words) == 0
            kept = (tmp_path / "out/answers.jsonl").read_text("utf-8")
            assert await bench(*words) == 0
    assert (tmp_path / "out/answers.jsonl").read_text("utf-8") == kept  # nothing is asked twice
    out = capsys.readouterr().out
    assert "not measured: needs a language model" in out
    rows = {row["name"]: row for row in json.loads((tmp_path / "out/ablation.json").read_text("utf-8"))["rows"]}
    assert rows["without relevance"]["refused_unanswerable"] == 0.0
    assert rows[BASE]["refused_unanswerable"] > 0.5
    assert rows[BASE]["calls"] == 0
    assert rows["with period"]["ms"] > 0
    assert "with clarify" in (tmp_path / "out/ablation.html").read_text("utf-8")
    file = tmp_path / "out/assistants.toml"
    ids = [one["id"] for one in tomllib.loads(file.read_text("utf-8"))["assistant"]]
    assert list(build(Settings.load(None, assistants=str(file), store=str(tmp_path / "x"))).by_id) == ids


async def test_an_unknown_assistant_is_told(tmp_path: Path, capsys, lookup) -> None:
    with own_set() as path:
        words = ("ablation", path, "--assistant", "nobody", "--out", tmp_path / "out")
        assert await Bench(lookup({}), tmp_path)(*words) == 2
    assert "no assistant 'nobody'. There is: docs-assistant" in capsys.readouterr().err

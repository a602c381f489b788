"""`eval examples` and `eval fit`: numbers of a decision, judged on the set that they weren't fitted on."""

import json
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from app.core.fitted import Fitted, fitted
from app.core.settings import Settings
from eval.measure.fitting import Example, fit
from eval.questions.own_docs import own_set
from tests.eval.conftest import command

needs_sklearn = pytest.mark.skipif(not find_spec("sklearn"), reason="needs the extra eval")
NAMES = sorted(fitted("sure").weights)


def answers(seed: int, n: int = 200) -> list[Example]:
    """Quotations that are right the likelier the larger their gap, whatever the other features are."""
    dice = np.random.default_rng(seed)
    rows = [dict(zip(NAMES, dice.random(len(NAMES)), strict=True)) for _ in range(n)]
    return [Example(row, bool(dice.random() < row["gap"])) for row in rows]


@needs_sklearn
def test_what_decides_gets_the_weight_and_each_set_is_judged_by_the_others() -> None:
    """A set whose labels mean the opposite is found by its figure, however well the numbers fit the other one."""
    model, figures = fit({"a": answers(1), "b": answers(2)}, "sure")
    assert max(model.weights, key=lambda name: model.weights[name]) == "gap"
    assert all(one.auc > 0.7 and one.right > 0.6 for one in figures)
    sure = sum(fitted("sure").decides(row.features) for row in answers(1) + answers(2))
    assert sum(model.decides(row.features) for row in answers(1) + answers(2)) == pytest.approx(sure, abs=2)
    turned = [Example(row.features, not row.right) for row in answers(2)]
    assert all(one.auc < 0.3 for one in fit({"a": answers(1), "b": turned}, "sure")[1])


@needs_sklearn
def test_a_statement_is_judged_by_words_and_meaning_together() -> None:
    """The weights that ship ask for more words the farther a sentence is."""
    dice = np.random.default_rng(1)
    rows = [{"row": dice.random(), "near": dice.random() / 2, "across": 0.0, "near_across": 0.0} for _ in range(300)]
    sites = {
        name: [Example(row, row["row"] + 2 * row["near"] + dice.random() / 5 > 1) for row in part]
        for name, part in (("a", rows[:150]), ("b", rows[150:]))
    }
    model, figures = fit(sites, "stated")
    assert all(one.auc > 0.9 for one in figures)
    assert model.weights["row"] > 0 < model.weights["near"]
    shipped, far = fitted("stated"), {"near": 0.05, "across": 0.0, "near_across": 0.0}
    assert [shipped.decides(far | {"row": row}) for row in (0.1, 0.6)] == [False, True]


async def test_examples_are_the_quotations_of_a_set(
    index: Settings, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One for each question whose answer quotes, with all features that the decision reads."""
    with own_set() as path:
        few = tmp_path / "few.jsonl"
        few.write_text("\n".join(path.read_text("utf-8").splitlines()[:12]), "utf-8")
    out = tmp_path / "one.jsonl"
    assert await command(index, "examples", few, "--out", out) == 0
    rows = [json.loads(line) for line in out.read_text("utf-8").splitlines()]
    assert 6 <= len(rows) <= 12
    assert all(row["features"].keys() >= set(NAMES) for row in rows)
    assert f"of which {sum(row['right'] for row in rows)} are right" in capsys.readouterr().out


@needs_sklearn
async def test_fit_writes_numbers_that_the_program_reads(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the sets and their figures; one set alone is refused, because nothing would judge it."""
    files = []
    for name, seed in (("one", 1), ("two", 2)):
        files.append(tmp_path / f"{name}.jsonl")
        rows = ({"features": row.features, "right": row.right} for row in answers(seed))
        files[-1].write_text("\n".join(map(json.dumps, rows)), "utf-8")
    out = tmp_path / "fitted.toml"
    assert await command(Settings(), "fit", *files, "--out", out) == 0
    table = tomllib.loads(out.read_text("utf-8"))["sure"]
    assert table["quotations"] == {"one": 200, "two": 200}
    model = Fitted(table["weights"], table["bias"], table["least"])
    assert model.probability(dict.fromkeys(NAMES, 1.0)) > model.probability(dict.fromkeys(NAMES, 0.0))
    assert "fitted on the others" in capsys.readouterr().out
    assert await command(Settings(), "fit", files[0]) == 2
    assert "Two or more sets" in capsys.readouterr().err

"""The gate: what it lets through, what it stops, and that it doesn't cry wolf."""

import json
import random
from dataclasses import replace

import pytest

from eval.files import EvaluationError
from eval.measure.gate import judge, save_baseline
from eval.measure.result import RETRIEVAL, Outcome, Result, load_result
from eval.questions.cases import Case
from tests.eval.conftest import found


def one(i: int, rank: int, *, pages: int = 12, language: str = "en") -> Outcome:
    """A question about one of some pages whose right page, chunk and section stood at a rank (0: nowhere)."""
    case = Case(f"{language}{i}", language, f"question {i}", f"p{i % pages}", "1")
    return found(case, rank)


def result(ranks: list[int], **config) -> Result:
    return Result(RETRIEVAL, tuple(one(i, rank) for i, rank in enumerate(ranks)), config, 5)


def verdict(gate, measure="rr", language="en"):
    return next(v for v in gate.verdicts if (v.measure, v.language) == (measure, language))


def test_the_same_result_passes():
    """Not a single difference."""
    before = result([1, 2, 0, 1, 3] * 12)
    gate = judge(before, before)
    assert gate.passed
    assert {v.difference.mean for v in gate.verdicts} == {0.0}
    assert {v.measure for v in gate.verdicts} == {"rr", "chunk", "section"}


def test_a_real_drop_fails():
    """A fifth of the questions, spread over all pages, went from the first rank to the second."""
    after = result(([2] + [1] * 4) * 12)
    gate = judge(after, result([1] * 60))
    assert not gate.passed
    assert verdict(gate).difference.mean == pytest.approx(-0.1)
    assert judge(after, result([1] * 60), max_drop=0.11).passed
    assert judge(result([1] * 60), after).passed


def test_a_drop_of_one_page_alone_is_no_proof():
    """All questions of one page of twelve failed: that may be the page's edit, and the interval says so."""
    ranks = [0 if i % 12 == 0 else 1 for i in range(60)]
    gate = judge(result(ranks), result([1] * 60))
    assert verdict(gate).difference.mean == pytest.approx(-1 / 12)
    assert verdict(gate).difference.high == 0
    assert gate.passed


def test_lost_sections_alone_fail():
    """The pages are found as before, but no chunk knows its heading any more."""
    before = result([1] * 60)
    blind = tuple(replace(one, values={**one.values, "section": 0.0}) for one in before.outcomes)
    gate = judge(replace(before, outcomes=blind), before)
    assert {v.measure for v in gate.verdicts if v.dropped} == {"section"}


@pytest.mark.slow
def test_exchanging_two_runs_at_random_hardly_ever_fails():
    """Two runs that differ in a third of the questions, shuffled so that neither is better: alarms are rare."""
    dice = random.Random(3)
    a, b = ([dice.choice([1, 1, 2, 0]) for _ in range(120)] for _ in range(2))
    alarms = 0
    for _ in range(100):
        pairs = [(x, y) if dice.random() < 0.5 else (y, x) for x, y in zip(a, b, strict=True)]
        alarms += not judge(result([x for x, _ in pairs]), result([y for _, y in pairs])).passed
    assert alarms <= 10


def test_a_baseline_is_kept_a_question_a_line(tmp_path):
    """So that a review reads which question moved; a result is judged by it as by the whole one."""
    before, after = result([1, 2, 0] * 20, set="s.jsonl"), result([2, 2, 0] * 20)
    save_baseline(before, tmp_path / "b.json")
    assert judge(after, load_result(tmp_path / "b.json")) == judge(after, before)
    text = (tmp_path / "b.json").read_text(encoding="utf-8")
    assert '"values": {"rr": 0.5, "chunk": 0.5, "section": 0.5}' in next(
        line for line in text.splitlines() if '"en1"' in line
    )
    assert json.loads(text)["config"] == {"set": "s.jsonl"}


def test_new_and_reworded_questions_are_not_compared():
    """They are counted; a baseline of another set is refused."""
    before = result([1] * 60)
    reworded = replace(before.outcomes[0], case=replace(before.outcomes[0].case, question="other words"))
    after = replace(before, outcomes=(reworded, *before.outcomes[1:50], one(99, 0)))
    gate = judge(after, before)
    assert (gate.n, gate.new, gate.gone) == (49, 2, 11)
    with pytest.raises(EvaluationError, match="another set"):
        judge(replace(before, outcomes=before.outcomes[:20]), before)
    with pytest.raises(EvaluationError, match="k = 5"):
        judge(replace(before, k=3), before)

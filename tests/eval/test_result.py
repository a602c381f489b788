"""Results that are kept and read again."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from eval.answers.result import load_answer_baseline, load_answers
from eval.files import EvaluationError
from eval.measure.gate import load_baseline
from eval.measure.metrics import Scores
from eval.measure.result import CaseResult, RetrievalResult, load_result
from eval.questions.cases import Case

HALF = Scores(0.5, 0.0, 1.0, 0.25, 1.0, 0.4)
MISS = Scores(0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


def result(*scores: Scores) -> RetrievalResult:
    asked = (Case(str(i), "cs", f"Proč {i}?", "d", "1", also=("e",)) for i in range(len(scores)))
    cases = (
        CaseResult(case, one, ("u", "v"), 10.0 * i, "cs", fallbacks=("x",))
        for i, (case, one) in enumerate(zip(asked, scores, strict=True))
    )
    return RetrievalResult(5, tuple(cases), {"date": "2024-05-01", "search": {"cs": {"limit": [5]}}})


def test_a_result_read_again_is_the_same(tmp_path):
    """Everything survives the file, so later comparisons see what was measured."""
    before = result(HALF, MISS)
    before.save(tmp_path / "a.json")
    after = load_result(tmp_path / "a.json")
    assert after == before
    assert after.rows == before.rows
    assert "Proč" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_times_leave_out_failed_searches():
    """An error that comes back at once must not look fast."""
    cases = result(HALF, HALF, MISS).cases
    broken = RetrievalResult(5, (*cases, replace(cases[0], ms=0.1, error="StoreUnavailable: gone")))
    assert broken.milliseconds == pytest.approx({"p50": 10.0, "p95": 19.0})
    assert RetrievalResult(5, (replace(cases[0], error="x"),)).milliseconds == {}


TORN = {
    load_result: '{"form": "docs-assistant retrieval 1", "k": 5}',
    load_baseline: '{"form": "docs-assistant baseline 1"}',
    load_answer_baseline: '{"form": "docs-assistant answers baseline 1"}',
    load_answers: '{"form": "docs-assistant answers baseline 1"}',
}


@pytest.mark.parametrize("load", TORN)
def test_other_files_are_refused_by_name(tmp_path, load):
    """Not JSON, another document, another version, a torn one: of results, of answers, and of what both are judged by."""
    for text in ("", "nothing", "[]", "{}", '{"form": "other"}', TORN[load]):
        (tmp_path / "other.json").write_text(text)
        with pytest.raises(EvaluationError, match=r"other\.json"):
            load(tmp_path / "other.json")


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(EvaluationError, match="can't be written"):
        result(HALF).save(tmp_path / "missing" / "a.json")


def test_the_summary_is_plain_json():
    """What --json prints has every measure with its interval, and no Python values."""
    summary = json.loads(json.dumps(result(HALF, MISS).summary()))
    (row,) = [row for row in summary["rows"] if row["language"] == "mean"]
    assert row["measures"]["rr"] == {"mean": 0.25, "low": 0.0, "high": 0.5}
    assert row["n"] == summary["n"] == 2

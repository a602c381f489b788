"""Results that are kept and read again."""

from dataclasses import replace

import pytest

from eval.files import EvaluationError
from eval.measure.result import RETRIEVAL, Result, load_result
from eval.questions.cases import Case
from tests.eval.conftest import found


def result(*ranks: int) -> Result:
    asked = (Case(str(i), "cs", f"Proč {i}?", "d", "1", also=("e",)) for i in range(len(ranks)))
    outcomes = (
        replace(found(case, rank), ms=10.0 * i) for i, (case, rank) in enumerate(zip(asked, ranks, strict=True))
    )
    return Result(RETRIEVAL, tuple(outcomes), {"date": "2024-05-01", "search": {"cs": {"limit": [5]}}}, 5)


def test_a_result_read_again_is_the_same(tmp_path):
    """Everything survives the file, so later comparisons see what was measured."""
    before = result(2, 0)
    before.save(tmp_path / "a.json", curve=[])
    after = load_result(tmp_path / "a.json")
    assert after == before
    assert after.rows == before.rows
    assert "Proč" in (tmp_path / "a.json").read_text(encoding="utf-8")


def test_times_leave_out_failed_searches():
    """An error that comes back at once must not look fast."""
    some = result(2, 2, 0)
    failed = replace(some.outcomes[0], ms=0.1, error="StoreUnavailable: gone")
    assert replace(some, outcomes=(*some.outcomes, failed)).milliseconds == pytest.approx({"p50": 10.0, "p95": 19.0})
    assert replace(some, outcomes=(failed,)).milliseconds == {}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "[]",
        "{}",
        '{"form": "docs-assistant retrieval 2", "k": 5}',
        '{"form": "docs-assistant result 1", "kind": "eval retrieval"}',
        '{"form": "docs-assistant result 1", "kind": "other", "outcomes": []}',
    ],
)
def test_other_files_are_refused_by_name(tmp_path, text):
    """Not JSON, another document, another version, a torn one."""
    (tmp_path / "other.json").write_text(text)
    with pytest.raises(EvaluationError, match=r"other\.json"):
        load_result(tmp_path / "other.json")


def test_a_place_that_cannot_be_written_is_told(tmp_path):
    with pytest.raises(EvaluationError, match="can't be written"):
        result(2).save(tmp_path / "missing" / "a.json")

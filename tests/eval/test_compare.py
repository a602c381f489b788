"""Two results against each other: paired differences, what is noise, what is refused."""

from dataclasses import replace

import numpy as np
import pytest

from eval.files import EvaluationError
from eval.measure.result import RETRIEVAL, Result, compare
from eval.measure.tables import comparison_text
from eval.questions.cases import Case
from tests.eval.conftest import found


def result(ranks: list[int], *, language: str = "en", cross: bool = False, k: int = 5, **config) -> Result:
    """A run in which the right page was at these ranks (0: not found)."""
    cases = [Case(f"{language}{i}", language, f"question {i}", f"right{i}", "1", cross) for i in range(len(ranks))]
    outcomes = tuple(found(case, rank, k=k) for case, rank in zip(cases, ranks, strict=True))
    return Result(RETRIEVAL, outcomes, config, k)


def both(a: Result, b: Result) -> Result:
    return replace(a, outcomes=a.outcomes + b.outcomes)


def row_of(comparison, language, variant="all"):
    return next(row for row in comparison.rows if (row.language, row.variant) == (language, variant))


def test_differences_are_b_minus_a_of_the_same_questions():
    """The order of the questions in the files doesn't matter."""
    a, b = result([2] * 30), result([1] * 30)
    shuffled = replace(b, outcomes=b.outcomes[::-1])
    difference = row_of(compare(a, shuffled), "en").measures["rr"]
    assert difference.estimate.mean == 0.5
    assert difference.outside_noise
    assert row_of(compare(b, a), "en").measures["rr"].estimate.mean == -0.5


def test_pairing_sees_a_gain_that_unpaired_means_hide():
    """Ranks spread widely, but 15 of 60 questions move up by one: outside the noise only when paired."""
    rng = np.random.default_rng(3)
    before = [int(rank) for rank in rng.integers(2, 6, size=60)]
    after = [rank - 1 if i % 4 == 0 else rank for i, rank in enumerate(before)]
    a, b = result(before), result(after)
    assert row_of(compare(a, b), "en").measures["rr"].outside_noise
    assert a.row("en").measures["rr"].high > b.row("en").measures["rr"].low


def test_random_changes_and_a_handful_of_questions_are_noise():
    """As many up as down; and nine gains out of nine have an interval of no width, which says nothing."""
    before = [1, 3] * 20
    assert not row_of(compare(result(before), result(before[::-1])), "en").measures["rr"].outside_noise
    difference = row_of(compare(result([2] * 9), result([1] * 9)), "en").measures["rr"]
    assert (difference.estimate.low, difference.outside_noise) == (0.5, False)


def test_the_mean_weighs_languages_alike():
    """A gain in the small language is half of the mean's."""
    a = both(result([2] * 40), result([2] * 10, language="cs"))
    b = both(result([2] * 40), result([1] * 10, language="cs"))
    comparison = compare(a, b)
    assert row_of(comparison, "mean").measures["rr"].estimate.mean == 0.25
    assert row_of(comparison, "mean").n == 50


def test_the_questions_that_moved_most_come_first():
    """With their ranks before and after, 0 is not found; losses stand apart, so that gains don't hide them."""
    comparison = compare(result([3, 1, 1, 2, 3, *[2] * 15]), result([4, 1, 0, 1, 2, *[1] * 15]))
    assert [change.values["rr"] for change in comparison.worse] == [(1, 0), (1 / 3, 1 / 4)]
    assert comparison.worse[0].case.question == "question 2"
    assert {change.values["rr"] for change in comparison.better[:16]} == {(1 / 2, 1)}
    assert (len(comparison.worse), len(comparison.better), comparison.summary()["better"]) == (2, 17, 17)


def test_different_questions_are_refused():
    """Other ids, other texts under the same id, other labels, another k: each is told."""
    a = result([1, 2, 3])
    with pytest.raises(EvaluationError, match="1 are only in A, 0 only in B"):
        compare(a, result([1, 2]))
    first = a.outcomes[0]
    for change in ({"question": "another"}, {"doc": "elsewhere"}, {"also": ("x",)}, {"variant": "2"}):
        changed = replace(a, outcomes=(replace(first, case=replace(first.case, **change)), *a.outcomes[1:]))
        for common in (False, True):
            with pytest.raises(EvaluationError, match="but different content"):
                compare(a, changed, common=common)
    with pytest.raises(EvaluationError, match="k = 5, B at k = 3"):
        compare(a, result([1, 2, 3], k=3))
    with pytest.raises(EvaluationError, match="no question in common"):
        compare(a, result([1, 2, 3], language="cs"), common=True)


def test_common_compares_what_both_have():
    """The rest is left out and counted."""
    comparison = compare(result([2] * 20), result([1] * 12), common=True)
    assert (comparison.n, comparison.left_out) == (12, 8)
    assert row_of(comparison, "en").measures["rr"].estimate.mean == 0.5


def test_what_was_measured_differently_is_listed():
    """Settings that changed stand beside the figures; the date doesn't."""
    a = result([1], date="1", search={"en": {"limit": (5,), "exact": [False]}}, model="")
    b = result([1], date="2", search={"en": {"limit": [5], "exact": [True]}}, model="gpt")
    assert compare(a, b).config == {"search.en.exact": ([False], [True]), "model": ("", "gpt")}


def test_the_text_marks_what_is_outside_the_noise():
    """A star at each such figure, the moved questions below, none where none moved."""
    text = comparison_text(compare(result([2] * 30, model="a"), result([1] * 30, model="b")))
    assert "+0.500*" in text
    assert "page 2 → 1, chunk 2 → 1, section 2 → 1  [en 1] question 0" in text
    assert "Became better: 30 questions, the 10 biggest moves" in text
    assert "Became worse: 0 questions\n" in text
    assert "model: a → b" in text
    same = comparison_text(compare(result([2] * 30), result([2] * 30)))
    assert "+0.000 " in same
    assert "better: 0 questions" in same

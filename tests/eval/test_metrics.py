"""The measures against a second, plain implementation, and the intervals against theory."""

import numpy as np
import pytest

from eval.measure.rows import MEASURES, Estimate, intervals, score


@pytest.mark.parametrize(
    ("ranked", "scores"),
    [
        ("a c d e f", (1.0, 1.0, 1.0, 0.2, 0.5, 2 / 7)),
        ("x a b", (0.5, 0.0, 1.0, 2 / 3, 1.0, 0.8)),
        ("x x x x x x a", (0.5, 0.0, 1.0, 0.5, 0.5, 0.5)),
        ("1 2 3 4 5 a", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
        ("", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)),
    ],
)
def test_measures_of_rankings_one_can_check_by_eye(ranked, scores):
    """Repeated passages of a page take one place; beyond k nothing counts."""
    assert tuple(score(ranked.split(), {"a", "b"}, 5).values()) == pytest.approx(scores)


def test_nothing_relevant_or_no_k_is_a_mistake():
    """There is no measure without a right page, and no mean without questions."""
    for none in ([], [values_of(np.zeros(0))]):
        with pytest.raises(ValueError, match="without questions"):
            estimate(none)
    with pytest.raises(ValueError, match="relevant"):
        score(["a"], set(), 5)
    with pytest.raises(ValueError, match="k must"):
        score(["a"], {"a"}, 0)


def values_of(column: np.ndarray) -> np.ndarray:
    """The same numbers for every measure."""
    return np.repeat(np.asarray(column, dtype=float)[:, None], len(MEASURES), axis=1)


def estimate(parts: list[np.ndarray], **how: int) -> dict[str, Estimate]:
    return dict(zip(MEASURES, intervals(parts, **how), strict=True))


def test_the_interval_is_as_wide_as_theory_says():
    """For a mean of many questions the bootstrap comes to ± 1.96 standard errors."""
    column = np.random.default_rng(1).random(400)
    got = estimate([values_of(column)])["rr"]
    error = column.std() / np.sqrt(len(column))
    assert got.mean == pytest.approx(column.mean())
    assert got.low == pytest.approx(column.mean() - 1.96 * error, abs=0.003)
    assert got.high == pytest.approx(column.mean() + 1.96 * error, abs=0.003)


def test_the_same_numbers_give_the_same_interval():
    """Seeded: a report can be made again. A big language doesn't drown a small one, whose size resampling keeps."""
    assert estimate([values_of(np.zeros(300)), values_of(np.ones(3))])["rr"] == Estimate(0.5, 0.5, 0.5)
    part = values_of(np.random.default_rng(2).random(50))
    assert estimate([part]) == estimate([part])
    assert estimate([part], seed=1) != estimate([part])

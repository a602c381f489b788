"""Measures at several depths, checked against trec_eval, which the product doesn't use."""

import random

import pytest
import pytrec_eval

from eval.measure.retrieval import CUTOFFS
from eval.measure.rows import CURVE, Ranks, at, ranks_of

NAMES = {"hit": "success", "recall": "recall", "ndcg": "ndcg_cut"}


def drawn(seed: int) -> tuple[list[str], set[str]]:
    """A ranking of up to 40 things and up to 8 relevant ones, some of which aren't in it."""
    dice = random.Random(seed)
    ranking = [f"d{n}" for n in dice.sample(range(60), dice.randint(1, 40))]
    return ranking, {f"d{n}" for n in dice.sample(range(60), dice.randint(1, 8))}


@pytest.mark.parametrize("k", CUTOFFS)
def test_measures_are_those_of_trec_eval(k: int):
    """300 random rankings: hit, recall, nDCG, precision and reciprocal rank agree to nine digits."""
    for seed in range(300):
        ranking, relevant = drawn(seed)
        scores = {d: float(len(ranking) - i) for i, d in enumerate(ranking[:k])}
        wanted = {*(f"{name}.{k}" for name in NAMES.values()), f"P.{k}", "recip_rank"}
        reference = pytrec_eval.RelevanceEvaluator({"q": dict.fromkeys(relevant, 1)}, wanted).evaluate({"q": scores})
        ours = dict(zip(CURVE, at(ranks_of(ranking, relevant), k), strict=True))
        for name, theirs in NAMES.items():
            assert ours[name] == pytest.approx(reference["q"][f"{theirs}_{k}"], abs=1e-9), (seed, name)
        assert ours["rr"] == pytest.approx(reference["q"]["recip_rank"], abs=1e-9)
        # trec_eval divides by k also where fewer came back, ours by what came back
        assert ours["precision"] * min(k, len(ranking)) / k == pytest.approx(reference["q"][f"P_{k}"], abs=1e-9)


def test_nothing_found_or_nothing_relevant_is_zero():
    """No division by zero, whatever the index lacks."""
    assert set(at(Ranks((), 5, 2), 5)) == set(at(Ranks((), 0, 0), 5)) == set(at(Ranks((7,), 9, 1), 5)) == {0.0}

"""Tuning: a planted better weight is found, noise is refused."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from app.core.types import Candidate as Leg
from app.core.types import Legs, LexicalText, Query
from eval.errors import EvaluationError
from eval.measure.halves import halves
from eval.measure.tune import LEAST_GAIN, Candidate, Searched, best_of, candidates, settings_of, tune
from eval.questions.cases import Case
from eval.questions.documents import Documents

PAGES = 20
URLS = [f"https://d.example/p{n}" for n in range(PAGES)]
DOCUMENTS = Documents(URLS)


def searched(i: int, dice: random.Random, lexical: float, vector: float, share: float) -> Searched:
    """A question whose legs score five pages by chance, the right one higher by each leg's strength."""
    right = i % PAGES
    pages = [right, *dice.sample([n for n in range(PAGES) if n != right], 4)]

    def leg(strength: float) -> tuple[Leg, ...]:
        scores = {n: dice.gauss(strength if n == right else 0, 1) for n in pages}
        return tuple(Leg(URLS[n], URLS[n], "en", scores[n]) for n in sorted(pages, key=lambda n: -scores[n]))

    query = Query(
        (LexicalText("en", "q"),), vector=(1.0,), language="en", lexical_weight=1 - share, vector_weight=share
    )
    return Searched(Case(f"q{i}", "en", f"question {i}", f"p{right}"), Legs(leg(lexical), leg(vector)), query)


def set_of(seed: int, *, lexical: float, vector: float, share: float = 0.2) -> list[Searched]:
    dice = random.Random(seed)
    return [searched(i, dice, lexical, vector, share) for i in range(120)]


def test_a_better_weight_is_found():
    """Vectors tell much more than words, which lead: the vectors' share must rise."""
    (found,) = tune(set_of(1, lexical=0.2, vector=2.5), DOCUMENTS, 5)
    assert found.accepted
    assert found.best.vector_weight > 0.5
    assert found.gain.mean > 0.1
    assert settings_of([found]) == {"en": found.best.vector_weight}


def test_gains_inside_the_noise_are_refused(monkeypatch):
    """Both legs are as good and weigh the same, which nothing beats: of 24 draws hardly one is taken for a gain."""
    monkeypatch.setattr("eval.measure.tune.VECTOR_WEIGHTS", tuple(step / 10 for step in range(11)))
    monkeypatch.setattr("eval.measure.tune.OTHER_LANGUAGE", (0.7,))  # all pages are of one language here
    found = [tune(set_of(seed, lexical=1, vector=1, share=0.5), DOCUMENTS, 5)[0] for seed in range(24)]
    assert (
        sum(one.flattered >= LEAST_GAIN for one in found) >= 6
    )  # without cross-validation a quarter would look better
    assert sum(one.accepted for one in found) <= 2  # the interval itself errs once in 40


def test_refused_weights_are_not_told_as_settings():
    """What isn't better has no line to copy."""
    kept = tune(set_of(1, lexical=1, vector=1, share=0.5), DOCUMENTS, 5)
    assert not kept[0].accepted
    assert settings_of(kept) == {}


def test_too_few_pages_are_refused():
    """Cross-validation by page needs pages."""
    few = [one for one in set_of(1, lexical=1, vector=1) if one.case.doc in ("p0", "p1")]
    with pytest.raises(EvaluationError, match="about 2 pages"):
        tune(few, DOCUMENTS, 5)


def test_the_best_amid_good_ones_is_chosen_not_a_lonely_one():
    """A peak whose neighbours are bad is chance."""
    tried = candidates()
    means = np.zeros(len(tried))
    lonely, amid = Candidate(0.9, 0.6), Candidate(0.3, 0.7)
    for number, one in enumerate(tried):
        near = abs(one.vector_weight - amid.vector_weight) < 0.11 and 0.6 <= one.other_language <= 0.8
        means[number] = 1.0 if one == lonely else 0.8 * (near and one.fusion == "weighted")
    assert tried[best_of(means, tried)] == amid


def test_what_was_chosen_on_one_half_is_judged_on_the_other():
    """Vectors tell much more than words: both halves say so to each other. With equal legs neither gains much."""
    for way in halves(set_of(1, lexical=0.2, vector=2.5), DOCUMENTS, 5):
        assert way.best["en"].vector_weight > 0.5
        assert way.over_plain.low > 0
        assert way.n == 60
    odd = halves(set_of(1, lexical=0.2, vector=2.5), DOCUMENTS, 5)[1]
    unseen = [
        one if number % 2 else replace(one, legs=Legs((), ()))
        for number, one in enumerate(set_of(1, lexical=0.2, vector=2.5))
    ]
    assert halves(unseen, DOCUMENTS, 5)[1].best == odd.best  # what is judged has no say


def test_questions_whose_page_is_in_another_language_have_no_say():
    crossing = [replace(one, case=replace(one.case, cross=True)) for one in set_of(2, lexical=3, vector=0)]
    alone = tune(set_of(1, lexical=0.2, vector=2.5), DOCUMENTS, 5)
    assert tune([*set_of(1, lexical=0.2, vector=2.5), *crossing], DOCUMENTS, 5) == alone


def test_a_language_with_one_question_is_not_halved():
    with pytest.raises(EvaluationError, match="too few questions in en"):
        halves(set_of(1, lexical=1, vector=1)[:1], DOCUMENTS, 5)

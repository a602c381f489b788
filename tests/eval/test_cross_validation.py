"""Cross-validation: a planted better weight is found, noise is refused, and what is judged has no say."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from app.core.types import Candidate as Leg
from app.core.types import Legs, LexicalText, Query
from eval.files import EvaluationError
from eval.grid import cross_validation
from eval.grid.configurations import Configuration
from eval.grid.cross_validation import (
    LEAST_GAIN,
    PLAIN,
    CrossValidation,
    Searched,
    Table,
    best_of,
    cross_validate,
    fusion_settings,
    neighbours,
    reciprocal_ranks,
    table_of,
)
from eval.grid.result import validation_text
from eval.questions.cases import Case
from eval.questions.documents import Documents
from eval.questions.own_docs import own_set
from tests.eval.conftest import command

PAGES = 20
URLS = [f"https://d.example/p{n}" for n in range(PAGES)]
DOCUMENTS = Documents(URLS)


@pytest.fixture(autouse=True)
def fewer_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """22 combinations for 154: seconds become tenths of one."""
    monkeypatch.setattr(cross_validation, "VECTOR_WEIGHTS", tuple(step / 10 for step in range(11)))
    monkeypatch.setattr(cross_validation, "OTHER_LANGUAGE", (0.7, 1.0))


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
    return Searched(
        Case(f"q{i}", "en", f"question {i}", f"p{right}"), Legs(leg(lexical), leg(vector)), query, generation=None
    )


def set_of(seed: int, *, lexical: float, vector: float, share: float = 0.2) -> list[Searched]:
    dice = random.Random(seed)
    return [searched(i, dice, lexical, vector, share) for i in range(120)]


def validated(questions: list[Searched], folds: int = 5) -> CrossValidation:
    tried = fusion_settings()
    baselines = {name: reciprocal_ranks(questions, DOCUMENTS, 5, own) for name, own in (("now", {}), ("plain", PLAIN))}
    values = table_of(questions, tried, DOCUMENTS, 5)
    languages = [one.query.language for one in questions]
    return cross_validate(Table(tried, [one.case for one in questions], languages, values, baselines), folds)


def test_a_better_weight_is_found_and_judged_on_other_questions():
    """Vectors tell much more than words, which lead: their share must rise; both halves say so to each other."""
    (found,) = validated(set_of(1, lexical=0.2, vector=2.5)).choices
    assert found.accepted
    assert found.best.settings["vector_weight"] > 0.5
    assert found.gain.mean > 0.1
    halves = validated(set_of(1, lexical=0.2, vector=2.5), 2)
    assert [fold.name for fold in halves.folds] == ["even", "odd"]
    for fold in halves.folds:
        assert fold.best["en"].settings["vector_weight"] > 0.5
        assert fold.gains["plain"].low > 0
        assert fold.n == 60
    share = found.best.settings["vector_weight"]
    assert f"DOCS_TUNING__VECTOR_WEIGHT='{{\"en\": {share}}}'" in validation_text(
        validated(set_of(1, lexical=0.2, vector=2.5)), 5
    )


def test_what_is_judged_and_what_is_in_another_language_has_no_say():
    questions = set_of(1, lexical=0.2, vector=2.5)
    blind = [one if number % 2 else replace(one, legs=Legs((), ())) for number, one in enumerate(questions)]
    assert validated(blind, 2).folds[0].best == validated(questions, 2).folds[0].best
    crossing = [replace(one, case=replace(one.case, cross=True)) for one in set_of(2, lexical=3, vector=0)]
    assert validated([*questions, *crossing]) == validated(questions)


def test_gains_inside_the_noise_are_refused(monkeypatch):
    """Both legs are as good and weigh the same, which nothing beats: of 24 draws hardly one is taken for a gain."""
    monkeypatch.setattr(cross_validation, "OTHER_LANGUAGE", (0.7,))  # all pages are of one language here
    found = [validated(set_of(seed, lexical=1, vector=1, share=0.5)) for seed in range(24)]
    choices = [one.choices[0] for one in found]
    # without cross-validation a quarter would look better
    assert sum(one.apparent_gain >= LEAST_GAIN for one in choices) >= 6
    assert sum(one.accepted for one in choices) <= 2  # the interval itself errs once in 40
    refused = next(one for one in found if not one.choices[0].accepted)
    assert "DOCS_TUNING__VECTOR_WEIGHT" not in validation_text(refused, 5)
    assert "keep the settings" in validation_text(refused, 5)


def test_too_few_pages_or_questions_are_refused():
    few = [one for one in set_of(1, lexical=1, vector=1) if one.case.doc in ("p0", "p1")]
    with pytest.raises(EvaluationError, match="in en for 5 folds"):
        validated(few)
    with pytest.raises(EvaluationError, match="in en for 2 folds"):
        validated(few[:1], 2)


def test_the_best_amid_good_ones_is_chosen_not_a_lonely_one(monkeypatch):
    """A peak whose neighbours are bad is chance; without numeric axes every configuration stands alone."""
    monkeypatch.undo()
    tried = fusion_settings()
    means = np.zeros(len(tried))
    for number, one in enumerate(tried):
        share, other = one.settings.get("vector_weight", -1), one.settings["other_language"]
        means[number] = 1.0 if (share, other) == (0.9, 0.6) else 0.8 * (abs(share - 0.3) < 0.11 and 0.6 <= other <= 0.8)
    assert tried[best_of(means, neighbours(tried))].settings["vector_weight"] == 0.3
    plain = [Configuration(name, {"fusion": name, "exact": name == "rrf"}) for name in ("weighted", "rrf")]
    assert neighbours(plain) == ((0,), (1,))


async def test_the_command_searches_once_and_says_what_to_set(index, capsys):
    with own_set() as path:
        assert await command(index, "grid", path, "--weights", "--half", "odd", "--limit", "60") == 0
    text = capsys.readouterr().out
    assert "gain, cross-validated" in text
    assert "Fold 5 of 5" in text
    assert "over plain fusion" in text

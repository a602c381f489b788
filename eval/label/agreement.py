"""How reliable a model's labels are: compared with the consensus of people, and people with each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eval.errors import EvaluationError
from eval.label.files import Label

CONSENSUS = 0.5


@dataclass(frozen=True, slots=True)
class Agreement:
    """The agreement on pairs. A pair is relevant if more than half of the people say so; an even `split` is left out
    and counted.

    `f1`, `precision` and `recall` compare the model with the consensus, `kappa` is Cohen's of the two, `among_people`
    the mean of Cohen's kappa over pairs of people (None for one person).
    """

    n: int
    split: int
    people: int
    precision: float
    recall: float
    f1: float
    kappa: float
    among_people: float | None


def agreement(model: Sequence[Label], people: Sequence[Sequence[Label]]) -> Agreement:
    """The model's labels compared with those of people, on pairs that both labelled. Raises `EvaluationError` without
    any.
    """
    said = {label.key: label.relevant for label in model}
    votes: dict[str, list[bool]] = {}
    for person in people:
        for key, relevant in {label.key: label.relevant for label in person}.items():
            votes.setdefault(key, []).append(relevant)
    shared = {key: sum(own) / len(own) for key, own in votes.items() if key in said}
    decided = {key: share > CONSENSUS for key, share in shared.items() if share != CONSENSUS}
    if not decided:
        raise EvaluationError(
            "The model and the people labelled no pair in common. Are the files of the same labelling?"
        )
    both = [(said[key], relevant) for key, relevant in decided.items()]
    right = sum(a and b for a, b in both)
    precision = right / max(sum(a for a, _ in both), 1)
    recall = right / max(sum(b for _, b in both), 1)
    return Agreement(
        n=len(decided),
        split=len(shared) - len(decided),
        people=len(people),
        precision=precision,
        recall=recall,
        f1=2 * precision * recall / (precision + recall) if right else 0.0,
        kappa=kappa(both),
        among_people=_among(people),
    )


def kappa(pairs: Sequence[tuple[bool, bool]]) -> float:
    """Cohen's kappa: agreement beyond chance. It is 1 if both always give the same label."""
    n = len(pairs)
    same = sum(a == b for a, b in pairs) / n
    yes_a, yes_b = sum(a for a, _ in pairs) / n, sum(b for _, b in pairs) / n
    chance = yes_a * yes_b + (1 - yes_a) * (1 - yes_b)
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)


def _among(people: Sequence[Sequence[Label]]) -> float | None:
    tables: list[Mapping[str, bool]] = [{label.key: label.relevant for label in person} for person in people]
    found = []
    for one, other in combinations(tables, 2):
        if both := [(one[key], other[key]) for key in one.keys() & other.keys()]:
            found.append(kappa(both))
    return sum(found) / len(found) if found else None

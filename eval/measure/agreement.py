"""How far those who label relevance agree: with a consensus, with each other, and beyond chance. Needs scikit-learn (the extra `clusters`)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from eval.files import EvaluationError
from eval.questions.labels import Label

CONSENSUS = 0.5
By = Mapping[str, Mapping[str, bool]]
"""The labels of each rater by the name of the pair."""


@dataclass(frozen=True, slots=True)
class Rater:
    """One rater against the consensus of the others, over the `n` pairs that both know: `same` is the share of equal labels, the rest as
    if the consensus were the truth; `kappa` is Cohen's. `yes` is the share of the own labels that say relevant.
    """

    name: str
    n: int
    yes: float
    same: float
    precision: float
    recall: float
    f1: float
    kappa: float


@dataclass(frozen=True, slots=True)
class Agreement:
    """The raters; the `n` pairs that several labelled; over these, the mean share of raters' pairs that agree (`same`), the number
    that all of them label alike (`unanimous`), and Fleiss' `kappa`.
    """

    raters: tuple[Rater, ...]
    n: int
    same: float
    unanimous: int
    kappa: float


def by_pair(labels: Iterable[Label]) -> dict[str, bool]:
    """The labels of one rater by the name of the pair."""
    return {label.key: label.relevant for label in labels}


def consensus(raters: By, threshold: float = CONSENSUS) -> dict[str, bool]:
    """What the raters say together: relevant is a pair that at least this share of those who labelled it call so."""
    votes: dict[str, list[bool]] = {}
    for own in raters.values():
        for key, relevant in own.items():
            votes.setdefault(key, []).append(relevant)
    return {key: sum(said) / len(said) >= threshold for key, said in votes.items()}


def agreement(raters: By, people: Collection[str] = (), threshold: float = CONSENSUS) -> Agreement:
    """The agreement of all raters. Each is compared with the consensus of the `people`, or of all if none are named, but not with itself.

    Raises `EvaluationError` if no pair has two labels.
    """
    found = list[Rater]()
    for name, own in raters.items():
        others = {other: raters[other] for other in (people or raters) if other != name}
        agreed = consensus(others, threshold)
        if both := [(own[key], agreed[key]) for key in own if key in agreed]:
            found.append(_rater(name, own, both))
    votes: dict[str, list[bool]] = {}
    for own in raters.values():
        for key, relevant in own.items():
            votes.setdefault(key, []).append(relevant)
    several = [said for said in votes.values() if len(said) > 1]
    if not several:
        raise EvaluationError("Nobody labelled a pair that another one labelled, too. Are the files of one sample?")
    same = sum(_same(said) for said in several) / len(several)
    alike = sum(len(set(said)) == 1 for said in several)
    return Agreement(tuple(found), len(several), same, alike, fleiss(several))


def _rater(name: str, own: Mapping[str, bool], both: Sequence[tuple[bool, bool]]) -> Rater:
    from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

    said, agreed = zip(*both, strict=True)
    same = sum(map(bool.__eq__, said, agreed)) / len(both)
    precision, recall, f1, _ = precision_recall_fscore_support(agreed, said, average="binary", zero_division=0.0)
    # with one label only on both sides, there is no agreement beyond chance, and scikit-learn has no number
    kappa = 1.0 if len({*said, *agreed}) == 1 else float(cohen_kappa_score(said, agreed))
    yes = sum(own.values()) / len(own)
    return Rater(name, len(both), yes, same, float(precision), float(recall), float(f1), kappa)


def _same(said: Sequence[bool]) -> float:
    """The share of the pairs of raters that agree."""
    pairs = list(combinations(said, 2))
    return sum(one == other for one, other in pairs) / len(pairs)


def fleiss(votes: Sequence[Sequence[bool]]) -> float:
    """Fleiss' kappa of two labels, where pairs may have different numbers of raters; 1 if all labels are the same.

    statsmodels has it for equally many raters only; for these, both give the same (tests/eval/test_labels.py).
    """
    yes = sum(map(sum, votes)) / sum(map(len, votes))
    chance = yes**2 + (1 - yes) ** 2
    same = sum(map(_same, votes)) / len(votes)
    return 1.0 if chance == 1 else (same - chance) / (1 - chance)

"""How far those who label relevance agree: with a consensus, with each other, and beyond chance. Needs scikit-learn (the extra `clusters`)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

CONSENSUS = 0.5
Key = tuple[str, str]
Said = Mapping[Key, bool]
"""The labels of one rater by case and chunk."""


def votes(raters: Iterable[Said]) -> Mapping[Key, Sequence[bool]]:
    """All labels of each pair."""
    found: dict[Key, list[bool]] = defaultdict(list)
    for own in raters:
        for key, relevant in own.items():
            found[key].append(relevant)
    return found


def consensus(raters: Iterable[Said], threshold: float = CONSENSUS) -> Said:
    """What the raters say together: relevant is a pair that at least this share of those who labelled it call so."""
    return {key: sum(said) / len(said) >= threshold for key, said in votes(raters).items()}


def against(own: Said, agreed: Said) -> dict[str, float] | None:
    """One rater against a consensus, over the `n` pairs that both know: the share that is `relevant` to the rater and that is the `same`,
    `precision`, `recall` and `f1` as if the consensus were the truth, and Cohen's `kappa`. None without such a pair.
    """
    from sklearn.metrics import cohen_kappa_score, precision_recall_fscore_support

    keys = [key for key in own if key in agreed]
    if not keys:
        return None
    said, right = [own[key] for key in keys], [agreed[key] for key in keys]
    scores = precision_recall_fscore_support(right, said, average="binary", zero_division=0.0)[:3]
    # where both have one label only, chance explains all, and scikit-learn has no number
    kappa = 1.0 if len({*said, *right}) == 1 else float(cohen_kappa_score(said, right))
    named = dict(zip(("precision", "recall", "f1"), map(float, scores), strict=True))
    same = sum(map(bool.__eq__, said, right)) / len(keys)
    return {"n": len(keys), "relevant": sum(said) / len(keys), "same": same, **named, "kappa": kappa}


def same(said: Sequence[bool]) -> float:
    """The share of the pairs of raters that agree on one pair."""
    pairs = list(combinations(said, 2))
    return sum(one == other for one, other in pairs) / len(pairs)


def fleiss(several: Sequence[Sequence[bool]]) -> float:
    """Fleiss' kappa of pairs that two or more raters labelled, of each as many as did; 1 if all labels are the same.

    statsmodels has it for equally many raters only; for these, both give the same.
    """
    yes = sum(map(sum, several)) / sum(map(len, several))
    chance = yes**2 + (1 - yes) ** 2
    return 1.0 if chance == 1 else (sum(map(same, several)) / len(several) - chance) / (1 - chance)

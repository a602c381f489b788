"""Measures of an answer without a judge: overlap with the reference, cosine, and fidelity to the passages."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from app.core.types import Vector
from app.text.analysis import fold
from app.text.literals import claims, comparable, occurs

STEM = 5
_NAME = re.compile(r"\b(?:[A-Z]{2,}\w*|\w+[A-Z]\w*|\w+[._/-]\w[\w./-]*\d*|\w*\d\w*)\b")
_WORD = re.compile(r"[^\W_]+")


def fidelity(answer: str, passages: Sequence[str]) -> float | None:
    """Share of the literals (numbers, commands, addresses) that are in the passages, ignoring spaces, capitals and the
    spelling of units; None without literals.
    """
    wanted = [comparable(claim) for claim in claims(answer)]
    if not wanted or not passages:
        return None
    source = comparable("\n".join(passages))
    return sum(occurs(claim, source) for claim in wanted) / len(wanted)


def kept(plain: str, toned: str) -> float | None:
    """Share of the literals of a plain answer that the same answer in another tone still has; None without literals."""
    wanted, said = [comparable(claim) for claim in claims(plain)], comparable(toned)
    return sum(occurs(claim, said) for claim in wanted) / len(wanted) if wanted else None


def keyword_overlap(answer: str, reference: str, stopwords: Collection[str]) -> float | None:
    """Share of the reference's content words that the answer has, compared by their first letters."""
    wanted, said = _stems(reference, stopwords), _stems(answer, stopwords)
    return len(wanted & said) / len(wanted) if wanted else None


def entity_overlap(answer: str, reference: str) -> float | None:
    """Share of the reference's names, numbers and identifiers that the answer has; None if the reference has none."""
    wanted = {comparable(one) for one in _NAME.findall(reference)}
    said = comparable(answer)
    return sum(occurs(one, said) for one in wanted) / len(wanted) if wanted else None


def cosine(a: Vector, b: Vector) -> float:
    """Cosine of two vectors, 0 if one is empty."""
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def mean(values: Sequence[float | None]) -> float | None:
    """The mean of the known values; None without any."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _stems(text: str, stopwords: Collection[str]) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(fold(text)) if word not in stopwords and len(word) > 1}

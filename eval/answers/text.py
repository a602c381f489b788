"""What can be said of an answer without a judge: overlap with the reference, nearness, and fidelity to the passages."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

import numpy as np

from app.core.analysis import fold
from app.core.types import Vector

STEM = 5
_CITATION = re.compile(r"\[\d{1,3}\]")
_URL = re.compile(r"https?://[^\s<>()\[\]`\"']+")
_FENCED = re.compile(r"```[^\n]*\n(.*?)(?:```|\Z)", re.DOTALL)
_SPAN = re.compile(r"`([^`\n]+)`")
_NUMBER = re.compile(r"(?<![\w.,])\d+(?:[.,:  ]\d+)*(?:\s?%)?(?!\w)")
_LIST_MARK = re.compile(r"^\s*\d+[.)]\s", re.MULTILINE)
_NAME = re.compile(r"\b(?:[A-Z]{2,}\w*|\w+[A-Z]\w*|\w+[._/-]\w[\w./-]*\d*|\w*\d\w*)\b")
_WORD = re.compile(r"[^\W_]+")


def claims(answer: str) -> tuple[str, ...]:
    """The numbers, commands and addresses in an answer: what a reader copies, and what must not be made up."""
    text = _LIST_MARK.sub("", _CITATION.sub("", answer))
    found = [url.rstrip(".,;:") for url in _URL.findall(text)]
    text = _URL.sub(" ", text)
    found += [line.strip() for block in _FENCED.findall(text) for line in block.splitlines() if line.strip()]
    text = _FENCED.sub(" ", text)
    found += [span.strip() for span in _SPAN.findall(text)]
    found += _NUMBER.findall(_SPAN.sub(" ", text))
    return tuple(dict.fromkeys(one for one in found if one))


def fidelity(answer: str, passages: Sequence[str]) -> float | None:
    """Share of the claims that occur in the passages, character by character but for spaces; None without claims."""
    wanted = [_bare(claim) for claim in claims(answer)]
    if not wanted or not passages:
        return None
    source = _bare("\n".join(passages))
    return sum(_occurs(claim, source) for claim in wanted) / len(wanted)


def kept(plain: str, toned: str) -> float | None:
    """Share of the claims of a plain answer that the same answer in another tone still has; None without claims."""
    wanted, said = [_bare(claim) for claim in claims(plain)], _bare(toned)
    return sum(_occurs(claim, said) for claim in wanted) / len(wanted) if wanted else None


def keyword_overlap(answer: str, reference: str, stopwords: Collection[str]) -> float | None:
    """Share of the reference's telling words that the answer has, compared by their first letters."""
    wanted, said = _stems(reference, stopwords), _stems(answer, stopwords)
    return len(wanted & said) / len(wanted) if wanted else None


def entity_overlap(answer: str, reference: str) -> float | None:
    """Share of the reference's names, numbers and identifiers that the answer has; None where it has none."""
    wanted = {_bare(one) for one in _NAME.findall(reference)}
    said = _bare(answer)
    return sum(_occurs(one, said) for one in wanted) / len(wanted) if wanted else None


def cosine(a: Vector, b: Vector) -> float:
    """Nearness of two vectors, 0 where one is empty."""
    one, other = np.asarray(a, dtype=np.float64), np.asarray(b, dtype=np.float64)
    lengths = float(np.linalg.norm(one) * np.linalg.norm(other))
    return float(one @ other) / lengths if lengths else 0.0


def mean(values: Sequence[float | None]) -> float | None:
    """Of those that are there."""
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def _bare(text: str) -> str:
    return " ".join(text.casefold().split())


def _occurs(claim: str, source: str) -> bool:
    # 10 is not in 100, and version 1.2 not in 11.2
    start = r"(?<![\w])(?<!\d[.,])" if claim[:1].isalnum() else ""
    end = r"(?![\w])(?![.,]\d)" if claim[-1:].isalnum() else ""
    return re.search(f"{start}{re.escape(claim)}{end}", source) is not None


def _stems(text: str, stopwords: Collection[str]) -> set[str]:
    return {word[:STEM] for word in _WORD.findall(fold(text)) if word not in stopwords and len(word) > 1}

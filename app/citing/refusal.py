"""Recognises answers of a model that only say that the documentation has no answer."""

from __future__ import annotations

import re
from functools import lru_cache

from app.citing.citations import BRACKET, Citations, inner
from app.core.prompts import Language
from app.text.analysis import fold
from app.text.sentences import informal_sentences

LONGEST = 450  # characters; a longer text is an answer
LONGEST_CITING = 1500  # if its citations only show what the documentation is about
LONGEST_SENTENCE = 400
GREETING = 3  # words of a sentence before the refusal: "I am sorry."
_MARKS = re.compile(r"[*_`>#\\“”„]+")


def is_refusal(answer: str, language: Language, citations: Citations) -> bool:
    """Whether the first sentence says that there is no answer, and no sentence that cites says anything else."""
    if len(answer) > (LONGEST_CITING if citations.any else LONGEST) or "```" in answer or not language.no_answer:
        return False
    lines = [line for line in answer.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    said = [one for line in lines for one in informal_sentences(line.strip(), language.abbreviations)]
    while len(said) > 1 and len(said[0].split()) <= GREETING and not _refuses(said[0], language, citations):
        said.pop(0)
    if not said or not _refuses(said[0], language, citations):
        return False
    parts = [part for one in said for part in _contrast(language.contrast).split(one) if _cites(part, citations)]
    return all(_refuses(part, language, citations) or _only(language.only).search(fold(part)) for part in parts)


def _refuses(sentence: str, language: Language, citations: Citations) -> bool:
    if len(sentence) > LONGEST_SENTENCE:
        return False
    uncited = BRACKET.sub(lambda found: "" if citations.numbers(inner(found[0])) else found[0], sentence)
    plain = " ".join(_MARKS.sub(" ", fold(uncited)).replace("’", "'").split())
    return bool(re.search(language.no_answer, plain))


def _cites(text: str, citations: Citations) -> bool:
    return any(citations.numbers(inner(found[0])) for found in BRACKET.finditer(text))


@lru_cache(maxsize=32)
def _contrast(words: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(word) for word in sorted(words))
    return re.compile(rf";|\b(?:{joined})\b" if joined else ";", re.IGNORECASE)


@lru_cache(maxsize=32)
def _only(words: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(fold(word)) for word in sorted(words))
    return re.compile(rf"\b(?:{joined})\b" if joined else r"(?!)")

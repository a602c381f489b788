"""Parses short replies of language models: a line, a JSON object, a list of numbers."""

from __future__ import annotations

import re
from functools import lru_cache

from app.core.language import Vocabulary, vocabulary
from app.text.analysis import fold


def unquoted(answer: str) -> str:
    """The reply without the quotation marks that models put around it."""
    return answer.strip().strip("\"'„“”").strip()


def braced(answer: str) -> str:
    """The reply from its first opening to its last closing brace; empty without braces."""
    start, end = answer.find("{"), answer.rfind("}") + 1
    return answer[start:end] if 0 <= start < end else ""


def says_none(answer: str, words: Vocabulary | None = None) -> bool:
    """Whether the reply begins with "none", in any language."""
    return re.match(rf"\W*(?:{(words or vocabulary()).none})\b", fold(answer)) is not None


def replied_numbers(answer: str, words: Vocabulary | None = None) -> tuple[int, ...] | None:
    """The numbers of a reply that only lists numbers, or says that there are none; None for any other reply."""
    words = words or vocabulary()
    text = re.sub(r"^[^\S\n]*[-•]\s+|[\[\]()*`\"'„“”]", "", fold(answer), flags=re.MULTILINE)
    text = " ".join(text.split()).rstrip(".").strip()
    if re.fullmatch(rf"(?:{words.none})|0|-|", text):
        return ()
    found = _list(words.labels, words.and_or).fullmatch(text)
    return tuple(map(int, re.findall(r"\d+", found[1]))) if found else None


@lru_cache(maxsize=8)
def _list(labels: str, and_or: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(fold(word)) for word in sorted(and_or))
    between = rf"(?: ?[,;] ?(?:(?:{joined}) )?| (?:(?:{joined}|&) )?)"
    return re.compile(rf"(?:(?:{labels}) ?:? ?)?(\d++(?:{between}\d++)*+)")

"""What a language model was asked to reply with, and nothing around it: numbers, a line."""

from __future__ import annotations

import re
from functools import lru_cache

from app.core.language import Vocabulary, vocabulary
from app.text.analysis import fold


def unquoted(answer: str) -> str:
    """The reply without the quotation marks that models put around it."""
    return answer.strip().strip("\"'„“”").strip()


def braced(answer: str) -> str:
    """The reply from its first opening to its last closing brace, where an object may be; else empty."""
    start, end = answer.find("{"), answer.rfind("}") + 1
    return answer[start:end] if 0 <= start < end else ""


def says_none(answer: str, words: Vocabulary | None = None) -> bool:
    """Whether a reply begins by saying, in any language, that nothing of what was shown is it."""
    return re.match(rf"\W*(?:{(words or vocabulary()).none})\b", fold(answer)) is not None


def replied_numbers(answer: str, words: Vocabulary | None = None) -> tuple[int, ...] | None:
    """The numbers of an answer that is nothing but a list of them, or says that there are none; None for other answers."""
    words = words or vocabulary()
    said = re.sub(r"^[^\S\n]*[-•]\s+|[\[\]()*`\"'„“”]", "", fold(answer), flags=re.MULTILINE)
    said = " ".join(said.split()).rstrip(".").strip()
    if re.fullmatch(rf"(?:{words.none})|0|-|", said):
        return ()
    found = _list(words.labels, words.and_or).fullmatch(said)
    return tuple(map(int, re.findall(r"\d+", found[1]))) if found else None


@lru_cache(maxsize=8)
def _list(labels: str, and_or: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(fold(word)) for word in sorted(and_or))
    between = rf"(?: ?[,;] ?(?:(?:{joined}) )?| (?:(?:{joined}|&) )?)"
    return re.compile(rf"(?:(?:{labels}) ?:? ?)?(\d++(?:{between}\d++)*+)")

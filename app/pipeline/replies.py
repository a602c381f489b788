"""What a language model was asked to reply with, and nothing around it: numbers, a line."""

from __future__ import annotations

import re

from app.text.analysis import fold

_LABEL = r"(?:passages?|sections?|numbers?|answer|uryv\w+|pasaz\w*|oddil\w*|cisl\w+|odpoved)"
_BETWEEN = r"(?: ?[,;] ?(?:and |a )?| (?:(?:and|a|&) )?)"
_LIST = re.compile(rf"(?:{_LABEL} ?:? ?)?(\d++(?:{_BETWEEN}\d++)*+)")
NONE = r"(?:none|nothing|zadn\w*|nic)"
"""How folded replies say that nothing of what was shown is it."""

_NO_NUMBER = re.compile(rf"{NONE}(?: of them| z nich)?|0|-|")


def unquoted(answer: str) -> str:
    """The reply without the quotation marks that models put around it."""
    return answer.strip().strip("\"'„“”").strip()


def braced(answer: str) -> str:
    """The reply from its first opening to its last closing brace, where an object may be; else empty."""
    start, end = answer.find("{"), answer.rfind("}") + 1
    return answer[start:end] if 0 <= start < end else ""


def replied_numbers(answer: str) -> tuple[int, ...] | None:
    """The numbers of an answer that is nothing but a list of them, or says that there are none; None for other answers."""
    said = re.sub(r"^[^\S\n]*[-•]\s+|[\[\]()*`\"'„“”]", "", fold(answer), flags=re.MULTILINE)
    said = " ".join(said.split()).rstrip(".").strip()
    if _NO_NUMBER.fullmatch(said):
        return ()
    found = _LIST.fullmatch(said)
    return tuple(map(int, re.findall(r"\d+", found[1]))) if found else None

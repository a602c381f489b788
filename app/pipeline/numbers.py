"""Numbers that a language model was asked to reply with."""

from __future__ import annotations

import re

from app.core.analysis import fold

_LABEL = r"(?:passages?|sections?|numbers?|answer|uryv\w+|pasaz\w*|oddil\w*|cisl\w+|odpoved)"
_BETWEEN = r"(?:\s*[,;]\s*(?:and\s+|a\s+)?|\s+(?:and|a|&)\s+|\s*\n\s*|\s+)"
_LIST = re.compile(rf"(?:{_LABEL}\s*:?\s*)?(\d+(?:{_BETWEEN}\d+)*)")
_NONE = re.compile(r"(?:none|nothing|zadn\w*|nic)(?: of them| z nich)?|0|-|")


def replied_numbers(answer: str) -> tuple[int, ...] | None:
    """The numbers of an answer that is nothing but a list of them, or says that there are none; None for other answers."""
    said = re.sub(r"^\s*[-•]\s+|[\[\]()*`\"'„“”]", "", fold(answer), flags=re.MULTILINE).strip().rstrip(".").strip()
    if _NONE.fullmatch(said):
        return ()
    found = _LIST.fullmatch(said)
    return tuple(map(int, re.findall(r"\d+", found[1]))) if found else None

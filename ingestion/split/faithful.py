"""Checks that a translation keeps code, addresses, numbers, ids, and the structure of the Markdown."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from app.text.fences import code_spans

_ADDRESS = re.compile(r"(?<=\]\()\s*<?([^\s)>]+)|(https?://[^\s<>)\]]+)")
_ID = re.compile(r"\{#[^{}\s]+\}|\[#[^\[\]\s]+\]")
_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_HEADING = re.compile(r"(?m)^(#{1,6})[ \t]+\S")
_ROW = re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$")


def missing_parts(original: str, translation: str, names: Sequence[str] = ()) -> list[str]:
    """What the translation lacks, as written in the original; empty when it is complete.

    `names` are terms that must not be translated. Both texts are prose: fenced code isn't translated at all.
    """
    missing = list((Counter(_invariants(original)) - Counter(_invariants(translation))).elements())
    missing += [name for name in names if name not in translation]
    if _HEADING.findall(original) != _HEADING.findall(translation):
        missing.append("headings")
    if _cells(original) != _cells(translation):
        missing.append("cells of a table")
    return list(dict.fromkeys(missing))


def _invariants(text: str) -> list[str]:
    """Everything that is the same in every language."""
    code = [text[start:end].strip("`").strip() for start, end in code_spans(text)]
    rest = _without_code(text)
    ids = _ID.findall(rest)
    rest = _ID.sub(" ", rest)
    addresses = [(match[1] or match[2]).rstrip(".,;") for match in _ADDRESS.finditer(rest)]
    return [*code, *addresses, *ids, *_NUMBER.findall(_ADDRESS.sub(" ", rest))]


def _cells(text: str) -> list[int]:
    return [row.count("|") for row in _ROW.findall(_without_code(text))]


def _without_code(text: str) -> str:
    spans = list(code_spans(text))
    starts, ends = [0, *(end for _, end in spans)], [*(start for start, _ in spans), len(text)]
    return " ".join(text[start:end] for start, end in zip(starts, ends, strict=True))

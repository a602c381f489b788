"""Texts in pieces, of which a page marks some: the proof in a passage, and the differences of two answers."""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import TypeAlias

from eval.questions.evidence import places

Piece: TypeAlias = tuple[str, str]
"""A text with the name of its HTML element (mark, del, ins), or an empty name."""

AROUND = 240  # characters
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def plain(text: str) -> list[Piece]:
    """A text without marks."""
    return [("", text)] if text else []


def proven(text: str, quote: str) -> list[Piece]:
    """The text with the quote marked where it is."""
    found, end = list[Piece](), 0
    for start, stop in places(text, quote):
        found += [*plain(text[end:start]), ("mark", text[start:stop])]
        end = stop
    return found + plain(text[end:])


def excerpt(text: str, quote: str) -> list[Piece]:
    """The part of the text around the first place of the quote, which is marked."""
    start, end = next(iter(places(text, quote)), (0, 0))
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    cut = f"{'…' * (first > 0)}{text[first:last].strip()}{'…' * (last < len(text))}"
    return proven(cut, quote)


def differences(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Two texts word by word: what only the first one has is marked in it, what only the second one has in that."""
    a, b = _TOKEN.findall(before), _TOKEN.findall(after)
    first, second = list[Piece](), list[Piece]()
    for kind, i, j, m, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        first += _piece("" if kind == "equal" else "del", a[i:j])
        second += _piece("" if kind == "equal" else "ins", b[m:n])
    return first, second


def _piece(mark: str, tokens: Sequence[str]) -> list[Piece]:
    return [(mark, "".join(tokens))] if tokens else []

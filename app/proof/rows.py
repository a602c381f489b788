"""Tells where the passages have a literal: a right number or option beside the words of another one is no proof."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain

from app.proof.evidence import FACTORS, readings
from app.proof.reading import KEPT, stem_of, words_in
from app.text.blocks import blocks, code_lines, code_spans
from app.text.literals import amounts

NAME = re.compile(
    r"(?<![\w/.-])(?<!\d,)(?:--[a-z][\w-]+|-[a-z](?![\w-])|(?:~|\.{1,2})?(?:/[\w.-]*\w)+|\w+(?:_\w+)+|[\w.]*\w\(\)"
    r"|[\w-]+(?:\.[\w-]+)*\.[a-z]{2,5}(?![\w.])|v\d[\w.]*\d|[^\W\d_]+-?\d\w*|\d+[^\W\d_]\w*(?!\w))",
    re.IGNORECASE,
)
BESIDE = 0.4  # share of the words of a sentence that a row must have to be what it speaks of
FARTHER = 1.5  # words that it has more than the best row with the literal; those of the row before count half
SHORTEST_PART = 2  # characters of a number that may be a part of a word, as in 15d

_END = re.compile(r"(?<=[.!?;])\s|\n\s*\n|\n(?=\s*(?:[-*+#>|]|\d+[.)]\s))")
_SINGLE = re.compile(r"[^\s`]{2,}")
_NAMED = re.compile(r"[`_/\d]|\w[.(][\w)]|(?<!\w)-")
_DIGIT = re.compile(r"\d")
_SIGN = re.compile(r"[^\w]|_")


@dataclass(frozen=True, slots=True)
class Row:
    """A sentence, an item, a row of a table or a line of code.

    `stems` are those of its words, with the names in it, `around` also those of the one before, of which
    an item and a row of a table say nothing. `literals` are numbers by what
    they measure, and names in code by their shape.
    """

    small: str
    stems: AbstractSet[str]
    around: AbstractSet[str]
    literals: Mapping[str, AbstractSet[str]]


def literals_of(text: str) -> Iterator[tuple[str, AbstractSet[str]]]:
    """The literals of a text with their kinds: a number as all its readings, a code span of one word as it is."""
    for number, unit in amounts(text) if _DIGIT.search(text) else ():
        yield FACTORS.get(unit, (unit,))[0], readings(number)
    for start, end in code_spans(text):
        name = text[start:end].strip("` ")
        if _SINGLE.fullmatch(name) and not name[0].isdecimal():
            signs = "".join(sorted(set(_SIGN.findall(name.lstrip("-")))))
            yield (
                f"`{'-' * (len(name) - len(name.lstrip('-')))}{'A' if name.isupper() else 'a'}{signs}",
                {name.casefold()},
            )


def names_in(text: str) -> frozenset[str]:
    """The names of a text that can be compared as a whole, in lower case; most sentences have none, which shows faster than what they are."""
    if not _NAMED.search(text):
        return frozenset()
    spans = {text[start:end].strip("` ") for start, end in code_spans(text)}
    return frozenset(name.casefold() for name in spans.union(NAME.findall(text)) if len(name) > SHORTEST_PART)


@lru_cache(maxsize=KEPT)
def _rows(section: str) -> tuple[Row, ...]:
    rows, before = list[Row](), frozenset[str]()
    texts = (code_lines(block) if is_code else _END.split(block) for is_code, block in blocks(section))
    for text in filter(str.strip, chain.from_iterable(texts)):
        stems = names_in(text).union(map(stem_of, words_in(text)))
        literals = defaultdict[str, set[str]](set)
        for kind, values in literals_of(text):
            literals[kind] |= values
        rows.append(Row(text.casefold(), stems, stems if text.lstrip()[0] in "-*+|" else stems | before, literals))
        before = frozenset(stems)
    return tuple(rows)


class Rows:
    """The rows of the passages of one answer."""

    def __init__(self, sections: Iterable[str]) -> None:
        self._rows = [row for section in sections for row in _rows(section)]
        self._by_kind = defaultdict[str, list[Row]](list)
        for row in self._rows:
            for kind in row.literals:
                self._by_kind[kind].append(row)

    def misplaced(self, kind: str, values: AbstractSet[str], said: AbstractSet[str], own: AbstractSet[str]) -> bool:
        """True if another literal of this kind stands in a row that has far more of what is `said` than any row with this one.

        A row that has any of the sentence's `own` literals of this kind is no such row.
        """
        others = (row for row in self._by_kind[kind] if own.isdisjoint(row.literals[kind]))
        most = max((len(said & row.stems) for row in others), default=0)
        if most < max(BESIDE * len(said), FARTHER):
            return False
        held = [row for row in self._rows if _holds(row, values)]
        nearest = max((len(said & row.stems) + len(said & row.around) for row in held), default=0)
        return bool(held) and most - nearest / 2 >= FARTHER


def _holds(row: Row, values: AbstractSet[str]) -> bool:
    within = any(len(value) >= SHORTEST_PART and value in row.small for value in values)
    return within or any(not values.isdisjoint(own) for own in row.literals.values())

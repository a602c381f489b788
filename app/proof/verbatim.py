"""Counts the statements of an answer that stand word for word in its pages: whole sentences, items, rows and lines of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from unicodedata import normalize

from app.core.turn import Verbatim
from app.proof.check import CITATION
from app.text.analysis import roots
from app.text.blocks import blocks, code_spans, outside_spans, plain
from app.text.reading import CLOSING, KEPT, Reading, Row, part_of, rows

_SIGNS = re.compile(r"[*`\\]|(?<!\w)_+|_+(?!\w)")
_AROUND = " .!,;|\"'“”„’«»"


def word_for_word(answer: str, pages: Iterable[str], quoted: str = "") -> Verbatim | None:
    """How many statements of the answer stand in one of these texts of pages; None if it states nothing.

    Those that were `quoted` by the program itself count as they are, unless they were cut.
    """
    said, copied = [*statements(answer)], [one for one in statements(quoted) if "…" not in one]
    stems = {one: roots(one) for one in said}
    parts = [part for page in pages for part in Reading(page).parts] if said else []
    held = [one for one in said if any(stems[one] <= part.stems and one in _held(part.text) for part in parts)]
    found = Verbatim(len(said) + len(copied), len(held) + len(copied))
    return found if found.statements else None


def statements(text: str) -> Iterator[str]:
    """The statements of a Markdown text, in a form in which they can be compared.

    Headings, heads of tables, questions, and what ends with a colon state nothing.
    """
    return _stated(rows(text))


def _stated(rows: Iterable[Row]) -> Iterator[str]:
    for row in rows:
        if row.kind == "code":
            said = " ".join(row.text.split())
        elif row.kind == "heading":
            continue
        else:
            said = outside_spans(row.text, lambda prose: CITATION.sub("", prose)).strip(CLOSING)
            if said.endswith((":", "?")):
                continue
        if any(map(str.isalpha, said)):
            yield said if row.kind == "code" else _form(said)


def _form(statement: str) -> str:
    """The statement without markup, case and the signs around it."""
    bare = _SIGNS.sub("", plain(statement))
    return " ".join(normalize("NFC", bare).casefold().split()).strip(_AROUND)


@lru_cache(maxsize=KEPT)
def _held(section: str) -> frozenset[str]:
    """What a section of a page says: its statements, and the code in its lines."""
    spans = (
        prose[start:end].strip("` ") for code, prose in blocks(section) if not code for start, end in code_spans(prose)
    )
    return frozenset(_stated(part_of(section).rows)).union(" ".join(span.split()) for span in spans)

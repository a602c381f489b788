"""Counts the statements of an answer that stand word for word in its pages: whole sentences, items, rows and lines of code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from unicodedata import normalize

from app.core.turn import Verbatim
from app.proof.check import CITATION
from app.proof.reading import CLOSING, KEPT
from app.text.blocks import blocks, code_lines, code_spans, outside_spans, plain, sentences

_QUOTE = re.compile(r"\A(?:[ \t]*+>)++[ \t]?")
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s+(?:\[[ xX]\]\s+)?")
_HEADING = re.compile(r"\s*#{1,6}\s|\s*\*\*[^*\n]+\*\*\s*\Z")
_RULE = re.compile(r"[\s|:*_=-]+")
_SIGNS = re.compile(r"[*`\\]|(?<!\w)_+|_+(?!\w)")
_LETTER = re.compile(r"[^\W\d_]")
_AROUND = " .!,;|\"'“”„’«»"


def word_for_word(answer: str, pages: Iterable[str], quoted: str = "") -> Verbatim | None:
    """How many statements of the answer stand in one of these texts of pages; None if it states nothing.

    Those that were `quoted` by the program itself count as they are, unless they were cut.
    """
    said, copied = [*statements(answer)], [one for one in statements(quoted) if "…" not in one]
    held = frozenset[str]().union(*map(_held, pages)) if said else frozenset[str]()
    found = Verbatim(len(said) + len(copied), sum(one in held for one in said) + len(copied))
    return found if found.statements else None


def statements(text: str) -> Iterator[str]:
    """The statements of a Markdown text, in a form in which they can be compared.

    Headings, heads of tables, questions, and what ends with a colon state nothing.
    """
    for is_code, piece in blocks(text):
        if is_code:
            yield from (" ".join(line.split()) for line in code_lines(piece) if _LETTER.search(line))
            continue
        for part in _parts(outside_spans(piece, lambda prose: CITATION.sub("", prose))):
            ends = (one.strip(CLOSING + "\n") for one in sentences(part))
            yield from (_form(one) for one in ends if _LETTER.search(one) and not one.endswith((":", "?")))


def _parts(prose: str) -> Iterator[str]:
    """The paragraphs, items and rows of a text without code, each on one line."""
    part, rows = list[str](), list[str]()
    for written in (*prose.splitlines(), ""):
        line = _QUOTE.sub("", written)
        is_row, is_item = line.lstrip().startswith("|"), _ITEM.match(line)
        if is_row and _RULE.fullmatch(line):
            rows.clear()  # what is above it is the head
            continue
        if part and (is_row or is_item or not line.strip() or _HEADING.match(line)):
            yield " ".join(part)
            part.clear()
        if is_row:
            rows.append(line)
        elif line.strip() and not _HEADING.match(line):
            part.append(line[is_item.end() if is_item else 0 :].strip())
        if not is_row:
            yield from rows
            rows.clear()


def _form(statement: str) -> str:
    """The statement without markup, case and the signs around it."""
    bare = _SIGNS.sub("", plain(statement))
    return " ".join(normalize("NFC", bare).casefold().split()).strip(_AROUND)


@lru_cache(maxsize=KEPT)
def _held(page: str) -> frozenset[str]:
    """What a text of a page says: its statements, and the code in its lines."""
    spans = (
        prose[start:end].strip("` ") for code, prose in blocks(page) if not code for start, end in code_spans(prose)
    )
    return frozenset(statements(page)).union(" ".join(span.split()) for span in spans)

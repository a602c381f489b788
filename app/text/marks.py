"""Marks of a text, which are the same in any language: its code, numbers, identifiers, anchors, pictures, and the shape of its blocks.

Two versions of a page share these marks whatever languages they are in, so they prove that one is a translation of the
other. They also tell which of its sections is the translation of a given one.
"""

import base64
import hashlib
import re
import struct
from collections.abc import Iterator
from functools import lru_cache

from app.text.blocks import blocks

FORM = "1 "
"""The beginning of fingerprints; raise the number when the marks of a text change."""

KEPT = 160
"""Marks kept of a text: of longer ones those with the smallest hashes, which are the same ones in each language."""

FEWEST_HEADINGS = 4  # whose levels say something: most short pages have the same ones

SHORTEST_NAME = 3

LONGEST = 200  # characters of a mark; longer lines of code are compared by their beginnings

_RUN = re.compile(r"[^\W_]+(?:[._/:@+-]+[^\W_]+)*|[^\W_]*_[\w.]*")
_TELLING = re.compile(r"\d|_|[^\W\d_][A-Z]|@")  # of a run that is no word of a language: digits, inner capitals
_SPAN = re.compile(r"(?<!`)`([^`\n]+)`(?!`)")
_HEADING = re.compile(r"(?m)^ {0,3}(#{1,6})[ \t]")
_ANCHOR = re.compile(r"\{#([^{}\s]++)[^{}\n]*+\}[ \t]*+$", re.MULTILINE)
_TARGET = re.compile(r"\]\(<?([^\s()<>]+)")
_ITEM = re.compile(r"[ \t]*(?:[-*+]|\d{1,3}[.)])[ \t]")
_DECIMAL = re.compile(r",(?<=\d,)(?=\d)")


def marks(markdown: str) -> frozenset[str]:
    """All marks of the text."""
    return frozenset(mark[:LONGEST] for mark in _marks(markdown))


def _marks(markdown: str) -> Iterator[str]:
    levels, texts = "", list[str]()
    for code, piece in blocks(markdown):
        if code:
            lines = [" ".join(line.split()) for line in piece.splitlines()[1:-1]]
            yield from (f"code {line}" for line in lines if len(line) > 2)
            texts.append(piece)
        else:
            levels += "".join(str(len(heading[1])) for heading in _HEADING.finditer(piece))
            yield from _of_prose(piece)
            texts.append(_TARGET.sub("](", piece))
    yield from _runs("\n".join(texts))
    if len(levels) >= FEWEST_HEADINGS:
        yield f"headings {levels}"


def _of_prose(text: str) -> Iterator[str]:
    yield from (f"anchor {anchor}" for anchor in _ANCHOR.findall(text))
    yield from (f"code {' '.join(span.split())}" for span in _SPAN.findall(text))
    for target in _TARGET.findall(text):
        yield f"link {target.rstrip('/').rpartition('/')[2]}"
    yield from _shapes(text)


def _runs(text: str) -> Iterator[str]:
    """Numbers and identifiers: runs without spaces that aren't words of a language."""
    words = [
        word for word in set(text.split()) if not (word.isalpha() and word[1:].islower())
    ]  # most are there many times
    for run in set(_RUN.findall(_DECIMAL.sub(".", " ".join(words)))):
        if not (run.isalpha() and run[1:].islower()) and _TELLING.search(run):
            yield run.casefold()


def names(text: str) -> frozenset[str]:
    """The numbers and identifiers in the text that are long enough to mean one thing."""
    return frozenset(run for run in _runs(text) if len(run) >= SHORTEST_NAME)


def _shapes(text: str) -> Iterator[str]:
    items = rows = 0
    for line in (*text.splitlines(), "#"):
        stripped = line.strip()
        if stripped.startswith("|"):
            rows += 1
        elif _ITEM.match(line):
            items += 1
        elif stripped and not line.startswith((" ", "\t")):
            if rows > 2:
                yield f"rows {rows}"
            if items > 1:
                yield f"items {items}"
            rows = items = 0


def fingerprint(markdown: str) -> str:
    """The marks of a text in a short form, to be stored and compared with others. It begins with `FORM`."""
    hashes = sorted({_hash(mark) for mark in marks(markdown)})[:KEPT]
    return FORM + base64.b64encode(struct.pack(f"<{len(hashes)}I", *hashes)).decode()


def hashed(fingerprint: str) -> frozenset[int]:
    """The marks of a fingerprint as numbers."""
    return frozenset(mark for (mark,) in struct.iter_unpack("<I", base64.b64decode(fingerprint.removeprefix(FORM))))


@lru_cache(maxsize=20_000)
def _hash(mark: str) -> int:
    return int.from_bytes(hashlib.blake2b(mark.encode("utf-8", "replace"), digest_size=4).digest(), "little")

"""The blocks of a chunk, their units (sentences, items, rows, code), how well each unit answers a question, and the
stretches of units whose vectors are searched.

A unit is what a reader is shown first: it is small enough to be about one thing, and its block says where it stands.
"""

import math
import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from app.core.types import Chunk
from app.text.analysis import analyse
from app.text.blocks import CUT, blocks, code_lines, plain, unmarked
from app.text.reading import Block, parts, read_blocks

SHORTEST = 60  # characters: a shorter sentence is one unit with the next
LONGEST_CODE = 400  # characters of code that are compared with the question
STRETCH = 400  # characters: about 130 tokens, of which a model still tells a row or sentence apart
CONTEXT = 0.5  # weight of a word that only the title, the heading or the introduction has
NAMED = 1.5  # weight of a word that names the row or item

_NAME = re.compile(r"\|([^|\n]{0,200})|\s*(?:(?:[-*+]|\d{1,3}[.)])\s+)?(\*\*[^*\n]{1,80}\*\*|`[^`\n]{1,80}`)")


@dataclass(frozen=True, slots=True)
class Unit:
    """A part of a chunk, from `start` to `end` of its text; `block` and `stretch` are the indexes of those that have it.

    `tokens` are its own, `context` those of the title, the last heading and what introduces its block. `name` has those of
    its first cell, or of the bold text or code that it begins with: as a heading does, these say what it is about.
    """

    start: int
    end: int
    block: int
    tokens: frozenset[str]
    context: frozenset[str]
    stretch: int
    name: frozenset[str] = frozenset()

    def score(self, weights: Mapping[str, float]) -> float:
        """The weights of the tokens that it has; those of its name count more, those of the context less."""
        score = 0.0
        for token, weight in weights.items():  # few, so this is faster than to go through the tokens
            if token in self.tokens:
                score += weight * NAMED if token in self.name else weight
            elif token in self.context:
                score += weight * CONTEXT
        return score


def rarity(count: int, chunks: int) -> float:
    """The weight of a token that `count` of the chunks have, as in BM25; above 0."""
    return math.log(1 + (max(chunks, count) - count + 0.5) / (count + 0.5))


KEPT = 500  # chunks, about 20 KB each: the same ones answer many questions


@lru_cache(maxsize=KEPT)
def blocks_of(chunk: Chunk) -> tuple[Block, ...]:
    """The blocks of the chunk in order, without headings, images and rules."""
    offsets = [section.offset for section in chunk.sections[1:]]
    return tuple(block for block in read_blocks(chunk.text, offsets) if block.kind != "heading")


@lru_cache(maxsize=KEPT)
def units_of(chunk: Chunk) -> tuple[Unit, ...]:
    """The units of the chunk in order. They take most of the time, so what needs blocks only doesn't ask for them."""
    blocks = blocks_of(chunk)
    return tuple(_units(chunk, blocks, _block_units(blocks)))


class BlockUnits(NamedTuple):
    """A block that has units, with its number, and the start and end of each unit in its text."""

    number: int
    block: Block
    places: Sequence[tuple[int, int]]


class Stretch(NamedTuple):
    """Whole units in a row, from `start` to `end` of a chunk's text; `section` is the index of the section of the first one."""

    start: int
    end: int
    section: int


def _stretches(chunk: Chunk, units: Sequence[BlockUnits]) -> list[Stretch]:
    """The chunk in stretches of about `STRETCH` characters, which begin with a section where that is near."""
    size = len(chunk.text) / max(1, round(len(chunk.text) / STRETCH))
    found, start, end, section = list[Stretch](), 0, 0, units[0].block.section if units else 0
    for _, block, places in units:
        for _, till in places:
            after = block.start + till
            other = block.section != section
            if end and (end - start + (after - end) / 2 > size or (other and end - start > size / 2)):
                found.append(Stretch(start, end, section))
                start, section = end, block.section
            end = after
    return [*found, Stretch(start, len(chunk.text), section)]


def stretch_texts(chunk: Chunk) -> list[str]:
    """The text of each stretch as it is embedded, below the context of its section."""
    found = _stretches(chunk, _block_units(blocks_of(chunk)))
    texts = [plain(chunk.text[one.start : one.end]).strip() for one in found]
    texts[0] = _beside(chunk.before, texts[0])
    texts[-1] = _beside(texts[-1], chunk.after)
    return [f"{chunk.context_of(one.section)}\n\n{text}" for one, text in zip(found, texts, strict=True)]


def _beside(*texts: str) -> str:
    return "\n\n".join(filter(None, texts))


def _block_units(blocks: Sequence[Block]) -> list[BlockUnits]:
    found = list[BlockUnits]()
    for i, block in enumerate(blocks):
        followed = i + 1 < len(blocks) and blocks[i + 1].section == block.section
        if followed and block.is_label and blocks[i + 1].kind == "code":
            continue
        places = parts(block, nested=True, shortest=SHORTEST)
        if followed and block.leads and len(places) > 1:
            places.pop()  # it only announces what follows
        found.append(BlockUnits(i, block, places))
    return found


def _units(chunk: Chunk, blocks: Sequence[Block], units: Sequence[BlockUnits]) -> Iterator[Unit]:
    starts = [stretch.start for stretch in _stretches(chunk, units)]
    for i, block, places in units:
        above = (
            [blocks[i - 1].text] if i and blocks[i - 1].section == block.section and block.kind != "paragraph" else []
        )
        names = dict.fromkeys((chunk.title, *(chunk.sections[block.section].path[-1:] if chunk.sections else ())))
        context = frozenset(analyse(" ".join([*names, *above, block.head]), chunk.language))
        for start, end in places:
            tokens = analyse(plain(block.text[start : min(end, start + LONGEST_CODE)]), chunk.language)
            at, name = block.start + start, _NAME.match(block.text, start)
            named = frozenset(analyse(plain(name[1] or name[2] or ""), chunk.language)) if name else frozenset[str]()
            yield Unit(at, block.start + end, i, frozenset(tokens), context, bisect_right(starts, at) - 1, named)


def line_of(chunk: Chunk, unit: Unit) -> str:
    """The unit as one line of Markdown: without list markers, cell borders, code below an item, and its colon."""
    text = chunk.text[unit.start : unit.end]
    if text.startswith("|"):
        return " – ".join(cell.strip() for cell in plain(text).strip("|").split("|") if cell.strip())
    pieces = list(blocks(plain(text)))
    outside = "".join(piece for code, piece in pieces if not code).strip()
    code = "\n".join(line for code, piece in pieces if code for line in code_lines(piece))
    return " ".join((unmarked(outside) or code).split()).removesuffix(":")


_COMMENTS = ("#", "//", "/*", "<!", "<?", "-- ")  # and the names of interpreters


def first_command(code: Block) -> str:
    """The first line of code that has a word and is neither a comment nor the name of its language; may be empty."""
    lines = map(str.strip, code_lines(code.text))
    return next(
        (one for one in lines if any(map(str.isalpha, one)) and "`" not in one and not one.startswith(_COMMENTS)), ""
    )


def shortened(block: Block, longest: int, at: int) -> str:
    """The part of the block that has the sign at this offset, and the neighbours that fit; omissions are marked."""
    spans = parts(block, shortest=SHORTEST)
    first = last = max(bisect_right([start for start, _ in spans], at) - 1, 0)
    head = block.text[: spans[0][0]] if block.kind == "table" else ""
    columns = head.count("|", head.find("\n")) - 1
    omitted = f"| {CUT} |{' |' * (columns - 1)}\n" if head else f"{CUT}\n\n"
    room = longest - len(head) - len(omitted) - len(f"{CUT}\n\n")
    after = [(first, i) for i in range(first + 1, len(spans))]
    before = [(i, last) for i in range(first - 1, -1, -1)]
    # a text says first what it is about, and the rows above another one say nothing of it
    for neighbours in (after, before) if block.kind == "table" else (before, after):
        for near in neighbours:
            wider = min(first, near[0]), max(last, near[1])
            if spans[wider[1]][1] - spans[wider[0]][0] > room:
                break
            first, last = wider
    excerpt, rest = block.text[spans[first][0] : spans[last][1]], last + 1 < len(spans)
    if block.kind == "paragraph":
        return f"{f'{CUT} ' if first else ''}{excerpt}{f' {CUT}' if rest else ''}"
    return f"{head}{omitted if first else ''}{excerpt}" + (f"\n\n{CUT}" if rest else "")

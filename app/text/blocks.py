"""Parts of Markdown: code and prose, sentences, and blocks that are kept whole."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from app.core.language import vocabulary
from app.core.types import Chunk

_ANY_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?|(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
_PLACEHOLDER = re.compile("\x00(\\d{1,6})\x00")
_TICKS = re.compile(r"(?P<escape>\\)?(?P<ticks>`+)|\n[ \t]*+(?=\n)")


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces that join back to it: (True, fenced code with its fences) or (False, prose)."""
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        # most lines have no fence, and searching for one is the faster test
        if not fence and ("```" in line or "~~~" in line) and (match := _ANY_FENCE.match(line.rstrip("\r\n"))):
            if lines:
                yield False, "".join(lines)
            fence, lines = match[1], [line]
        elif fence and _closes(line, fence):
            yield True, "".join([*lines, line])
            fence, lines = "", []
        else:
            lines.append(line)
    if lines:
        yield bool(fence), "".join(lines)


def _closes(line: str, fence: str) -> bool:
    signs = line.strip(" \t>\r\n")
    return len(signs) >= len(fence) and not signs.strip(fence[0])


def code_lines(block: str) -> list[str]:
    """The lines of a fenced block, without those of its fences."""
    first, *lines = block.splitlines()
    fence = _ANY_FENCE.match(first)
    closed = fence and lines and _closes(lines[-1], fence[1])
    return lines[:-1] if closed else lines


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to the prose between fenced blocks."""
    return "".join(piece if code else change(piece) for code, piece in blocks(text))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to all but fenced blocks and code spans."""
    return outside_fences(text, lambda prose: outside_spans(prose, change))


def code_spans(prose: str) -> Iterator[tuple[int, int]]:
    """The start and end of each code span; it ends at the next run of as many backticks in the paragraph."""
    if "`" not in prose:
        return
    runs = list[tuple[int, int, bool]]()
    for match in _TICKS.finditer(prose):
        if match["ticks"]:
            runs.append((match.start("ticks"), match.end(), match["escape"] is None))
        else:
            yield from _paired(runs)
            runs.clear()
    yield from _paired(runs)


def _paired(runs: list[tuple[int, int, bool]]) -> Iterator[tuple[int, int]]:
    waiting: defaultdict[int, list[int]] = defaultdict(list)  # later runs by length, the next one last
    for number in range(len(runs) - 1, -1, -1):
        waiting[runs[number][1] - runs[number][0]].append(number)
    number = 0
    while number < len(runs):
        start, end, opens = runs[number]
        same = waiting[end - start]
        while same and same[-1] <= number:
            same.pop()
        if opens and same:
            number = same[-1]
            yield start, runs[number][1]
        number += 1


def outside_spans(prose: str, change: Callable[[str], str]) -> str:
    """Replaces code spans with placeholders, so that `change` sees constructs around them as a whole."""
    if "`" not in prose:
        return change(prose)
    spans: list[str] = []
    parts, at = list[str](), 0
    for start, end in code_spans(prose):
        parts.append(f"{prose[at:start]}\x00{len(spans)}\x00")
        spans.append(prose[start:end])
        at = end
    changed = change("".join([*parts, prose[at:]]))
    return _PLACEHOLDER.sub(lambda match: spans[int(match[1])] if int(match[1]) < len(spans) else match[0], changed)


# a stop, closing marks, space, then the start of a sentence: a word, a bullet or a link
_END = re.compile(r"""[.!?…]["'”’“»)\]*_`]{0,3}\s+(?=["'“„«(\[*_`]{0,3}(?P<first>\w)|[-*+]\s|!?\[)""")
_STOP = re.compile(r"(?<=[.!?])\s+")
_LAST_WORD = re.compile(r"(?<![\w.])([\w.]+)\.$")


def sentences(text: str, abbreviations: Collection[str] | None = None) -> list[str]:
    """The text in sentences, in order, each with the white space after it: they join back to the text.

    The abbreviations are in lower case, without their last stop; the default is those of the shipped languages.
    """
    abbreviations = vocabulary().abbreviations if abbreviations is None else abbreviations
    texts, start = list[str](), 0
    for match in _END.finditer(text):
        if _is_end(text[max(start, match.start() - 40) : match.start() + 1], match["first"] or "", abbreviations):
            texts.append(text[start : match.end()])
            start = match.end()
    return [*texts, text[start:]] if start < len(text) else texts


def quotable_sentences(text: str, abbreviations: Collection[str] | None = None) -> list[str]:
    """The sentences of a paragraph without the white space between them; none ends within a code span."""
    texts: list[list[str]] = []
    in_code = False
    for sentence in sentences(text, abbreviations):
        if in_code:
            texts[-1].append(sentence.rstrip())
        else:
            texts.append([sentence.rstrip()])
        in_code ^= sentence.count("`") % 2 == 1
    return [" ".join(pieces) for pieces in texts]


def informal_sentences(text: str, abbreviations: Collection[str]) -> list[str]:
    """The sentences without the white space between them; they can begin with lower case, as people type."""
    texts, start = list[str](), 0
    for gap in _STOP.finditer(text):
        if _last_word(text[max(start, gap.start() - 40) : gap.start()]) not in abbreviations:
            texts.append(text[start : gap.start()])
            start = gap.end()
    return [*texts, text[start:]]


def _is_end(before: str, following: str, abbreviations: Collection[str]) -> bool:
    if following.islower():
        return False
    last = _last_word(before)
    if not last:
        return True
    if last.isdigit():  # "3. listopadu", "1. First": an ordinal or a list item, unless a sentence surely begins
        return following.isupper() and len(last) > 2
    return last not in abbreviations and not (len(last) == 1 and last.isalpha())


def _last_word(text: str) -> str:
    """The word before the stop at the end of the text, in lower case; empty if there is no such stop."""
    word = _LAST_WORD.search(text)
    return word[1].rpartition("\n")[2].lower().strip(".") if word else ""


CUT = "…"
Kind = Literal["paragraph", "list", "table", "code", "quote"]

_FENCE = re.compile(r"^\s*(`{3,}|~{3,})")
_HEADING = re.compile(r"^#{1,6}\s")
_MARK = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)]|>)\s+")
_ITEM = re.compile(r"^\s*(?:[-*+]|\d{1,3}[.)])\s+\S")
# possessive, because backtracking over the signs of a rule takes exponential time
_NOTHING = re.compile(r"(?:\s*+(?:!\[[^\]\n]*+\]\([^)\n]*+\)|\*{3,}+|-{3,}+|_{3,}+|<[^>\n]*+>))++\s*+$")


@dataclass(frozen=True, slots=True)
class Block:
    """A block of a passage; `section` is the index of its section."""

    text: str
    kind: Kind
    section: int

    @property
    def leads(self) -> bool:
        """True if it introduces the next block."""
        return self.kind == "paragraph" and self.text.rstrip(" *_").endswith(":")


def blocks_of(chunk: Chunk) -> list[Block]:
    """The blocks of the chunk in order, without headings, images and rules."""
    offsets = [section.offset for section in chunk.sections[1:]]
    pieces: list[tuple[list[str], Kind, int]] = []
    for start, lines in _groups(chunk.text):
        text = "\n".join(lines).strip("\n").rstrip()
        section = bisect_right(offsets, start)
        if pieces and pieces[-1][1:] == ("list", section) and _goes_on(lines):
            pieces[-1][0].append(text)
        else:
            pieces.append(([text], _kind(lines), section))
    return [Block("\n\n".join(texts), kind, section) for texts, kind, section in pieces]


def _goes_on(lines: list[str]) -> bool:
    """True if the lines belong to the list above them."""
    return bool(_ITEM.match(lines[0])) or lines[0].startswith(("  ", "\t"))


def _kind(lines: list[str]) -> Kind:
    if _FENCE.match(lines[0]) and not lines[0].startswith(" "):
        return "code"
    if lines[0].lstrip().startswith("|"):
        return "table"
    if lines[0].startswith(">"):
        return "quote"
    return "list" if any(_ITEM.match(line) for line in lines) else "paragraph"


def _groups(text: str) -> Iterator[tuple[int, list[str]]]:
    """Groups of consecutive lines, each with the offset of its first; a fenced block is one group."""
    lines: list[str] = []
    fence, start, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        bare, mark = line.rstrip("\r\n"), _FENCE.match(line)
        closes = bool(fence and mark and mark[1].startswith(fence) and not line.strip(" `~\r\n"))
        alone = not fence and (not bare.strip() or _HEADING.match(bare) or _NOTHING.match(bare))
        if lines and (alone or (not fence and mark)):
            yield start, lines
            lines = []
        if not alone:
            start = start if lines else at
            lines.append(bare)
        if closes:
            yield start, lines
            lines, fence = [], ""
        elif not fence and mark:
            fence = mark[1]
        at += len(line)
    if lines:
        yield start, lines


@dataclass(frozen=True, slots=True)
class Units:
    """The parts of a block: sentences, rows or items; `head` is the header of a table, which is always kept."""

    texts: Sequence[str]
    joint: str
    head: str = ""
    rows: bool = False

    def plain(self, text: str) -> str:
        """A unit without list markers, cell borders and fenced code; code alone without its fences."""
        if self.rows:
            return " – ".join(cell.strip() for cell in text.strip().strip("|").split("|") if cell.strip())
        outside, code = _apart(text)
        return _MARK.sub("", outside.strip() or code)


def _apart(text: str) -> tuple[str, str]:
    """The text without fenced code, and the code without its fences."""
    outside, code, fence = list[str](), list[str](), ""
    for line in text.splitlines():
        mark = _FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif mark and line.strip() == fence:
            fence = ""
        else:
            (code if fence else outside).append(line)
    return "\n".join(outside), "\n".join(code)


def units_of(block: Block, abbreviations: Collection[str] | None = None) -> Units:
    """The parts of the block; code and quotes have only one."""
    lines = block.text.splitlines()
    if block.kind == "paragraph":
        return Units(quotable_sentences(block.text, abbreviations), " ")
    if block.kind == "table" and len(lines) > 2:
        return Units(lines[2:], "\n", "\n".join(lines[:2]), rows=True)
    if block.kind == "list":
        return Units(_items(lines), "\n")
    return Units([block.text], "\n")


def _items(lines: Iterable[str]) -> list[str]:
    """The items of the outermost level, each with its further lines."""
    items: list[list[str]] = []
    for line in lines:
        if items and (line[:1].isspace() or not line.strip() or not _ITEM.match(line)):
            items[-1].append(line)
        else:
            items.append([line])
    return ["\n".join(item).rstrip() for item in items]


def shortened(units: Units, longest: int, weight: Callable[[str], float]) -> str:
    """The unit with the largest weight and the neighbours that fit; omissions are marked."""
    scores = [weight(text) for text in units.texts]
    first = last = max(range(len(scores)), key=lambda i: (scores[i], -i))
    joint = len(units.joint)
    room = longest - len(units.head) - len(units.texts[first]) - 2 * len(f"{CUT}\n\n")
    before, after = range(first - 1, -1, -1), range(first + 1, len(units.texts))
    # a text says first what it is about, and the rows above another one say nothing of it
    for neighbours in (after, before) if units.rows else (before, after):
        for near in neighbours:
            if len(units.texts[near]) + joint > room:
                break
            room -= len(units.texts[near]) + joint
            first, last = min(first, near), max(last, near)
    excerpt = units.joint.join(units.texts[first : last + 1])
    rest = last + 1 < len(units.texts)
    if units.joint == " ":
        return f"{f'{CUT} ' if first else ''}{excerpt}{f' {CUT}' if rest else ''}"
    above = f"{units.head}\n" if units.head else f"{CUT}\n\n" if first else ""
    below = f"\n\n{CUT}" if rest or (first and units.head) else ""
    return above + excerpt + below


def joined(blocks: Iterable[Block]) -> str:
    """The blocks as Markdown again."""
    return "\n\n".join(block.text for block in blocks)

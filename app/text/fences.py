"""Separates code from prose in Markdown, so that cleaning never changes code."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?|(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
_PLACEHOLDER = re.compile("\x00(\\d{1,6})\x00")
_TICKS = re.compile(r"(?P<escape>\\)?(?P<ticks>`+)|\n[ \t]*+(?=\n)")


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces that join back to it: (True, fenced code with its fences) or (False, prose)."""
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        # most lines have no fence, and searching for one is the faster test
        if not fence and ("```" in line or "~~~" in line) and (match := _FENCE.match(line.rstrip("\r\n"))):
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
    fence = _FENCE.match(first)
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

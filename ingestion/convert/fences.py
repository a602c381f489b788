"""Where a Markdown text is code and where it is prose, so that cleaning never touches code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

_FENCE = re.compile(r"^[ \t]*(?:>[ \t]?|(?:[-*+]|\d+[.)])[ \t]+)*(`{3,}(?=[^`]*$)|~{3,})")
_CODE_SPAN = re.compile(r"(?<![`\\])(`+)(?!`)(?:(?!\n[ \t]*\n).)*?(?<!`)\1(?!`)", re.DOTALL)


def blocks(text: str) -> Iterator[tuple[bool, str]]:
    """The text in pieces that join back to it: (True, fenced code with its fences) or (False, what is between)."""
    fence, lines = "", list[str]()
    for line in text.splitlines(keepends=True):
        match = _FENCE.match(line.rstrip("\r\n"))
        if not fence and match:
            if lines:
                yield False, "".join(lines)
            fence, lines = match[1], [line]
        elif fence and line.strip(" \t>\r\n").rstrip(fence[0]) == "" and len(line.strip(" \t>\r\n")) >= len(fence):
            yield True, "".join([*lines, line])
            fence, lines = "", []
        else:
            lines.append(line)
    if lines:
        yield bool(fence), "".join(lines)


def outside_fences(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to what is between fenced blocks."""
    return "".join(piece if code else change(piece) for code, piece in blocks(text))


def outside_code(text: str, change: Callable[[str], str]) -> str:
    """The text with `change` applied to what is neither in a fenced block nor in a code span."""
    return outside_fences(text, lambda prose: _outside_spans(prose, change))


def _outside_spans(prose: str, change: Callable[[str], str]) -> str:
    """Code spans are kept out by placeholders, so that `change` sees a construct that goes around one whole."""
    spans: list[str] = []

    def hide(match: re.Match[str]) -> str:
        spans.append(match[0])
        return f"\x00{len(spans) - 1}\x00"

    changed = change(_CODE_SPAN.sub(hide, prose))
    return re.sub("\x00(\\d+)\x00", lambda match: spans[int(match[1])], changed)

"""Where Markdown code begins and ends, in a text of which the end may not have come yet."""

from __future__ import annotations

import re
from typing import NamedTuple

SPAN = 300  # of code in a line: as long as what follows a lone backtick may be taken for code
_ITEM = r"(?:[-*+]|\d{1,3}[.)])"
_BEGIN = re.compile(
    rf"([ \t]*)((?:>[ \t]*)*)({_ITEM}(?:[ \t]+|(?=\n|\Z)))?(`{{3,}}(?=[^`\n]{{0,80}}(?:\n|\Z)|[^`\n]{{81}})|~{{3,}})?"
)
_UNSURE = re.compile(rf"[ \t]*(?:>[ \t]*)*(?:{_ITEM}?|\d{{1,3}})[ \t]*(?:`{{1,2}}|`{{3,}}[^`\n]{{0,80}}|~+)?\Z")
_CLOSER = re.compile(r"[ \t>]*(`{3,}|~{3,})[ \t]*(?:\n|\Z)")
_CLOSER_UNSURE = re.compile(r"[ \t>]*(?:`+|~+)?[ \t]*\Z")
_SPAN_END = re.compile(rf"(`+)|\n[ \t]*(?:(\n|#|>|\||{_ITEM}[ \t]|```|~~~)|(?:{_ITEM}?|\d{{1,3}}|``?|~~?)\Z)")


class LineStart(NamedTuple):
    """What a line begins with, each empty where it isn't there, and where that ends."""

    indent: str
    quote: str
    item: str
    fence: str
    end: int


def line_start(text: str, at: int) -> LineStart:
    """The beginning of the line that begins here."""
    found = _BEGIN.match(text, at)
    assert found is not None  # it matches nothing, too
    indent, quote, item, fence = found.groups(default="")
    return LineStart(indent, quote, item, fence, found.end())


def start_unsure(text: str, at: int, *, fenced: bool) -> bool:
    """Whether more text may make another beginning of this line."""
    return bool((_CLOSER_UNSURE if fenced else _UNSURE).match(text, at))


def closed_at(text: str, at: int, fence: str) -> int:
    """Where the line ends that closes the fence; 0 where this one doesn't."""
    closer = _CLOSER.match(text, at)
    return closer.end() if closer and closer[1].startswith(fence) else 0


def span_end(text: str, at: int, ticks: int, left: int, *, final: bool) -> int | None:
    """Where the code ends that so many backticks may have opened, `left` characters at most from here; 0 when they
    didn't, None when that isn't sure.
    """
    for found in _SPAN_END.finditer(text, at):
        if found.start() - at > left or (found[2] and not found[1]):
            return 0
        if found.end() == len(text) and not final:
            return None
        if found[1] and len(found[1]) == ticks:
            return found.end()
    return 0 if final or len(text) - at > left else None

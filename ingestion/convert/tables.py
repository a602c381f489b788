"""Tables of Markdown without the spaces that align their columns, which cost tokens and say nothing."""

from __future__ import annotations

import re

from app.text.fences import outside_fences

_DELIMITERS = re.compile(r"[ \t>]*+\|?[ \t]*+:?-++:?[ \t]*+(?:\|[ \t]*+:?-++:?[ \t]*+)*+\|?[ \t]*+$")
_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r"-+")


def compact_tables(text: str) -> str:
    """The text with one space between cell and pipe, and three dashes below each column's name."""
    return outside_fences(text, _compacted) if re.search(r"-[ \t]*\||\|[ \t]*:?-", text) else text


def _compacted(prose: str) -> str:
    lines = prose.split("\n")
    at = 1
    while at < len(lines):
        if "|" in lines[at] and "|" in lines[at - 1] and _DELIMITERS.match(lines[at]):
            lines[at] = _DASHES.sub("---", lines[at])
            at -= 1
            while at < len(lines) and "|" in lines[at]:
                lines[at] = _row(lines[at])
                at += 1
        at += 1
    return "\n".join(lines)


def _row(line: str) -> str:
    body = line.lstrip(" \t")
    return line[: len(line) - len(body)] + " | ".join(cell.strip(" \t") for cell in _PIPE.split(body)).strip(" ")

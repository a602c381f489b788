"""Files that an AsciiDoc file includes: those of its source, by lines or tags, never others."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from ingestion.convert.asciidoc.antora import Place

DEEPEST = 8
MOST = 200
"""Files that a page may include, each time counted."""

_INCLUDE = re.compile(r"^include::(\S[^\[\n]*)\[([^\]\n]*)\][ \t]*$")
_TAG = re.compile(r"(?:^|\W)(tag|end)::([\w.-]+)\[\]")
_SET = re.compile(r"^:([\w-]++):(?:[ \t]++(.*+))?$")
_OPTION = re.compile(r"(?<!\w)(\w++)=(?:\"([^\"]*)\"|([^,]*))")


def with_includes(text: str, place: Place, attributes: Mapping[str, str]) -> str:
    """The text with the files that it includes; those that aren't there are left out."""
    return "\n".join(_Reading(place, dict(attributes)).lines(text, ())) + "\n"


@dataclass
class _Reading:
    place: Place
    attributes: dict[str, str] = field(default_factory=dict)
    count: int = 0

    def lines(self, text: str, around: tuple[str, ...]) -> Iterator[str]:
        """The lines, with those of included files in their places."""
        for line in text.splitlines():
            if match := _SET.match(line):
                self.attributes.setdefault(match[1], (match[2] or "").rstrip(" \t"))
            if not (found := _INCLUDE.match(line)):
                yield line
                continue
            self.count += 1
            target = re.sub(r"\{([\w-]+)\}", lambda name: self.attributes.get(name[1], name[0]), found[1])
            options = {name: quoted or plain for name, quoted, plain in _OPTION.findall(found[2])}
            path = self.place.path(target)
            if path not in around and len(around) < DEEPEST and self.count <= MOST:
                chosen = _chosen(self.place.tree.text(path), options)
                yield from _shifted(self.lines(chosen, (*around, path)), options.get("leveloffset", ""))


def _shifted(lines: Iterator[str], offset: str) -> Iterator[str]:
    if not re.fullmatch(r"[+-]?\d", offset):
        yield from lines
        return
    back = offset.translate(str.maketrans("+-", "-+")) if offset[0] in "+-" else f"-{offset}"
    yield from (f":leveloffset: {offset}", "", *lines, "", f":leveloffset: {back}")


def _chosen(text: str, options: Mapping[str, str]) -> str:
    """The lines that the options choose; marks of tags are never shown."""
    lines = text.splitlines()
    if spec := options.get("lines"):
        lines = [line for part in re.split(r"[,;]", spec)[:100] for line in _range(lines, part.strip())]
    wanted = [tag for tag in re.split(r"[,;]", options.get("tags") or options.get("tag") or "") if tag]
    shown: list[str] = []
    open_: list[str] = []
    for line in lines:
        if mark := _TAG.search(line):
            if mark[1] == "tag":
                open_.append(mark[2])
            elif mark[2] in open_:
                open_.remove(mark[2])
        elif _is_wanted(open_, wanted):
            shown.append(line)
    if options.get("indent") == "0":
        least = min((len(line) - len(line.lstrip()) for line in shown if line.strip()), default=0)
        shown = [line[least:] for line in shown]
    return "\n".join(shown)


def _is_wanted(open_: list[str], wanted: list[str]) -> bool:
    if not wanted or "**" in wanted:
        return not any(f"!{tag}" in wanted for tag in open_)
    if "*" in wanted:
        return bool(open_)
    return any(tag in wanted for tag in open_) and not any(f"!{tag}" in wanted for tag in open_)


def _range(lines: list[str], part: str) -> list[str]:
    first, dots, last = part.partition("..")
    if not first.isdecimal() or len(part) > 20:
        return []
    end = int(last) if last.isdecimal() else len(lines)
    return lines[int(first) - 1 : end if dots else int(first)] if int(first) else []

"""Admonitions and tabs as raw Markdown writes them -> the bold lines that those of HTML get, with the content below.

`!!! note "Title"`, `=== "Tab"` (mkdocs), `::: tip Title` (VitePress, Docusaurus, Starlight, MyST), `/// note | Title`
(pymdownx), `> [!NOTE]` (GitHub).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from app.text.fences import blocks
from ingestion.convert.admonitions import KINDS, label

_INDENTED = re.compile(r"(?:!!!|\?\?\?\+?)[ ]*(?P<kind>[\w-]+)(?:[ ]+[\w-]+)*(?P<title>[ ]+\"[^\"\n]*\")?[ ]*$")
_TAB = re.compile(r"===[!+]*[ ]+\"(?P<title>[^\"\n]+)\"[ ]*$")
_COLONS = re.compile(
    r"(?P<fence>:{3,})[ ]*(?P<kind>[A-Za-z][\w-]*)(?:\[(?P<title>.*)\]|[ ]+(?P<words>[^\n{].*))?(?:[ ]*\{[^{}]*\})?[ ]*$"
)
_SLASHES = re.compile(r"(?P<fence>/{3,})[ ]+(?P<kind>[A-Za-z][\w-]*)(?:[ ]*+\|(?P<title>.*))?$")
_CLOSING = re.compile(r"(?P<fence>:{3,}|/{3,})[ ]*$")
_ALERT = re.compile(r">[ ]?\[!(?P<kind>[A-Za-z]+)\][+-]?[ ]*(?P<title>.*)$")
_PANE = re.compile(r"==[ ]+(?P<title>\S.*)$")  # vitepress-plugin-tabs
_SETS = frozenset({"code-group", "tabs", "tab-set", "raw", "v-pre"})
_TITLED = frozenset({"details", "tab", "tab-item", "dropdown"})
_WIDTH = 4
_SIGNS = ("!!!", "???", "===", ":::", "///", "[!")


def clean_containers(text: str) -> str:
    """The Markdown with the content of each container in its place, below its bold line."""
    if not any(sign in text for sign in _SIGNS):
        return text
    reader = _Reader()
    for code, piece in blocks(text):
        for line in piece.split("\n")[: -1 if piece.endswith("\n") else None]:
            reader.read(line, code=code)
    return "\n".join(reader.lines) + ("\n" if text.endswith("\n") else "")


@dataclass
class _Reader:
    """Reads lines in order; `lines` are those of the result."""

    lines: list[str] = field(default_factory=list)
    _columns: list[int] = field(default_factory=list)  # of the content of open indented containers
    _fences: list[tuple[str, str]] = field(default_factory=list)  # open ones, with their kind; "" for those of others
    _quote: bool = False

    def read(self, line: str, *, code: bool) -> None:
        body = self._unquoted(self._dedented(line))
        again = not (code or body.strip() or "".join(self.lines[-1:]))  # a second blank line
        if code or not (again or self._marked(body)):
            self.lines.append(body)

    def _dedented(self, line: str) -> str:
        bare = line.lstrip(" \t")
        indent = len(line[: len(line) - len(bare)].expandtabs(_WIDTH))
        while bare and self._columns and indent < self._columns[-1]:
            self._columns.pop()
            self._part()
        return " " * max(0, indent - _WIDTH * len(self._columns)) + bare if self._columns else line

    def _unquoted(self, line: str) -> str:
        if not self._quote:
            return line
        bare = line.lstrip(" ")
        if bare.startswith(">"):
            return line[: len(line) - len(bare)] + bare[1:].removeprefix(" ")
        self._quote = False
        self._part()
        return line

    def _marked(self, line: str) -> bool:
        """True for a line that belongs to the form of a container."""
        bare = line.lstrip(" ")
        indent = line[: len(line) - len(bare)]
        if found := _INDENTED.match(bare) or _TAB.match(bare):
            self._columns.append(len(indent) + _WIDTH * (len(self._columns) + 1))
        elif found := _ALERT.match(bare):
            self._quote = True
        elif found := _CLOSING.match(bare):
            return self._closes(found["fence"])
        elif found := _COLONS.match(bare) or _SLASHES.match(bare):
            return self._opens(found, indent)
        elif not (self._fences and self._fences[-1][1] == "tabs" and (found := _PANE.match(bare))):
            return False
        parts = found.groupdict()
        self._write(indent, parts.get("kind") or "", (parts["title"] or "").strip().strip('"'))
        return True

    def _closes(self, fence: str) -> bool:
        while self._fences:
            opened, kind = self._fences.pop()
            if opened == fence:
                return bool(kind)
        return False

    def _opens(self, found: re.Match[str], indent: str) -> bool:
        kind, parts = found["kind"].lower(), found.groupdict()
        known = kind in KINDS or kind in _SETS or kind in _TITLED
        self._fences.append((found["fence"], kind if known else ""))
        if known and kind not in _SETS:
            self._write(indent, kind, (parts.get("title") or parts.get("words") or "").strip())
        return known

    def _write(self, indent: str, kind: str, title: str) -> None:
        kind = kind.lower()
        said = label(kind if kind in KINDS else "", title or ("" if kind in _TITLED else kind.capitalize()))
        if not said:
            return
        self._part()
        self.lines += [f"{indent}**{said}**", ""]

    def _part(self) -> None:
        """Write a blank line, unless there is one."""
        if self.lines and self.lines[-1].strip():
            self.lines.append("")

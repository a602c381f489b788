"""What raw Markdown says to its generator alone: lists of attributes, icons, places of contents, files to include, scripts, styles.

`# Title { #id .class }`, `{: .note }`, `:material-check:`, `[TOC]`, `--8<-- "file"`, `<<< @/file`, `<script setup>`.
"""

from __future__ import annotations

import re

from app.text.fences import blocks, outside_code
from ingestion.convert.pairs import without

INCLUDES = "text that its pages include from other files (--8<--, <<<, include) is missing"
"""The note of a page with such text."""

_ITEM = r"(?:[#.][\w:.-]++|[\w:-]++=(?:\"[^\"\n]*+\"|'[^'\n]*+'|[^\s{}\"']++)|[ \t]++)"
_LIST = rf"\{{:?[ \t]*+(?=[#.]|[\w:-]++=){_ITEM}++\}}"
_AT_END = re.compile(rf"(?<=\S)[ \t]*(?P<list>{_LIST})[ \t]*+$")
_ALONE = re.compile(rf"[ \t>]*+(?P<list>{_LIST}|\{{::?[^{{}}\n]++\}})[ \t]*+$")
_BEHIND = re.compile(rf"(?<=[)\]*_>:\x00])(?:{_LIST}|\{{:[^{{}}\n]++\}})")
_BEFORE = re.compile(rf"(?<=[|*+-] ){_LIST}[ \t]*+(?=\S)")
_ID = re.compile(r"(?:#([\w:.-]++)|\bid=[\"']?([\w:.-]++))")
_ICON = re.compile(r"(?<![\w:]):(?:material|octicons|fontawesome|simple)-[a-z0-9-]++:(?:[ \t]++(?=\S))?")
_CONTENTS = re.compile(r"(?mi)^[ \t]*+(?:\[TOC\]|\[\[_?toc_?\]\])[ \t]*+$\n?")
_SNIPPET = r"[ \t]*+(?:;?-{1,10}8<-{1,10}[^\n]*+|<<<[ \t]*+[@./][^\n]*+)"
_INCLUDE = re.compile(rf"(?m)^(?:{_SNIPPET}|[ \t]*+<!--[ \t]*+@include:[^\n>]*+-->|\{{\*[^*\n]++\*\}})[ \t]*+$\n?")
_INCLUDED_CODE = re.compile(rf"[^\n]*+\n(?:{_SNIPPET}\n)++[ \t>]*+[`~]{{3,}}\s*+$")
_ELSEWHERE = re.compile(
    r"(?m)\{\{[<%][ \t]*+(?:include|readfile)\b|^[ \t>]*+(?:`{3,}|~{3,}|:{3,})\{(?:literal)?include\}"
)
_SCRIPT, _SCRIPT_END = (
    re.compile(r"(?mi)^[ \t]*+<(?:script|style|iframe)\b[^<>]*+>"),
    re.compile(r"(?i)</(?:script|style|iframe)\s*+>"),
)
_GENERATED = re.compile(r"(?m)^:::[ ]++[A-Za-z_]\w*+(?:\.\w++)++[ \t]*+\n(?:(?:[ ]{4}[^\n]*+|[ \t]*+)\n)*+")
_SIGNS = (
    "{",
    ":material",
    ":octicons",
    ":fontawesome",
    ":simple",
    "8<",
    "<<<",
    "@include",
    "[TOC]",
    "[[",
    "[toc]",
    "<s",
    "<S",
    "<iframe",
    ":::",
)


def missing_text(text: str) -> str:
    """The note of a page that includes other files by shortcodes or directives; empty for others."""
    return INCLUDES if _ELSEWHERE.search(text) else ""


def clean_attributes(text: str) -> tuple[str, str]:
    """(the Markdown without it, a note about text that is missing); ids of headings stay as ` {#id}` at their end."""
    if not any(sign in text for sign in _SIGNS):
        return text, ""
    kept: list[str] = []
    missing = False
    for code, piece in blocks(text):
        cut = "" if code and _INCLUDED_CODE.match(piece) else piece if code else _INCLUDE.sub("", piece)
        missing |= cut != piece
        kept.append(cut)
    return outside_code("".join(kept), _clean), INCLUDES if missing else ""


def _clean(prose: str) -> str:
    prose = _CONTENTS.sub("", without(_GENERATED.sub("", prose), _SCRIPT, _SCRIPT_END))
    if "{" in prose:
        prose = _without_lists(prose)
    return _ICON.sub("", prose) if ":" in prose else prose


def _without_lists(prose: str) -> str:
    lines: list[str] = []
    for line in prose.split("\n"):
        heading = (lines[-1] if lines else "").startswith("#")
        if "{" not in line:
            lines.append(line)
        elif alone := _ALONE.match(line):
            if heading and lines[-1][-1:] != "}":
                lines[-1] += _id(alone["list"])
        elif at_end := _AT_END.search(line):
            kept = _within(line[: at_end.start()])
            lines.append(kept + _id(at_end["list"]) if line.startswith("#") else kept)
        else:
            lines.append(_within(line))
    return "\n".join(lines)


def _within(line: str) -> str:
    return _BEFORE.sub("", _BEHIND.sub("", line))


def _id(attributes: str) -> str:
    """The mark of a heading's anchor, if the attributes have one."""
    named = _ID.search(attributes)
    return f" {{#{named[1] or named[2]}}}" if named else ""

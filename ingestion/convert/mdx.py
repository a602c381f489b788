"""MDX -> Markdown: removes imports, exports, comments and JSX tags, and keeps the text between them."""

from __future__ import annotations

import re

from app.text.fences import blocks, outside_code
from ingestion.convert.admonitions import component_kind, label
from ingestion.convert.pairs import without

_ESM = re.compile(r"(?m)^(?:import\s+(?:[\w{*\"'])|export\s+(?:default|const|let|var|function|async|class|\{|\*))")
_COMMENT, _COMMENT_END = re.compile(r"\{\s*+/\*"), re.compile(r"\*/\s*+\}")
_BLANK = re.compile(r"\{\s*+([\"'`])[ \t]*+\1\s*+\}")
_TAG = re.compile(r"(?:(?<![\w\\])<|</)([A-Z][\w.]*+)(?=[\s/>])|(?<!\w)</?>")
_LABEL = re.compile(r"""\b(?:title|label|value)=(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`]*)["'`]\s*\})""")
_OPENS = re.compile(r"\A<([A-Z][\w.]*+)(?![^\n]*(?:/>|</\1\s*+>)\s*+$)")
_CLOSES = re.compile(r"\A[^<\n]*+</[A-Z][\w.]*+\s*+>\s*+$")
_MAX_PASSES = 10
"""How many times a text may be scanned for the missing ends of tags and statements."""

_PAIRS = {"{": "}", "[": "]", "(": ")"}
# letter by letter, a long page would take ten times as long
_STATEMENT_SIGN = re.compile(r"\\.|[\"'`{}\[\]()\n]", re.DOTALL)
_TAG_SIGN = re.compile(r"[\"'`{}>]")


def clean_mdx(text: str) -> str:
    """The text as plain Markdown; code blocks and code spans are untouched."""
    return outside_code(_dedent(text), _clean)


def _dedent(text: str) -> str:
    """Remove the indentation of components' children, which Markdown would read as code."""
    kept: list[str] = []
    levels: list[int | None] = []  # of each open component: how far its children stand to its right
    own: list[int] = []
    inside = 0  # the sum of the known levels
    for code, piece in blocks(text):
        for line in piece.splitlines(keepends=True):
            body = line.lstrip(" \t")
            indent = len(line) - len(body)
            closes = not code and bool(levels) and _CLOSES.match(body) is not None and not _OPENS.match(body)
            if body.strip() and levels and levels[-1] is None and not closes:
                deeper = levels[-1] = max(0, indent - own[-1])
                inside += deeper
            kept.append(line[min(indent, inside) :])
            if closes:
                inside -= levels.pop() or 0
                own.pop()
            elif not code and _OPENS.match(body):
                levels.append(None)
                own.append(indent)
    return "".join(kept)


def _clean(prose: str) -> str:
    return re.sub(
        r"\n(?:[ \t]*+\n){2,}+",
        "\n\n",
        _drop_tags(_BLANK.sub(" ", without(_drop_modules(prose), _COMMENT, _COMMENT_END))),
    )


def _drop_modules(prose: str) -> str:
    """Without import and export statements, each up to the line on which its brackets are closed."""
    kept, at = list[str](), 0
    budget = _MAX_PASSES * len(prose)
    while budget > 0 and (match := _ESM.search(prose, at)):
        kept.append(prose[at : match.start()])
        at = _statement_end(prose, match.start())
        if at < 0:  # a statement that never closes ends with its line, so that the rest of the page stays
            budget -= len(prose) - match.start()
            at = _line_end(prose, match.start())
    return "".join([*kept, prose[at:]])


def _statement_end(text: str, start: int) -> int:
    """The end of the line that closes all brackets; -1 when there is none."""
    open_brackets, quote = list[str](), ""
    for found in _STATEMENT_SIGN.finditer(text, start):
        char = found[0] if quote else found[0][-1]  # a backslash protects a sign only in a string
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char == "\n" and not open_brackets:
            return found.end()
    return len(text) if not (quote or open_brackets) else -1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _drop_tags(prose: str) -> str:
    kept, at = list[str](), 0
    budget = _MAX_PASSES * len(prose)
    while budget > 0 and (match := _TAG.search(prose, at)):
        end = _tag_end(prose, match.end() - (1 if match[0].endswith(">") else 0))
        if end < 0:  # no tag at all: a lone "<Name"
            budget -= len(prose) - match.end()
            kept.append(prose[at : match.end()])
            at = match.end()
            continue
        tag = prose[match.start() : end]
        kept.append(prose[at : match.start()])
        if text := _label(tag, match[1] or ""):
            before = kept[-1].rstrip(" ")
            kept += ["\n" if not before or before.endswith("\n") else "", f"**{text}**\n\n"]
        at = end
    return "".join([*kept, prose[at:]])


def _tag_end(text: str, at: int) -> int:
    """Where the tag ends, quotes and braces in its attributes respected; -1 when it doesn't."""
    depth, quote = 0, ""
    for found in _TAG_SIGN.finditer(text, at):
        char = found[0]
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in "{}":
            depth += 1 if char == "{" else -1
        elif depth <= 0:
            return found.end()
    return -1


def _label(tag: str, name: str) -> str:
    """What a reader sees of a component's attributes: the kind and title of a callout, the label of a tab."""
    if tag.startswith("</"):
        return ""
    match = _LABEL.search(tag)
    title = next((group for group in match.groups() if group), "") if match else ""
    return label(component_kind(name, tag), title.strip())

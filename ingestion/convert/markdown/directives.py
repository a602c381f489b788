"""Directives of Markdown (admonitions, tabs, MyST) -> the bold lines that those of HTML get, and the text that readers see."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from app.text.blocks import blocks, code_spans
from ingestion.convert.html.boxes import KINDS, label

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
        if match := _INDENTED.match(bare) or _TAB.match(bare):
            self._columns.append(len(indent) + _WIDTH * (len(self._columns) + 1))
        elif match := _ALERT.match(bare):
            self._quote = True
        elif match := _CLOSING.match(bare):
            return self._closes(match["fence"])
        elif match := _COLONS.match(bare) or _SLASHES.match(bare):
            return self._opens(match, indent)
        elif not (self._fences and self._fences[-1][1] == "tabs" and (match := _PANE.match(bare))):
            return False
        parts = match.groupdict()
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


_OPENING = re.compile(
    r"(?P<indent>[ \t>]*+)(?P<fence>`{3,}|~{3,}|:{3,})[ \t]*+\{(?P<name>[A-Za-z][\w:.+-]*+)\}[ \t]*+(?P<words>[^\n]*+)$"
)
_FENCE = re.compile(r"[ \t]*+(?:>[ \t]?+|(?:[-*+]|\d++[.)])[ \t]++)*+(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_OPTION = re.compile(r"[ \t]*+:(?P<name>[\w-]++):[ \t]*+(?P<value>[^\n]*+)$")
_TARGET = re.compile(r"(?m)^[ \t]*+\((?P<label>[\w:./ -]++)\)=[ \t]*+$\n?")
_NAMED = re.compile(
    r"(?m)^[ \t]*+\((?P<label>[\w:./ -]++)\)=[ \t]*+\n(?:[ \t]*+\n)*+(?P<heading>#{1,6} [^\n]*+[^\s}])[ \t]*+$"
)
_BLANK = re.compile(r"\n(?:[ \t]*+\n){2,}+")
_BREAK = re.compile(r"(?m)^\+\+\+(?:[ \t][^\n]*+)?$\n?")
_COMMENT = re.compile(r"(?m)^%[ \t][^\n]*+$\n?")
_ROLE = re.compile(r"\{(?P<role>[A-Za-z][\w:.+-]*+)\}$")
_LONGEST_ROLE = 60
_AIMED = re.compile(r"(?P<text>[^<>]*[^<>\s])[ \t\n]*<(?P<target>[^<>]+)>$")
_SIGN = re.compile(
    r"(?m)^[ \t>]*+(?:`{3,}|~{3,}|:{3,})[ \t]*+\{[A-Za-z]|^[ \t]*+\([\w:./ -]++\)=[ \t]*+$|\{[a-z][\w:.+-]*+\}`"
)

_CODE = frozenset(
    {"code", "code-block", "sourcecode", "code-cell", "parsed-literal", "prompt", "doctest", "testcode", "console"}
)
_LANGUAGES = frozenset(
    {"python", "r", "julia", "bash", "sh", "sql", "ojs", "mermaid", "eval-rst", "csv-table", "graphviz"}
)
_DROPPED = frozenset({"toctree", "toc", "contents", "tableofcontents", "index", "bibliography", "raw", "currentmodule", "highlight",
                      "iframe", "include", "literalinclude", "image", "py-script"})  # fmt: skip
_WITH_TITLE = frozenset(
    {
        "admonition",
        "dropdown",
        "card",
        "tab-item",
        "grid-item-card",
        "topic",
        "sidebar",
        "rubric",
        "table",
        "list-table",
    }
)
_SPOKEN = {"versionadded": "Added in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
           "seealso": "See also"}  # fmt: skip
"""As Sphinx writes them."""
_PLAIN = frozenset(
    {
        "ref",
        "doc",
        "term",
        "numref",
        "eq",
        "any",
        "download",
        "abbr",
        "cite",
        "kbd",
        "sub",
        "sup",
        "button-link",
        "button-ref",
    }
)
_LINKED = frozenset({"doc", "download"})
_STRONG = frozenset({"guilabel", "menuselection", "strong"})
_SILENT = frozenset({"octicon", "fas", "fab", "far", "index", "material-regular", "material-outlined"})
_DEEPEST, _NEAR = 12, 3


def clean_myst(text: str) -> str:
    """The Markdown without MyST; code stays as it is.

    ```` ```{note} ````, `:::{tab-item} Title`, `` {ref}`text <label>` ``, `(label)=`, `+++`.
    """
    if not _SIGN.search(text):
        return text
    text = "\n".join(_rendered(text.split("\n"), 0))
    return "".join(piece if code else _prose(piece) for code, piece in blocks(text))


@dataclass(frozen=True, slots=True)
class _Directive:
    indent: str
    name: str
    words: str
    body: Sequence[str]

    @property
    def options(self) -> tuple[dict[str, str], Sequence[str]]:
        """(options, the body without them)."""
        options: dict[str, str] = {}
        body = list(self.body)
        if body and body[0].strip() == "---":
            end = next((at for at in range(1, len(body)) if body[at].strip() == "---"), 0)
            return options, body[end + 1 :]
        while body and (match := _OPTION.match(body[0])):
            options[match["name"]] = match["value"].strip()
            body.pop(0)
        return options, body


def _rendered(lines: Sequence[str], depth: int) -> Iterator[str]:
    at = 0
    while at < len(lines):
        line = lines[at]
        opening = _OPENING.match(line) if "{" in line else None
        fence = _FENCE.match(line) if opening is None and ("```" in line or "~~~" in line) else None
        if opening is None and fence is None:
            yield line
            at += 1
            continue
        end = _end(lines, at + 1, (opening or fence)["fence"], (opening or fence).start("fence"))  # type: ignore[index, union-attr]
        if opening is None or depth > _DEEPEST:
            yield from lines[at : end + 1]
        else:
            indent = opening["indent"]
            body = [inner.removeprefix(indent) for inner in lines[at + 1 : end]]
            directive = _Directive(indent, opening["name"].lower(), opening["words"].strip(), body)
            yield from (f"{indent}{shown}".rstrip() for shown in ["", *_shown(directive, depth), ""])
        at = end + 1


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _end(lines: Sequence[str], start: int, fence: str, indent: int) -> int:
    """The line that closes a fence that stands so far to the right, or the end of all lines."""
    for at in range(start, len(lines)):
        bare = lines[at].strip(" \t>")
        if len(bare) >= len(fence) and not bare.strip(fence[0]) and _indent(lines[at]) <= indent + _NEAR:
            return at
    return len(lines)


def _shown(one: _Directive, depth: int) -> Iterator[str]:
    options, body = one.options
    name = one.name.rpartition(":")[2] if not one.name.startswith("eval") else one.name
    if name in _CODE or name in _LANGUAGES:
        yield from _code(name, one.words, options, body)
    elif name in ("figure", "image", "figure-md"):
        address = one.words if name != "figure-md" else ""
        yield from [f"![{options.get('alt', '')}]({address})", ""] if address else []
        yield from _rendered(body, depth + 1)
    elif name == "math":
        yield from ["$$", *([one.words] if one.words else []), *body, "$$"]
    elif name not in _DROPPED and not name.startswith("auto"):
        said = _title(one, name)
        yield from [f"**{said}**", ""] if said else []
        yield from _rendered(body, depth + 1)


def _title(one: _Directive, name: str) -> str:
    if name in _SPOKEN:
        return f"{_SPOKEN[name]} {one.words}".strip()
    if name in KINDS:
        return label(name, one.words or name.capitalize())
    if ":" in one.name:  # an object of an API: py:function
        return f"`{one.words}`" if one.words else ""
    return one.words if name in _WITH_TITLE else ""


def _code(name: str, words: str, options: dict[str, str], body: Sequence[str]) -> Iterator[str]:
    title = options.get("caption") or options.get("filename") or ""
    yield from [f"**{title}**", ""] if title else []
    language = (
        words.split(maxsplit=1)[0] if words and name in _CODE else "" if name in _CODE else name.removeprefix("eval-")
    )
    text = "\n".join(body).strip("\n")
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield from [f"{fence}{language}", *text.split("\n"), fence]


def _prose(text: str) -> str:
    text = _BREAK.sub("", _COMMENT.sub("", _NAMED.sub(_with_label, text)))
    text = _BLANK.sub("\n\n", _TARGET.sub("", text))
    parts, at = list[str](), 0
    for start, end in code_spans(text):
        before = text[max(at, start - _LONGEST_ROLE) : start]
        if role := _ROLE.search(before):
            parts += [text[at : start - len(role[0])], _said(role["role"].lower(), text[start:end].strip("`").strip())]
        else:
            parts.append(text[at:end])
        at = end
    return "".join([*parts, text[at:]])


def _with_label(found: re.Match[str]) -> str:
    """The heading with the anchor that Sphinx makes of its label."""
    name = re.sub(r"[^a-z0-9]+", "-", found["label"].lower()).strip("-")
    return f"{found['heading']} {{#{name}}}"


def _said(role: str, text: str) -> str:
    """Returns the text that readers see of a role."""
    domain, _, name = role.rpartition(":")
    aimed = _AIMED.match(text)
    shown = aimed["text"] if aimed else text
    if name in _SILENT:
        return ""
    if name in _LINKED:
        target = (aimed["target"] if aimed else text).removesuffix(".md")
        shown = shown if aimed else target.rpartition("/")[2]
        return shown if target.startswith("/") or "://" in target else f"[{shown}]({target})"
    if name in _STRONG:
        return f"**{shown}**"
    if name == "math":
        return f"${shown}$"
    if name in _PLAIN or name.startswith(("bdg", "sub-")) or (aimed and not domain):
        return shown if aimed or name not in ("ref", "numref") else re.sub(r"[-_:]+", " ", shown)
    return f"`{shown.rpartition('.')[2] if shown.startswith('~') else shown}`"

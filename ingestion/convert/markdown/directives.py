"""Directives of Markdown (admonitions, tabs, MyST) -> the bold lines that those of HTML get, and the text that readers see.

```` ```{note} ````, `:::{tab-item} Title`, `::: tip`, `:::note[Title]`, `/// note | Title`, `!!! note "Title"`, `=== "Tab"`,
`> [!NOTE]`; of MyST, also `` {ref}`text <label>` ``, `(label)=` and `+++`.
"""

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.text.blocks import blocks, closes, code_spans, fenced, outside_fences
from ingestion.convert.document import KINDS
from ingestion.convert.html.boxes import label

_OPENING = re.compile(
    r"(?P<indent>[ \t>]*+)(?P<fence>`{3,}|~{3,}|:{3,})[ \t]*+\{(?P<name>[A-Za-z][\w:.+-]*+)\}[ \t]*+(?P<words>[^\n]*+)$"
)
_COLONS = re.compile(
    r"(?P<indent>[ ]*+)(?P<fence>:{3,})[ ]*(?P<kind>[A-Za-z][\w-]*)(?:\[(?P<title>.*)\]|[ ]+(?P<words>[^\n{].*))?(?:[ ]*\{[^{}]*\})?[ ]*$"
)
_SLASHES = re.compile(r"(?P<indent>[ ]*+)(?P<fence>/{3,})[ ]+(?P<kind>[A-Za-z][\w-]*)(?:[ ]*+\|(?P<title>.*))?$")
_INDENTED = re.compile(
    r"(?P<indent>[ ]*+)(?:(?:!!!|\?\?\?\+?)[ ]*(?P<kind>[\w-]+)(?:[ ]+[\w-]+)*(?:[ ]+\"(?P<title>[^\"\n]*)\")?|"
    r"===[!+]*[ ]+\"(?P<tab>[^\"\n]+)\")[ ]*$"
)
_ALERT = re.compile(r"(?P<indent>[ ]*+)>[ ]?\[!(?P<kind>[A-Za-z]+)\][+-]?[ ]*(?P<title>.*)$")
_PANE = re.compile(r"(?m)^[ ]*+==[ ]+(\S.*)$")  # vitepress-plugin-tabs
_FENCE = re.compile(r"[ \t]*+(?:>[ \t]?+|(?:[-*+]|\d++[.)])[ \t]++)*+(?P<fence>`{3,}(?=[^`]*$)|~{3,})")
_CLOSING = re.compile(r":{3,}|/{3,}")
_SETS = frozenset({"code-group", "tabs", "tab-set", "raw", "v-pre"})
_TITLED = frozenset({"details", "tab", "tab-item", "dropdown"})
_SIGNS = ("!!!", "???", "===", ":::", "///", "[!")
_WIDTH = 4
_OPTION = re.compile(r"[ \t]*+:(?P<name>[\w-]++):[ \t]*+(?P<value>[^\n]*+)$")
_TARGET = re.compile(r"(?m)^[ \t]*+\((?P<label>[\w:./ -]++)\)=[ \t]*+$\n?")
_NAMED = re.compile(
    r"(?m)^[ \t]*+\((?P<label>[\w:./ -]++)\)=[ \t]*+\n(?:[ \t]*+\n)*+(?P<heading>#{1,6} [^\n]*+[^\s}])[ \t]*+$"
)
_BLANK = re.compile(r"(\A|\n)(?:[ \t]*+\n){2,}+")
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
_WITH_TITLE = frozenset({
    "admonition", "dropdown", "card", "tab-item", "grid-item-card", "topic", "sidebar", "rubric", "table",
    "list-table"
})  # fmt: skip
_SPOKEN = {"versionadded": "Added in version", "versionchanged": "Changed in version", "deprecated": "Deprecated since version",
           "seealso": "See also"}  # fmt: skip
"""As Sphinx writes them."""
_PLAIN = frozenset({
    "ref", "doc", "term", "numref", "eq", "any", "download", "abbr", "cite", "kbd", "sub", "sup", "button-link",
    "button-ref"
})  # fmt: skip
_LINKED = frozenset({"doc", "download"})
_SILENT = frozenset({"octicon", "fas", "fab", "far", "index", "material-regular", "material-outlined"})
_DEEPEST, _NEAR = 12, 3


def clean_directives(text: str) -> str:
    """The Markdown with the content of each directive in its place, below its bold line; code stays as it is."""
    is_myst = _SIGN.search(text) is not None
    if not is_myst and not any(sign in text for sign in _SIGNS):
        return text
    text = "\n".join(_rendered(text.split("\n"), 0))
    return "".join(
        piece if code else _BLANK.sub(r"\1\n", _prose(piece) if is_myst else piece) for code, piece in blocks(text)
    )


@dataclass(frozen=True, slots=True)
class _Directive:
    """A directive of MyST with its words, or another one with what is `said` above its body."""

    indent: str
    name: str
    words: str
    body: Sequence[str]
    said: str | None = None

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
        end, directive = _block(lines, at)
        if directive is None or depth > _DEEPEST:
            yield from lines[at:end]
        else:
            for shown in ["", *_shown(directive, depth), ""]:  # blanks at the end of a line break it
                yield directive.indent + shown if shown.strip() else directive.indent.rstrip()
        at = end


def _block(lines: Sequence[str], at: int) -> tuple[int, _Directive | None]:
    """(the line after it, the directive that begins in this line); None for code, as a whole, and for any other line."""
    line = lines[at]
    if opening := _OPENING.match(line) if "{" in line else None:
        end, body = _fenced_body(lines, at, opening)
        return end, _Directive(opening["indent"], opening["name"].lower(), opening["words"].strip(), body)
    if fence := _FENCE.match(line) if "```" in line or "~~~" in line else None:
        return _end(lines, at + 1, fence["fence"]) + 1, None
    if opening := _COLONS.match(line) or _SLASHES.match(line):
        parts, kind = opening.groupdict(), opening["kind"].lower()
        said = "" if kind in _SETS else _said_above(kind, parts["title"] or parts.get("words") or "")
        if kind not in KINDS | _SETS | _TITLED:
            return at + 1, None
        end, body = _fenced_body(lines, at, opening)
    elif opening := _INDENTED.match(line):
        kind, said = "", opening["tab"] or _said_above(opening["kind"].lower(), opening["title"] or "")
        end, body = _indented(lines, at + 1, len(opening["indent"]) + _WIDTH)
    elif opening := _ALERT.match(line):
        kind, said = "", _said_above(opening["kind"].lower(), opening["title"])
        end = next((n for n in range(at + 1, len(lines)) if not lines[n].lstrip(" ").startswith(">")), len(lines))
        body = [inner.lstrip(" ")[1:].removeprefix(" ") for inner in lines[at + 1 : end]]
    else:
        return at + 1, None
    return end, _Directive(opening["indent"], kind, "", body, said)


def _said_above(kind: str, title: str) -> str:
    title = title.strip().strip('"') or ("" if kind in _TITLED else kind.capitalize())
    return label(kind if kind in KINDS else "", title)


def _indented(lines: Sequence[str], start: int, width: int) -> tuple[int, list[str]]:
    """(the line after it, the body that is indented so far, without its indentation)."""
    body = list[str]()
    for line in lines[start:]:
        bare = line.lstrip(" \t")
        indent = len(line[: len(line) - len(bare)].expandtabs(_WIDTH))
        if bare and indent < width:
            break
        body.append(" " * max(0, indent - width) + bare)
    return start + len(body), body


def _fenced_body(lines: Sequence[str], at: int, opening: re.Match[str]) -> tuple[int, list[str]]:
    fence = opening["fence"]
    is_code = fence[0] in "`~"
    end = _end(lines, at + 1, fence, opening.start("fence")) if is_code else _outer_end(lines, at + 1, fence)
    return end + 1, [inner.removeprefix(opening["indent"]) for inner in lines[at + 1 : end]]


def _end(lines: Sequence[str], start: int, fence: str, indent: float = math.inf) -> int:
    """The line that closes a fence of code, about as far to the right where that is given, or the end of all lines."""
    for at in range(start, len(lines)):
        own = len(lines[at]) - len(lines[at].lstrip(" "))
        if own <= indent + _NEAR and closes(lines[at], fence):
            return at
    return len(lines)


def _outer_end(lines: Sequence[str], start: int, fence: str) -> int:
    """The line that closes a fence of colons or slashes, which may hold others of the same length, or the end of all lines."""
    around, at = [fence], start
    while at < len(lines):
        opening = _OPENING.match(lines[at]) or _COLONS.match(lines[at]) or _SLASHES.match(lines[at])
        if opening and len(around) <= _DEEPEST:
            around.append(opening["fence"])
        elif code := _FENCE.match(lines[at]):
            at = _end(lines, at + 1, code["fence"])
        elif bare := _CLOSING.fullmatch(lines[at].strip(" \t>")):
            longer = [n for n, opened in enumerate(around) if bare[0].startswith(opened)]
            same = [n for n in longer if bare[0] == around[n]]
            del around[(same or longer or [len(around)])[-1] :]
            if not around:
                return at
        at += 1
    return len(lines)


def _shown(one: _Directive, depth: int) -> Iterator[str]:
    if one.said is not None:
        panes = outside_fences("\n".join(one.body), lambda prose: _PANE.sub(r"\n**\1**\n", prose))
        yield from [f"**{one.said}**", ""] if one.said else []
        yield from _rendered(panes.split("\n") if one.name == "tabs" else one.body, depth + 1)
        return
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
    language = words.partition(" ")[0] if name in _CODE else name.removeprefix("eval-")
    yield from fenced("\n".join(body).strip("\n"), language).split("\n")


def _prose(text: str) -> str:
    text = _BREAK.sub("", _COMMENT.sub("", _NAMED.sub(_with_label, text)))
    text = _TARGET.sub("", text)
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
    name = re.sub(r"[^a-z0-9]+", "-", found["label"].lower()).strip("-")
    return f"{found['heading']} {{#{name}}}"


def _said(role: str, text: str) -> str:
    domain, _, name = role.rpartition(":")
    aimed = _AIMED.match(text)
    shown = aimed["text"] if aimed else text
    if name in _SILENT:
        return ""
    if name in _LINKED:
        target = (aimed["target"] if aimed else text).removesuffix(".md")
        shown = shown if aimed else target.rpartition("/")[2]
        return shown if target.startswith("/") or "://" in target else f"[{shown}]({target})"
    if name in ("guilabel", "menuselection", "strong"):
        return f"**{shown}**"
    if name == "math":
        return f"${shown}$"
    if name in _PLAIN or name.startswith(("bdg", "sub-")) or (aimed and not domain):
        return shown if aimed or name not in ("ref", "numref") else re.sub(r"[-_:]+", " ", shown)
    return f"`{shown.rpartition('.')[2] if shown.startswith('~') else shown}`"

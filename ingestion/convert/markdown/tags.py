"""Tags in Markdown: HTML becomes Markdown, those of components and of MDX go, and the text between them stays."""

import html
import re
import textwrap
from collections.abc import Callable, Sequence

import html_to_markdown
import lxml.html
from lxml.etree import LxmlError
from lxml.html import HtmlElement
from lxml.html.builder import E

from app.text.blocks import blocks, outside_code, outside_fences
from ingestion.convert.html.blocks import rebuild_code, write_cells, write_definitions
from ingestion.convert.html.boxes import component_kind, label
from ingestion.convert.html.dom import POWER, class_names, escape_marked, mark_text, power
from ingestion.convert.html.hidden import drop_hidden, unseen
from ingestion.convert.html.styles import Rule, rules_of

Change = Callable[[re.Match[str], re.Match[str]], str | None]
"""Returns the replacement for the text from opening to closing, or None to keep it."""


def replaced(text: str, opening: re.Pattern[str], closing: re.Pattern[str], change: Change) -> str:
    """The text with each opening changed, together with all up to the next closing.

    It is what a pattern `opening.*?closing` finds, which takes quadratic time where many openings are never closed.
    """
    pieces, at, begin = list[str](), 0, 0
    end: re.Match[str] | None = None
    while start := opening.search(text, begin):
        if end is None or end.start() < start.end():
            end = closing.search(text, start.end())
        if end is None:
            break
        replacement = change(start, end)
        begin = start.end()
        if replacement is not None:
            pieces += [text[at : start.start()], replacement]
            at = begin = end.end()
    return "".join([*pieces, text[at:]])


def without(text: str, opening: re.Pattern[str], closing: re.Pattern[str]) -> str:
    """The text without openings, the closings that follow them, and all between."""
    return replaced(text, opening, closing, lambda *_: "")


def between(opening: re.Match[str], closing: re.Match[str]) -> str:
    """The text between the two."""
    return opening.string[opening.end() : closing.start()]


_OPTIONS = html_to_markdown.ConversionOptions(extract_metadata=False, compact_tables=True, br_in_tables=True)
_TABLE = re.compile(r"(?im)^[ \t]*+<(?:table|dl)\b")
_TABLE_END = re.compile(r"(?i)</(?:table|dl)\s*+>")
_SUMMARY = re.compile(r"(?i)(?<!\s)\s*+(?:<details\b[^<>]*+>\s*+)?<summary\b[^<>]*+>([^<>]*+)</summary\s*+>\s*+")
_DETAILS = re.compile(r"(?i)(?<![ \t])[ \t]*+</?details\b[^<>]*+>[ \t]*+")
_LINK = re.compile(r"(?i)<a\b[^<>]*+>")
_LINK_END = re.compile(r"(?i)</a\s*+>")
_TARGET = re.compile(r"""(?i)\bhref\s*+=\s*+["']([^"']++)["']""")
_DRESSING = re.compile(r"(?<!\\)</?(?:ins|u|font|center|div|span|section|p|small|big|a)\b[^<>]*+>", re.IGNORECASE)
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile("-->")
_TAG = re.compile(
    r"(?<!\\)<(?P<close>/?)(?P<name>[a-z][a-z0-9]*+|[A-Z][A-Z0-9]*+)(?P<rest>(?:\s(?:[^<>\"']|\"[^\"<]*+\"|'[^'<]*+')*+)?+)>"
)
_STYLE, _STYLE_END = re.compile(r"(?i)<style\b[^<>]*+>"), re.compile(r"(?i)</style\s*+>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ANCHOR = re.compile(r"""<a\s++(?:id|name)\s*+=\s*+["'][^"'<>]++["']\s*+/?>(?:\s*+</a>)?""", re.IGNORECASE)


def rules_in(text: str) -> list[Rule]:
    """The rules of the Markdown's style elements, outside of code."""
    sheets: list[tuple[str, str]] = []

    def note(opening: re.Match[str], closing: re.Match[str]) -> None:
        sheets.append((between(opening, closing), ""))

    if _STYLE.search(text):
        outside_code(text, lambda prose: replaced(prose, _STYLE, _STYLE_END, note))
    return rules_of(sheets)


def clean_html(text: str, rules: Sequence[Rule] = ()) -> str:
    """The Markdown without HTML comments and what its attributes and these `rules` hide; HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: without(prose, _COMMENT, _COMMENT_END))
    text = outside_code(text, lambda prose: _without_hidden(prose, rules))
    text = outside_fences(text, lambda prose: replaced(prose, _TABLE, _TABLE_END, _table))
    return outside_code(text, _inline)


def _without_hidden(prose: str, rules: Sequence[Rule]) -> str:
    """The prose without what no reader can see; an element that isn't closed in it stays."""
    if "<" not in prose:
        return prose
    open_tags: dict[str, list[re.Match[str]]] = {}
    closed: dict[HtmlElement, tuple[int, int]] = {}
    page = E.body()
    for tag in _TAG.finditer(prose):
        opened = open_tags.setdefault(tag["name"].lower(), [])
        if not tag["close"]:
            opened.append(tag)
        elif opened:
            opening = opened.pop()
            if (opening["rest"].strip() or tag["name"] == "dialog") and (element := _element(opening)) is not None:
                page.append(element)
                closed[element] = opening.start(), tag.end()
    pieces, at = list[str](), 0
    for start, end in sorted(closed[element] for element in unseen(page, rules)) if closed else ():
        if start >= at:
            pieces.append(prose[at:start])
            at = end
    return "".join([*pieces, prose[at:]])


def _element(opening: re.Match[str]) -> HtmlElement | None:
    """An element with the attributes of the tag, and nothing in it."""
    try:
        element = lxml.html.fragment_fromstring(f"<div{opening['rest']}></div>")
    except (LxmlError, ValueError):
        return None
    element.tag = opening["name"].lower()
    return element


def _table(opening: re.Match[str], closing: re.Match[str]) -> str:
    table = opening[0] + between(opening, closing) + closing[0]
    tags = table.lower()
    if any(tags.count(f"<{tag}") != tags.count(f"</{tag}") for tag in ("table", "dl")):  # nested ones stay as they are
        return table
    indent = table[: table.index("<")]
    try:
        root = lxml.html.fragment_fromstring(table.lstrip(" \t"), create_parent="div")
    except (LxmlError, ValueError):  # not valid HTML
        return table
    drop_hidden(root)
    present = class_names(root)
    rebuild_code(root, present)
    write_definitions(root, present)
    write_cells(root)
    mark_text(root)
    converted = html_to_markdown.convert(lxml.html.tostring(root, encoding="unicode"), _OPTIONS).content or ""
    markdown = escape_marked(converted).strip()
    return "\n" + textwrap.indent(markdown, indent) + "\n" if markdown else table


def _link(opening: re.Match[str], closing: re.Match[str]) -> str | None:
    target = _TARGET.search(opening[0])
    return f"[{' '.join(between(opening, closing).split())}]({target[1]})" if target else None


def _inline(prose: str) -> str:
    if "details" in prose.lower():
        prose = _SUMMARY.sub(lambda found: f"\n\n**{' '.join(found[1].split())}**\n\n", prose)
        prose = _DETAILS.sub("", prose)
    prose = replaced(_ANCHOR.sub("", prose), _LINK, _LINK_END, _link)
    return _ENTITY.sub(_letter, _DRESSING.sub("", prose))


def _letter(match: re.Match[str]) -> str:
    """Decodes the entity. Those of ASCII stay: they are written because the character would be markup."""
    letter = html.unescape(match[0])
    return match[0] if letter.isascii() or letter == match[0] else letter.replace("\xa0", " ")


LONGEST_ADDRESS = 1000
"""Characters: a longer one holds encoded data, such as the program of a playground, which nobody searches or quotes."""

_FENCE = re.compile(
    r"(?P<indent>[ \t>]*+(?:(?:[-*+]|\d++[.)])[ \t]++)*+)(?P<fence>`{3,}+|~{3,}+)[ \t]*+"
    r"(?P<language>[A-Za-z][\w+#.-]*+)?(?P<rest>[^\n`]*+)$"
)
_MARKER = re.compile(r"[^\s>]")
_LABEL = re.compile(
    r"\[(?P<bracket>[^\[\]\n]++)\]|\b(?:title|file(?:name)?|name)=(?:\"(?P<double>[^\"\n]++)\"|'(?P<single>[^'\n]++)')"
)
_BRACES = r"\{(?:[^{}]|\{(?:[^{}]|\{[^{}]*+\})*+\})*+\}"
_COMPONENT = re.compile(
    rf"(?:(?<![\w\\])<|(?P<close></))(?P<name>[A-Z][\w.]*+)(?P<rest>(?=[\s/>])(?:[^<>\"'{{}}]|\"[^\"\n]*+\"|'[^'\n]*+'|{_BRACES})*+)>"
)
_CLOSING = re.compile(r"</([A-Z][\w.]*+)")
_BADGE = re.compile(
    r"(?:(?<![ \t])[ \t]++)?<(?P<tag>sup|span|i|em|small)\b(?=[^<>]*?\bclass=\"[^\"\n]*?badge)(?P<rest>[^<>]*+)>(?:(?P<said>[^<>\n]*+)</(?P=tag)>)?"
)
_TEXT = re.compile(r"\b(?:data-)?text=\"([^\"\n]++)\"")
_TITLE = re.compile(r"\b(?:title|label|value)=(?:\{\s*+)?([\"'`])([^\"'`\n]++)\1")
_ENCODED = re.compile(
    rf"!?\[([^\[\]\n]*+)\]\(<?(?:data:[^\s()<>]*+|[^\s()<>]{{{LONGEST_ADDRESS},}}+)>?(?:[ \t]++\"[^\"\n]*+\")?\)"
)


def clean_components(text: str) -> str:
    """The Markdown with nothing that only its generator understands; code stays as it is, but for the line of its fence."""
    text = "".join(_labelled(piece) if code else piece for code, piece in blocks(text))
    return outside_code(text, _clean)


def _labelled(block: str) -> str:
    """A fenced block whose fence says no more than its language; what it says for readers stands above it."""
    opening, _, rest = block.partition("\n")
    match = _FENCE.match(opening)
    if match is None or not match["rest"].strip():
        return block
    label = _LABEL.search(match["rest"])
    fence = f"{match['fence']}{match['language'] or ''}\n{rest}"
    if label is None:
        return match["indent"] + fence
    inner = _MARKER.sub(" ", match["indent"])
    return f"{match['indent']}**{next(filter(None, label.groups()))}**\n{inner.rstrip()}\n{inner}{fence}"


def _clean(prose: str) -> str:
    if "](" in prose:
        prose = _ENCODED.sub(r"\1", prose)
    if "<" not in prose:
        return prose
    prose = POWER.sub(lambda found: power(*found.groups()), prose)
    prose = _BADGE.sub(_unbadged, prose)
    closed = frozenset(_CLOSING.findall(prose))
    return _COMPONENT.sub(lambda found: _shown(found, closed), prose)


def _unbadged(found: re.Match[str]) -> str:
    """The words of a badge between parentheses; an attribute's words aren't part of the anchor of a heading."""
    attribute = _TEXT.search(found["rest"]) if not _line_before(found).startswith("#") else None
    said = (found["said"] or "").strip() or (attribute[1] if attribute else "")
    return f" ({said})" if said else ""


def _line_before(found: re.Match[str]) -> str:
    return found.string[found.string.rfind("\n", 0, found.start()) + 1 : found.start()]


def _shown(found: re.Match[str], closed: frozenset[str]) -> str:
    rest = found["rest"].strip()
    if found["name"].isupper() or not (rest or found["name"] in closed):
        return found[0]
    if said := _TEXT.search(rest):
        return f"({said[1]})"
    return _labels(found)


def _labels(found: re.Match[str]) -> str:
    """The kind and title of a callout, or the label of a tab, on a line of its own."""
    title = _TITLE.search(found["rest"])
    kind = component_kind(found["name"], found["rest"])
    text = "" if found["close"] else label(kind, title[2].strip() if title else "")
    goes_on = found.start() == 0 or _COMPONENT.sub("", _line_before(found)).strip()
    return ("\n" if goes_on else "") + f"**{text}**\n\n" if text else ""


_ESM = re.compile(
    r"(?m)^(?:import\s+[\w{*\"']|export\s+(?:default|const|let|var|function|async|class|\{|\*))[^\n]*+"
    r"(?:(?<=[\[{(])\n(?:(?![\]})])[^\n]*+\n){0,200}+[\]})][^\n]*+)?\n?"
)
"""A statement, and the lines up to the one that begins with the bracket that closes it."""

_JSX_COMMENT, _JSX_COMMENT_END = re.compile(r"\{\s*+/\*"), re.compile(r"\*/\s*+\}")
_BLANK = re.compile(r"\{\s*+([\"'`])[ \t]*+\1\s*+\}")
_FRAGMENT = re.compile(r"(?<!\w)</?>")
_OPENS = re.compile(r"\A<([A-Z][\w.]*+)(?![^\n]*(?:/>|</\1\s*+>)\s*+$)")
_CLOSES = re.compile(r"\A[^<\n]*+</[A-Z][\w.]*+\s*+>\s*+$")


def clean_mdx(text: str) -> str:
    """The text as plain Markdown; code blocks and code spans are untouched."""
    return outside_code(_dedent(text), _without_jsx)


def _dedent(text: str) -> str:
    """Remove the indentation of components' children, which Markdown would read as code."""
    lines: list[str] = []
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
            lines.append(line[min(indent, inside) :])
            if closes:
                inside -= levels.pop() or 0
                own.pop()
            elif not code and _OPENS.match(body):
                levels.append(None)
                own.append(indent)
    return "".join(lines)


def _without_jsx(prose: str) -> str:
    prose = _BLANK.sub(" ", without(_ESM.sub("", prose), _JSX_COMMENT, _JSX_COMMENT_END))
    prose = _FRAGMENT.sub("", _COMPONENT.sub(_labels, prose))
    return re.sub(r"\n(?:[ \t]*+\n){2,}+", "\n\n", prose)

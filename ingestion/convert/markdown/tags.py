"""Tags in Markdown: HTML becomes Markdown, those of components and of MDX go, and the text between them stays."""

import html
import re
import textwrap
from collections.abc import Callable

import html_to_markdown
import lxml.html
from lxml.etree import LxmlError

from app.text.blocks import blocks, outside_code, outside_fences
from ingestion.convert.html.blocks import rebuild_code, write_cells, write_definitions
from ingestion.convert.html.boxes import component_kind, label
from ingestion.convert.html.clean import SHOWN_ON_DEMAND
from ingestion.convert.html.dom import POWER, class_names, escape_marked, mark_text, power

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
_HIDDEN = re.compile(
    r"(?i)(?<!\\)<(?:div|section|aside|p|span)\b(?=[^<>]*+>)"
    r"[^<>]*?(?:\s(?:hidden|inert)(?=[\s=>])|style=[\"'](?:[^\"'<>]*?;)?\s*display\s*:\s*none\b)[^<>]*+>"
)
_HIDDEN_END = re.compile(r"(?i)</(?:div|section|aside|p|span)\s*+>")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ANCHOR = re.compile(r"""<a\s++(?:id|name)\s*+=\s*+["'][^"'<>]++["']\s*+/?>(?:\s*+</a>)?""", re.IGNORECASE)


def clean_html(text: str) -> str:
    """The Markdown without HTML comments, and with its HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: without(prose, _COMMENT, _COMMENT_END))
    text = outside_code(text, lambda prose: replaced(prose, _HIDDEN, _HIDDEN_END, _unseen))
    text = outside_fences(text, lambda prose: replaced(prose, _TABLE, _TABLE_END, _table))
    return outside_code(text, _inline)


def _unseen(opening: re.Match[str], _: re.Match[str]) -> str | None:
    """Nothing in place of text that no reader can see; what readers can open stays."""
    return None if "until-found" in opening[0] or SHOWN_ON_DEMAND.search(opening[0].replace('"', " ")) else ""


def _table(opening: re.Match[str], closing: re.Match[str]) -> str:
    """A table or a definition list as Markdown."""
    table = opening[0] + between(opening, closing) + closing[0]
    tags = table.lower()
    if any(tags.count(f"<{tag}") != tags.count(f"</{tag}") for tag in ("table", "dl")):  # nested ones stay as they are
        return table
    indent = table[: table.index("<")]
    try:
        root = lxml.html.fragment_fromstring(table.lstrip(" \t"), create_parent="div")
    except (LxmlError, ValueError):  # not valid HTML
        return table
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
_ATTRIBUTES = r"(?:[^<>\"']|\"[^\"\n]*+\"|'[^'\n]*+')*+"
_COMPONENT = re.compile(rf"(?<!\\)<(?P<close>/?)(?P<name>[A-Z][\w.]*+)(?P<rest>(?=[\s/>]){_ATTRIBUTES})>")
_CLOSING = re.compile(r"</([A-Z][\w.]*+)")
_BADGE = re.compile(
    rf"(?:(?<![ \t])[ \t]++)?<(?P<tag>sup|span|i|em|small)\b(?P<rest>{_ATTRIBUTES})>(?:(?P<said>[^<>\n]*+)</(?:sup|span|i|em|small)>)?"
)
_BADGE_CLASS = re.compile(r"\bclass=\"[^\"\n]*?badge")
_TEXT = re.compile(r"\b(?:data-)?text=\"([^\"\n]++)\"")
_TITLE = re.compile(r"\b(?:title|label)=\"([^\"\n]++)\"")
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
    prose = "\n".join(_unbadged(line) if "<" in line else line for line in prose.split("\n"))
    closed = frozenset(_CLOSING.findall(prose))
    return _COMPONENT.sub(lambda found: _shown(found, closed), prose)


def _unbadged(line: str) -> str:
    """The line with the words of badges between parentheses; a heading only with those that its anchor is made of too."""
    heading = line.startswith("#")

    def words(found: re.Match[str]) -> str:
        if not _BADGE_CLASS.search(found["rest"]):
            return found[0]
        if said := (found["said"] or "").strip():
            return f" ({said})"
        attribute = _TEXT.search(found["rest"])
        return f" ({attribute[1]})" if attribute and not heading else ""

    return _BADGE.sub(words, line)


def _shown(found: re.Match[str], closed: frozenset[str]) -> str:
    """Returns the text that readers see of a component's tag; an unclosed name without attributes is a placeholder."""
    rest = found["rest"].strip()
    if found["name"].isupper() or not (rest or found["name"] in closed):
        return found[0]
    if said := _TEXT.search(rest):
        return f"({said[1]})"
    title = _TITLE.search(rest)
    text = "" if found["close"] else label(component_kind(found["name"], rest), title[1] if title else "")
    return f"**{text}**\n\n" if text else ""


_ESM = re.compile(r"(?m)^(?:import\s+(?:[\w{*\"'])|export\s+(?:default|const|let|var|function|async|class|\{|\*))")
_JSX_COMMENT, _JSX_COMMENT_END = re.compile(r"\{\s*+/\*"), re.compile(r"\*/\s*+\}")
_BLANK = re.compile(r"\{\s*+([\"'`])[ \t]*+\1\s*+\}")
_TAG = re.compile(r"(?:(?<![\w\\])<|</)([A-Z][\w.]*+)(?=[\s/>])|(?<!\w)</?>")
_JSX_LABEL = re.compile(r"""\b(?:title|label|value)=(?:"([^"]*)"|'([^']*)'|\{\s*["'`]([^"'`]*)["'`]\s*\})""")
_OPENS = re.compile(r"\A<([A-Z][\w.]*+)(?![^\n]*(?:/>|</\1\s*+>)\s*+$)")
_CLOSES = re.compile(r"\A[^<\n]*+</[A-Z][\w.]*+\s*+>\s*+$")
_MAX_PASSES = 10
"""The greatest number of scans of a text for the missing ends of tags and statements."""

_PAIRS = {"{": "}", "[": "]", "(": ")"}
# letter by letter, a long page would take ten times as long
_STATEMENT_SIGN = re.compile(r"\\.|[\"'`{}\[\]()\n]", re.DOTALL)
_TAG_SIGN = re.compile(r"[\"'`{}>]")


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
    return re.sub(
        r"\n(?:[ \t]*+\n){2,}+",
        "\n\n",
        _drop_tags(_BLANK.sub(" ", without(_drop_modules(prose), _JSX_COMMENT, _JSX_COMMENT_END))),
    )


def _drop_modules(prose: str) -> str:
    """Without import and export statements, each up to the line on which its brackets are closed."""
    pieces, at = list[str](), 0
    budget = _MAX_PASSES * len(prose)
    while budget > 0 and (match := _ESM.search(prose, at)):
        pieces.append(prose[at : match.start()])
        at = _end_of(prose, match.start(), _STATEMENT_SIGN, "\n")
        if at < 0:  # a statement that never closes ends with its line, so that the rest of the page stays
            budget -= len(prose) - match.start()
            at = _line_end(prose, match.start())
    return "".join([*pieces, prose[at:]])


def _end_of(text: str, start: int, signs: re.Pattern[str], last: str) -> int:
    """The end of what is closed by the `last` sign outside of quotes and brackets; -1 when there is none."""
    open_brackets, quote = list[str](), ""
    for sign in signs.finditer(text, start):
        char = sign[0] if quote else sign[0][-1]  # a backslash protects a sign only in a string
        if quote:
            quote = "" if char == quote else quote
        elif char in "\"'`":
            quote = char
        elif char in _PAIRS:
            open_brackets.append(_PAIRS[char])
        elif open_brackets and char == open_brackets[-1]:
            open_brackets.pop()
        elif char == last and not open_brackets:
            return sign.end()
    return len(text) if last == "\n" and not (quote or open_brackets) else -1


def _line_end(text: str, start: int) -> int:
    end = text.find("\n", start)
    return len(text) if end < 0 else end + 1


def _drop_tags(prose: str) -> str:
    pieces, at = list[str](), 0
    budget = _MAX_PASSES * len(prose)
    while budget > 0 and (match := _TAG.search(prose, at)):
        end = _end_of(prose, match.end() - (1 if match[0].endswith(">") else 0), _TAG_SIGN, ">")
        if end < 0:  # no tag at all: a lone "<Name"
            budget -= len(prose) - match.end()
            pieces.append(prose[at : match.end()])
            at = match.end()
            continue
        tag = prose[match.start() : end]
        pieces.append(prose[at : match.start()])
        if text := _label(tag, match[1] or ""):
            before = pieces[-1].rstrip(" ")
            pieces += ["\n" if not before or before.endswith("\n") else "", f"**{text}**\n\n"]
        at = end
    return "".join([*pieces, prose[at:]])


def _label(tag: str, name: str) -> str:
    """Returns what readers see of a component's attributes: the kind and title of a callout, the label of a tab."""
    if tag.startswith("</"):
        return ""
    match = _JSX_LABEL.search(tag)
    title = next((group for group in match.groups() if group), "") if match else ""
    return label(component_kind(name, tag), title.strip())

"""HTML in Markdown: tables, links and entities become Markdown, purely visual tags are removed."""

from __future__ import annotations

import html
import re
import textwrap

import html_to_markdown
import lxml.html
from lxml.etree import LxmlError

from app.text.fences import outside_code, outside_fences
from ingestion.convert.cells import write_cells
from ingestion.convert.code import rebuild_code
from ingestion.convert.definitions import write_definitions
from ingestion.convert.dom import class_names
from ingestion.convert.escapes import escape_marked, mark_text
from ingestion.convert.pairs import between, replaced, without

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
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ANCHOR = re.compile(r"""<a\s++(?:id|name)\s*+=\s*+["'][^"'<>]++["']\s*+/?>(?:\s*+</a>)?""", re.IGNORECASE)


def clean_html(text: str) -> str:
    """The Markdown without HTML comments, and with its HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: without(prose, _COMMENT, _COMMENT_END))
    text = outside_fences(text, lambda prose: replaced(prose, _TABLE, _TABLE_END, _table))
    return outside_code(text, _inline)


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
    made = html_to_markdown.convert(lxml.html.tostring(root, encoding="unicode"), _OPTIONS).content or ""
    markdown = escape_marked(made).strip()
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
    """What the entity stands for. Those of ASCII stay: they are written because the character would be markup."""
    letter = html.unescape(match[0])
    return match[0] if letter.isascii() or letter == match[0] else letter.replace("\xa0", " ")

"""HTML in Markdown: tables, links and entities become Markdown, purely visual tags are removed."""

from __future__ import annotations

import html
import re
import textwrap

import html_to_markdown

from app.text.fences import outside_code, outside_fences
from ingestion.convert.pairs import between, replaced, without

_OPTIONS = html_to_markdown.ConversionOptions(extract_metadata=False, compact_tables=True, br_in_tables=True)
_TABLE = re.compile(r"(?im)^[ \t]*+<table\b")
_TABLE_END = re.compile(r"(?i)</table\s*+>")
_LINK = re.compile(r"(?i)<a\b[^<>]*+>")
_LINK_END = re.compile(r"(?i)</a\s*+>")
_TARGET = re.compile(r"""(?i)\bhref\s*+=\s*+["']([^"']++)["']""")
_DRESSING = re.compile(r"</?(?:ins|u|font|center|div|span|section|p|small|big|a)\b[^<>]*+>", re.IGNORECASE)
_COMMENT, _COMMENT_END = re.compile("<!--"), re.compile("-->")
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ANCHOR = re.compile(r"""<a\s++(?:id|name)\s*+=\s*+["'][^"'<>]++["']\s*+/?>(?:\s*+</a>)?""", re.IGNORECASE)


def clean_html(text: str) -> str:
    """The Markdown without HTML comments, and with its HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: without(prose, _COMMENT, _COMMENT_END))
    text = outside_fences(text, lambda prose: replaced(prose, _TABLE, _TABLE_END, _table))
    return outside_code(text, _inline)


def _table(opening: re.Match[str], closing: re.Match[str]) -> str:
    table = opening[0] + between(opening, closing) + closing[0]
    if table.lower().count("<table") != table.lower().count("</table"):  # tables in tables stay as they are
        return table
    markdown = (html_to_markdown.convert(table.lstrip(" \t"), _OPTIONS).content or "").strip()
    indent = table[: table.index("<")]
    return "\n" + textwrap.indent(markdown, indent) + "\n" if markdown else table


def _link(opening: re.Match[str], closing: re.Match[str]) -> str | None:
    target = _TARGET.search(opening[0])
    return f"[{' '.join(between(opening, closing).split())}]({target[1]})" if target else None


def _inline(prose: str) -> str:
    prose = replaced(_ANCHOR.sub("", prose), _LINK, _LINK_END, _link)
    return _ENTITY.sub(_letter, _DRESSING.sub("", prose))


def _letter(match: re.Match[str]) -> str:
    """What the entity stands for. Those of ASCII stay: they are written because the character would be markup."""
    letter = html.unescape(match[0])
    return match[0] if letter.isascii() or letter == match[0] else letter.replace("\xa0", " ")

"""HTML inside Markdown: tables become Markdown tables, links become links, entities letters, dressing goes."""

from __future__ import annotations

import html
import re
import textwrap

import html_to_markdown

from ingestion.convert.fences import outside_code, outside_fences

_OPTIONS = html_to_markdown.ConversionOptions(extract_metadata=False, compact_tables=True, br_in_tables=True)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE = re.compile(r"(?im)^(?P<indent>[ \t]*)(?P<table><table\b.*?</table\s*>)", re.DOTALL)
_LINK = re.compile(r"""<a\b[^>]*?\bhref\s*=\s*["']([^"']+)["'][^>]*>(.*?)</a\s*>""", re.IGNORECASE | re.DOTALL)
_DRESSING = re.compile(r"</?(?:ins|u|font|center|div|span|section|p|small|big|a)\b[^>]*>", re.IGNORECASE)
_ENTITY = re.compile(r"&(?:#\d{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ANCHOR = re.compile(r"""<a\s+(?:id|name)\s*=\s*["'][^"']+["']\s*/?>(?:\s*</a>)?""", re.IGNORECASE)


def clean_html(text: str) -> str:
    """The Markdown without HTML comments, and with its HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: _COMMENT.sub("", prose))
    text = outside_fences(text, lambda prose: _TABLE.sub(_table, prose))
    return outside_code(text, _inline)


def _table(match: re.Match[str]) -> str:
    table = match["table"]
    if table.lower().count("<table") != table.lower().count("</table"):  # tables in tables stay as they are
        return match[0]
    markdown = (html_to_markdown.convert(table, _OPTIONS).content or "").strip()
    return "\n" + textwrap.indent(markdown, match["indent"]) + "\n" if markdown else match[0]


def _inline(prose: str) -> str:
    prose = _LINK.sub(lambda match: f"[{' '.join(match[2].split())}]({match[1]})", _ANCHOR.sub("", prose))
    return _ENTITY.sub(_letter, _DRESSING.sub("", prose))


def _letter(match: re.Match[str]) -> str:
    """What the entity stands for. Those of ASCII stay: they are written because the character would be markup."""
    letter = html.unescape(match[0])
    return match[0] if letter.isascii() or letter == match[0] else letter.replace("\xa0", " ")

"""HTML inside Markdown: tables become Markdown tables, links become links, dressing goes."""

from __future__ import annotations

import re
import textwrap

import html_to_markdown

from ingestion.convert.fences import outside_code, outside_fences

_OPTIONS = html_to_markdown.ConversionOptions(extract_metadata=False, compact_tables=True, br_in_tables=True)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TABLE = re.compile(r"(?im)^(?P<indent>[ \t]*)(?P<table><table\b.*?</table\s*>)", re.DOTALL)
_LINK = re.compile(r"""<a\b[^>]*?\bhref\s*=\s*["']([^"']+)["'][^>]*>(.*?)</a\s*>""", re.IGNORECASE | re.DOTALL)
_DRESSING = re.compile(r"</?(?:ins|u|font|center|div|span|section|p|small|big|a)\b[^>]*>", re.IGNORECASE)
_ANCHOR = re.compile(r"""<a\s+(?:id|name)\s*=\s*["'][^"']+["']\s*/?>(?:\s*</a>)?""", re.IGNORECASE)


def clean_html(text: str) -> str:
    """The Markdown without HTML comments, and with its HTML tables and links as Markdown."""
    text = outside_code(text, lambda prose: _COMMENT.sub("", prose))
    text = outside_fences(text, lambda prose: _TABLE.sub(_table, prose))
    return outside_code(text, _inline)


def _table(match: re.Match[str]) -> str:
    html = match["table"]
    if html.lower().count("<table") != html.lower().count("</table"):  # tables in tables stay as they are
        return match[0]
    markdown = (html_to_markdown.convert(html, _OPTIONS).content or "").strip()
    return "\n" + textwrap.indent(markdown, match["indent"]) + "\n" if markdown else match[0]


def _inline(prose: str) -> str:
    prose = _LINK.sub(lambda match: f"[{' '.join(match[2].split())}]({match[1]})", _ANCHOR.sub("", prose))
    return _DRESSING.sub("", prose)

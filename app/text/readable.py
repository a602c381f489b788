"""Markdown as the words that a reader sees, on one line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from unicodedata import normalize

from markdown_it import MarkdownIt
from markdown_it.token import Token

from app.text.plain import plain

KEPT = 2000  # texts, about 2 KB each

_PARSER = MarkdownIt("commonmark", {"html": True, "maxNesting": 20}).enable(["table", "strikethrough"])
_TEXTS = frozenset(("text", "code_inline", "fence", "code_block", "html_inline"))
_BREAKS = frozenset(("softbreak", "hardbreak"))


@lru_cache(maxsize=KEPT)
def readable(markdown: str) -> str:
    """The text without any markup, blocks separated by spaces; without headings, which breadcrumbs show."""
    blocks: list[str] = []
    heading = False
    for token in _PARSER.parse(plain(markdown)):
        heading = token.type == "heading_open" or (heading and token.type != "heading_close")
        if not heading and (text := "".join(_words([token]))):
            blocks.append(text)
    return normalize("NFC", " ".join(" ".join(blocks).split()))


def _words(tokens: Iterable[Token]) -> Iterator[str]:
    for token in tokens:
        if token.type in _BREAKS:
            yield " "
        elif token.type in _TEXTS:
            yield token.content
        else:
            yield from _words(token.children or ())

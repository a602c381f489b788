"""Text of an HTML page that Markdown would read as a tag or an entity is escaped: `Map<string, T>` outside code."""

from __future__ import annotations

import re
from collections.abc import Iterator

from lxml.html import HtmlElement

_AS_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)")
_MARKS = {"<": "\ufdd0", "&": "\ufdd1"}  # no characters: the converter and pages know neither
_CODE = frozenset({"pre", "code", "kbd", "samp", "tt", "script", "style"})


def mark_text(root: HtmlElement) -> None:
    """Replace what would be markup in the text below `root`, except in code, until the converter has written Markdown."""
    for element, part in _texts(root):
        text = getattr(element, part)
        if text and ("<" in text or "&" in text):
            setattr(element, part, _AS_MARKUP.sub(lambda found: _MARKS[found[0]], text))


def escape_marked(markdown: str) -> str:
    """The Markdown with backslashes where `mark_text` has found them needed."""
    for letter, mark in _MARKS.items():
        markdown = markdown.replace(mark, f"\\{letter}")
    return markdown


def _texts(root: HtmlElement) -> Iterator[tuple[HtmlElement, str]]:
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root:
            yield element, "tail"
        if element.tag not in _CODE:
            yield element, "text"
            waiting += element

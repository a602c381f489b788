"""Moves on an lxml tree that several steps share: small moves, and text that Markdown would read as a tag or an entity."""

import re
from collections.abc import Iterator
from functools import cache

from lxml.etree import XPath
from lxml.html import HtmlElement
from lxml.html.builder import E

from app.text.analysis import LOWERED, RAISED

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
ROWS = "/*[self::thead or self::tbody or self::tfoot]/tr|/tr"
"""The rows of a table itself, without those of tables in its cells."""

_CLASS = re.compile(r"\{([\w:-]+)\}")
_CLASSES = XPath("descendant-or-self::*/@class", smart_strings=False)


@cache
def _compiled(path: str) -> tuple[tuple[frozenset[str], XPath], ...]:
    """Each part of the path with the classes of which one must be there for it to find anything."""
    # descendants of the element only: "//" would start at the page
    parts: list[tuple[frozenset[str], XPath]] = []
    for part in path.split("|"):
        written = _CLASS.sub(r"contains(concat(' ', normalize-space(@class), ' '), ' \1 ')", part)
        parts.append((frozenset(_CLASS.findall(part)), XPath(f".{written}")))
    return tuple(parts)


def class_names(root: HtmlElement) -> frozenset[str]:
    """Every class in the element: searching for others can be saved."""
    return frozenset(" ".join(_CLASSES(root)).split())


def select(root: HtmlElement, path: str, present: frozenset[str] | None = None) -> list[HtmlElement]:
    """Elements below `root` by XPath, in which `{name}` stands for "has this class".

    A part (between `|`) that has classes must need one of them; it isn't looked for when none is `present`.
    """
    elements: list[HtmlElement] = []
    for classes, xpath in _compiled(path):
        if not classes or present is None or not classes.isdisjoint(present):
            elements += xpath(root)
    return elements


def has_class(element: HtmlElement, name: str) -> bool:
    """True when the element has the class."""
    return name in (element.get("class") or "").split()


def text_of(element: HtmlElement) -> str:
    """The element's text on one line, without invisible characters."""
    return " ".join(re.sub("[\u200b\u00ad\ufeff]", "", element.text_content()).split())


def drop(element: HtmlElement) -> None:
    """Remove the element with its content; the text after it stays."""
    if element.getparent() is not None:
        element.drop_tree()


def drop_all(root: HtmlElement, path: str, present: frozenset[str] | None = None) -> None:
    """Remove what `select` finds."""
    for element in select(root, path, present):
        drop(element)


def replace(element: HtmlElement, new: HtmlElement) -> None:
    """Put `new` in the element's place."""
    if (parent := element.getparent()) is not None:
        new.tail = element.tail
        parent.replace(element, new)


def append_text(element: HtmlElement, text: str) -> None:
    """Add the text at the end of the element."""
    if len(element):
        element[-1].tail = (element[-1].tail or "") + text
    else:
        element.text = (element.text or "") + text


_NUMBER = r"\s*+([-+\u2212]?\d{1,4}|[-+\u2212])\s*+"
_IS_NUMBER = re.compile(_NUMBER)
POWER = re.compile(rf"(?i)<(su[pb])>{_NUMBER}</\1>")
"""A raised or lowered number as HTML."""


def power(tag: str, text: str) -> str:
    """The number in raised or lowered letters, as in 10⁶ and H₂O: without its tag, it would be part of the number before it."""
    return text.strip().translate(RAISED if tag.lower() == "sup" else LOWERED)


def write_powers(root: HtmlElement) -> None:
    """Write raised and lowered numbers in letters that need no tag; those that are links are footnotes."""
    for element in root.xpath(".//sup[not(*)]|.//sub[not(*)]"):
        if _IS_NUMBER.fullmatch(element.text or ""):
            element.text = power(element.tag, element.text)
            element.drop_tag()


def bold(text: str) -> HtmlElement:
    """A paragraph of bold text."""
    return E.p(E.strong(text))


def put_label(element: HtmlElement, text: str) -> None:
    """Write the text in bold above what the element holds."""
    element.insert(0, bold(text))
    element[0].tail, element.text = element.text, None


def bold_paragraph(element: HtmlElement) -> None:
    """Replace the element by its text as a bold paragraph, or by nothing."""
    if text := text_of(element):
        replace(element, bold(text))
    else:
        drop(element)


_AS_MARKUP = re.compile(r"<(?=[A-Za-z/!?])|&(?=#?\w+;)|(?<![\w\])])\[ ?\[?(\d{1,3}(?:, ?\d{1,3})*+)\]\]?")
_MARKS = {"<": "\ufdd0", "&": "\ufdd1"}  # no characters: the converter and pages know neither
BACKSLASH = "\ufdd2"
"""That of a formula, which the converter would double."""

_CODE = frozenset({"pre", "code", "kbd", "samp", "tt", "script", "style"})


def mark_text(root: HtmlElement) -> None:
    """Replace what would be markup in the text below `root`, except in code, until the converter has written Markdown.

    `[2]` becomes `(2)`, because it would cite a page in an answer, but not behind a name or code (`items[2]`).
    """
    for element, part in texts_outside_code(root):
        text = getattr(element, part)
        if text and ("<" in text or "&" in text or "[" in text):
            name = "x" if part == "tail" and element.tag in _CODE else ""
            setattr(element, part, _AS_MARKUP.sub(_marked, name + text).removeprefix(name))


def _marked(found: re.Match[str]) -> str:
    return f"({found[1]})" if found[1] else _MARKS[found[0]]


def escape_marked(markdown: str) -> str:
    """The Markdown with backslashes where `mark_text` has found them needed."""
    for letter, mark in _MARKS.items():
        markdown = markdown.replace(mark, f"\\{letter}")
    return markdown.replace(BACKSLASH, "\\")


def unmarked(text: str) -> str:
    """The text as it was before `mark_text`."""
    for letter, mark in _MARKS.items():
        text = text.replace(mark, letter)
    return text.replace(BACKSLASH, "\\")


def texts_outside_code(root: HtmlElement) -> Iterator[tuple[HtmlElement, str]]:
    """Each element with `text` or `tail`, the name of a text of it."""
    waiting = [root]
    while waiting:
        element = waiting.pop()
        if element is not root:
            yield element, "tail"
        if element.tag not in _CODE:
            yield element, "text"
            waiting += element

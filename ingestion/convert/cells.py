"""Blocks in the cells of tables: Markdown has one line for a cell, so their lines are kept apart by <br>."""

from __future__ import annotations

from itertools import islice

from lxml.etree import iterwalk
from lxml.html import Element, HtmlElement

from ingestion.convert.dom import drop, replace, select

_BLOCKS = ("p", "div", "ul", "ol", "li", "blockquote", "section", "dl", "dt", "dd", "figure", "details", "hr")
_HOLDS = "/descendant::*[self::p or self::div or self::li or self::pre or self::dl or self::blockquote][1]"
_DEEPEST = 6
"""Levels of lists that are told apart."""

_LAYOUT = "//table|//h1|//h2|//h3|//h4|//h5|//h6"
"""A cell with one of these is no cell of a table to readers."""


def write_cells(root: HtmlElement) -> None:
    """Write each line of code in a cell as code of its own, items of lists behind their marks, and <br> between all."""
    for cell in select(root, "//td|//th"):
        if not select(cell, _HOLDS) or select(cell, _LAYOUT):
            continue
        for items in list(cell.iter("ul", "ol")):
            for number, item in enumerate(items.iterchildren("li"), 1):
                _mark(item, f"{number}. " if items.tag == "ol" else "- ")
        for pre in list(cell.iter("pre")):
            replace(pre, _lines(pre))
        for block in list(cell.iter(*_BLOCKS)):
            _break_before_and_after(block)
        _drop_empty_lines(cell)


def _mark(item: HtmlElement, mark: str) -> None:
    """Write the mark of the item, indented by how deep in lists it is."""
    lists = list(islice(item.iterancestors("ul", "ol", "td", "th"), _DEEPEST))
    depth = next((number for number, one in enumerate(lists) if one.tag in ("td", "th")), _DEEPEST)
    if len(item) and item[0].tag == "p" and not (item.text or "").strip():
        item[0].drop_tag()  # a loose item: its mark stands on the line of its text
    item.text = "\xa0\xa0" * max(0, depth - 1) + mark + (item.text or "").lstrip()


def _lines(pre: HtmlElement) -> HtmlElement:
    lines = Element("div")
    for line in pre.text_content().expandtabs(4).split("\n"):
        if not line.strip():
            continue
        if len(lines):
            lines.append(Element("br"))
        lines.append(Element("code"))
        lines[-1].text = line.rstrip()
    return lines


def _break_before_and_after(block: HtmlElement) -> None:
    block.tag = "span"
    block.attrib.clear()
    block.addprevious(Element("br"))
    after = Element("br")
    after.tail, block.tail = block.tail, None
    block.addnext(after)


def _drop_empty_lines(cell: HtmlElement) -> None:
    """Drop each <br> with no text before it on its line, the last one with none after it, and space at the start of lines."""
    empty, last, full = list[HtmlElement](), None, False
    for event, element in iterwalk(cell, events=("start", "end")):
        if event == "start" and element.tag == "br":
            empty += [] if full else [element]
            last, full = element if full else last, False
        part = "text" if event == "start" else "tail"
        text = (getattr(element, part) or "") if event == "start" or element is not cell else ""
        if not full and text and not (event == "start" and element.tag == "code"):
            setattr(element, part, text.lstrip(" \t\r\n"))
        full = full or bool(text.strip()) or element.tag == "img"
    for line in [*empty, *([last] if last is not None and not full else [])]:
        drop(line)

"""Doxygen: `h2.memtitle` behind an anchor, the signature in `.memproto`, and tables that list what follows."""

from __future__ import annotations

import re

from lxml.html import Element, HtmlElement

from ingestion.convert.api_reference.symbols import heading, list_items, section, signature_of
from ingestion.convert.dom import drop, has_class, select, text_of

_SPECIFIERS = frozenset({"static", "explicit", "virtual", "inline", "constexpr"})
"""Labels beside a declaration that the source has before it."""


def write_doxygen(root: HtmlElement) -> None:
    """Make sections of the members of a page; tables that only list these go."""
    described = {str(link.get("href")).rpartition("#")[2] for link in select(root, "//*[{permalink}]//a[@href]")}
    for table in select(root, "//table[{memberdecls}]"):
        _without_described(table, described)
    for title in select(root, "//h2[{memtitle}]"):
        _member(title)
    for line in select(root, "/hr[following-sibling::*[1][self::ul][not(following-sibling::*)]]"):
        drop(line.getnext())  # the names of the files that the page was made from
        line.tail = None


def _without_described(table: HtmlElement, described: set[str]) -> None:
    """Take from the table what has a section of its own below, and the whole table when that is all."""
    left = 0
    for row in list(table.iter("tr")):
        links = [str(link.get("href")).rpartition("#")[2] for link in select(row, "//a[@href]")]
        if described.intersection(links) or not row.text_content().strip():
            drop(row)
        else:
            left += not has_class(row, "heading")
    if left:
        _listed(table)
    else:
        drop(table)


def _listed(table: HtmlElement) -> None:
    """The rest as a heading and a list, with the links to the other pages."""
    for title in list(table.iter("h2")):
        table.addprevious(title)
    items = list[HtmlElement]()
    for row in table.iter("tr"):
        made = Element("li")
        for cell in row:
            if text_of(cell):
                cell.tag, cell.tail = "span", " "
                made.append(cell)
        if len(made) and not has_class(row, "heading"):
            items.append(made)
    list_items(table, items)


def _member(title: HtmlElement) -> None:
    links = select(title, "//*[{permalink}]//a[@href]")
    anchor = str(links[0].get("href")).rpartition("#")[2] if links else ""
    name = re.sub(r" \[\d+/\d+\]$", "", signature_of(title))
    details = title.getnext()
    signatures = list[str]()
    if details is not None and has_class(details, "memitem"):
        for declared in select(details, "/*[{memproto}]"):
            signatures.append(_declaration(declared))
            drop(declared)
    section(title, heading(3, name, anchor), signatures, "cpp")


def _declaration(declared: HtmlElement) -> str:
    """What a table of parameters says in one line, with the blanks of the source."""
    labels = [signature_of(label) for label in select(declared, "//*[{mlabel}]")]
    for label in select(declared, "//*[{mlabels-right}]"):
        drop(label)
    lines = [signature_of(line) for line in select(declared, "//*[{memtemplate}]")]
    for line in select(declared, "//*[{memtemplate}]"):
        drop(line)
    said = " ".join(label for label in labels if label in _SPECIFIERS)
    lines.append(f"{said} {' '.join(signature_of(declared).split())}".strip())
    text = re.sub(r"<([^<>]*)>", lambda given: f"<{given[1].strip()}>", "\n".join(lines))
    text = re.sub(r" ?\( ?", "(", text.replace(" )", ")"))
    return re.sub(r"([*&]) (?=\w)", r"\1", text)

"""API references of compiled languages: Doxygen, Javadoc and rustdoc."""

from __future__ import annotations

import re
from collections.abc import Collection

from lxml.html import Element, HtmlElement

from ingestion.convert.api_reference.symbols import (
    code_block,
    heading,
    is_short,
    item,
    list_items,
    section,
    signature_of,
    unwrap_lists,
)
from ingestion.convert.html.dom import drop, has_class, replace, select, text_of

_SPECIFIERS = frozenset({"static", "explicit", "virtual", "inline", "constexpr"})
"""Labels beside a declaration that the source has before it."""


def write_doxygen(root: HtmlElement) -> None:
    """Make sections of the members of a page; tables that only list these go."""
    described = {str(link.get("href")).rpartition("#")[2] for link in select(root, "//*[{permalink}]//a[@href]")}
    for table in select(root, "//table[{memberdecls}]"):
        _without_described(table, described)
    for title in select(root, "//h2[{memtitle}]"):
        _doxygen_member(title)
    for line in select(root, "/hr[following-sibling::*[1][self::ul][not(following-sibling::*)]]"):
        drop(line.getnext())  # the names of the files that the page was made from
        line.tail = None


def _without_described(table: HtmlElement, described: set[str]) -> None:
    """Take from the table what has a section of its own below, and the whole table when that is all."""
    remaining = 0
    for row in list(table.iter("tr")):
        links = [str(link.get("href")).rpartition("#")[2] for link in select(row, "//a[@href]")]
        if described.intersection(links) or not row.text_content().strip():
            drop(row)
        else:
            remaining += not has_class(row, "heading")
    if remaining:
        _doxygen_listed(table)
    else:
        drop(table)


def _doxygen_listed(table: HtmlElement) -> None:
    """The rest as a heading and a list, with the links to the other pages."""
    for title in list(table.iter("h2")):
        table.addprevious(title)
    items = list[HtmlElement]()
    for row in table.iter("tr"):
        item = Element("li")
        for cell in row:
            if text_of(cell):
                cell.tag, cell.tail = "span", " "
                item.append(cell)
        if len(item) and not has_class(row, "heading"):
            items.append(item)
    list_items(table, items)


def _doxygen_member(title: HtmlElement) -> None:
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
    """Returns what a table of parameters says as one line, with the blanks of the source."""
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


def write_javadoc(root: HtmlElement) -> None:
    """Make sections of the members of a class; summaries of members that the page describes go."""
    _javadoc_title(root)
    for element in select(root, "//div[{inherited-list} or {inheritance} or {caption}]"):
        drop(element)
    for signature in select(root, "//div[{type-signature} or {package-signature}]"):
        replace(signature, code_block(signature_of(signature), "java"))
    described = {section.get("id") for section in root.iter("section")}
    for summary in select(root, "//section[contains(@id, '-summary')]"):
        _summary(summary, described)
    for table in select(root, "//div[{summary-table}]"):
        _listed(table)
    for title in select(root, "//section[{details} or contains(@class, '-details')]/h2"):
        unwrap_lists(title)
    for member in select(root, "//section[{detail}]"):
        _javadoc_member(member)


def _javadoc_title(root: HtmlElement) -> None:
    """`Class Box` of the package `lumora` -> `Class lumora.Box`."""
    titles = select(root, "//h1[@title]")
    packages = select(root, "//*[{sub-title}]")
    if not titles or not packages or not len(packages[-1]):
        return
    package = text_of(packages[-1][-1])
    kind = (titles[0].get("title") or "").rpartition(" ")[0]
    text = text_of(titles[0])
    if package and kind and text.startswith(f"{kind} "):
        for child in list(titles[0]):
            drop(child)
        titles[0].text = f"{kind} {package}.{text[len(kind) + 1 :]}"
        for element in packages:
            drop(element)


def _summary(summary: HtmlElement, described: Collection[str | None]) -> None:
    """Drop a summary of what the page describes in full, and one of nothing."""
    title = next(iter(select(summary, "/h2")), None)
    if title is not None:
        unwrap_lists(title)
    details = str(summary.get("id")).removesuffix("-summary") + "-detail"
    if details in described or not select(summary, "//div[{summary-table}]"):
        outer = summary.getparent()
        drop(outer if outer is not None and outer.tag == "li" and len(outer) == 1 else summary)


def _listed(table: HtmlElement) -> None:
    """A summary of what other pages describe as a list, with the links to them."""
    for header in select(table, "/*[{table-header}]"):
        drop(header)
    items, item = list[HtmlElement](), Element("li")
    for cell in list(table):
        for block in cell.iter("div"):
            block.tag = "span"
        if has_class(cell, "col-last"):
            if len(item) and text_of(cell):
                item[-1].tail = " – "
            items, item = [*items, _with(item, cell)], Element("li")
        else:
            _with(item, cell)
    list_items(table, items)


def _with(made: HtmlElement, cell: HtmlElement) -> HtmlElement:
    cell.tail = " "
    made.append(cell)
    return made


def _javadoc_member(member: HtmlElement) -> None:
    signatures = select(member, "/*[{member-signature}]")
    title = next(iter(member), None)
    if title is None or title.tag not in ("h3", "h4"):
        return
    called = any(select(signature, "//*[{parameters}]") or "(" in text_of(signature) for signature in signatures)
    told = [signature_of(signature) for signature in signatures]
    for signature in signatures:
        drop(signature)
    said = [part for part in member if part is not title]
    if told and not called and all(map(is_short, said)):
        unwrap_lists(title)
        list_items(member, [item(told[0], " ".join(map(text_of, said)))])
        return
    name = text_of(title) + ("()" if called else "")
    section(title, heading(int(title.tag[1]), name, title.get("data-anchor") or ""), told, "java")


_DROPPED = (
    "//*[{src} or {doc-anchor} or {hideme} or {rightside}]|//a[{anchor}]|//rustdoc-toolbar|//*[@id='copy-path']"
    "|//*[@id='synthetic-implementations' or @id='synthetic-implementations-list']"
    "|//*[@id='blanket-implementations' or @id='blanket-implementations-list']"
)
"""Among them what the compiler implements for every type."""

_NAME = re.compile(r"\b(?:fn|type|const|static|macro_rules!)\s+([\w:]+)")


def write_rustdoc(root: HtmlElement) -> None:
    """Make sections of methods and implementations; fields and variants are items of a list."""
    for element in select(root, _DROPPED):
        drop(element)
    _title(root)
    for field in select(root, "//span[{structfield}]|//span[{section-header}]"):
        _value(field)
    for variant in select(root, "//section[{variant}]"):
        _value(variant)
    for title in select(root, "//section/*[{code-header}]"):
        _member(title)


def _title(root: HtmlElement) -> None:
    """`Struct Crate` of the module `lumora` -> `Struct lumora::Crate`."""
    for crumbs in select(root, "//*[{rustdoc-breadcrumbs}]"):
        path = text_of(crumbs).replace(" ", "")
        title = crumbs.getnext()
        if title is not None and title.tag == "h1" and len(title):
            title[0].text = f"{path}::{title[0].text or ''}"
            drop(crumbs)


def _value(element: HtmlElement) -> None:
    """A field or variant with the text after it; one of which more is said is a section."""
    body = element.getnext()
    if body is None or not has_class(body, "docblock"):
        body = None
    after = body.getnext() if body is not None else element.getnext()
    inner = after is not None and has_class(after, "sub-variant")
    if is_short(body) and not inner:
        said = text_of(body) if body is not None else ""
        if body is not None:
            drop(body)
        list_items(element, [item(signature_of(element), said)])


def _member(title: HtmlElement) -> None:
    outer = title.getparent()
    if outer is None or next(title.iterancestors("li", "table"), None) is not None:
        return
    for toggle in title.iterancestors("summary", "details"):
        toggle.tag = "div"
    for where in select(title, "//*[{where}]"):
        where.text = f" {where.text or ''}"
    told = signature_of(title)
    named = _NAME.search(told)
    name = named[1] + ("()" if "fn " in told[: named.end()] else "") if named else signature_of(title)
    level = int(title.tag[1]) if title.tag[1:].isdecimal() else 4
    section(title, heading(level, name, str(outer.get("id") or "")), [told] if named else [], "rust")

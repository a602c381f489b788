"""Javadoc: `section.detail[id]` with `.member-signature`, `dl.notes`, and summaries of what the page tells below."""

from __future__ import annotations

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
from ingestion.convert.dom import drop, has_class, replace, select, text_of


def write_javadoc(root: HtmlElement) -> None:
    """Make sections of the members of a class; summaries of members that the page describes go."""
    _title(root)
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
        _member(member)


def _title(root: HtmlElement) -> None:
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
        for one in packages:
            drop(one)


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
    items, made = list[HtmlElement](), Element("li")
    for cell in list(table):
        for block in cell.iter("div"):
            block.tag = "span"
        if has_class(cell, "col-last"):
            if len(made) and text_of(cell):
                made[-1].tail = " – "
            items, made = [*items, _with(made, cell)], Element("li")
        else:
            _with(made, cell)
    list_items(table, items)


def _with(made: HtmlElement, cell: HtmlElement) -> HtmlElement:
    cell.tail = " "
    made.append(cell)
    return made


def _member(member: HtmlElement) -> None:
    signatures = select(member, "/*[{member-signature}]")
    title = next(iter(member), None)
    if title is None or title.tag not in ("h3", "h4"):
        return
    called = any(select(one, "//*[{parameters}]") or "(" in text_of(one) for one in signatures)
    told = [signature_of(one) for one in signatures]
    for one in signatures:
        drop(one)
    said = [part for part in member if part is not title]
    if told and not called and all(map(is_short, said)):
        unwrap_lists(title)
        list_items(member, [item(told[0], " ".join(map(text_of, said)))])
        return
    name = text_of(title) + ("()" if called else "")
    section(title, heading(int(title.tag[1]), name, title.get("data-anchor") or ""), told, "java")

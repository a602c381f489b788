"""rustdoc: `section[id] > .code-header` is a signature, `.docblock` beside it what is said of it."""

from __future__ import annotations

import re

from lxml.html import HtmlElement

from ingestion.convert.api_reference.symbols import heading, is_short, item, list_items, section, signature_of
from ingestion.convert.dom import drop, has_class, select, text_of

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

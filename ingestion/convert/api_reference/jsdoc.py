"""JSDoc: `h4.name[id]` holds the signature, tables the parameters, `span.param-type` the types."""

from __future__ import annotations

from lxml.html import Element, HtmlElement

from ingestion.convert.api_reference.symbols import code, heading, section, signature_of
from ingestion.convert.dom import drop, replace, select, text_of


def write_jsdoc(root: HtmlElement) -> None:
    """Make sections of the members of a page, and lists of what they take, return and throw."""
    for source in select(root, "//dl[{details}]/*[{tag-source}]|//header/h2[.//*[{signature} or {type-signature}]]"):
        drop(source)
    for title in select(root, "//div[{container-overview}]/h2"):
        title.tag = "h3"  # as of the other kinds of members, which would stand below it
    for mark in select(root, "//*[{signature-attributes}]"):
        mark.text = "?" if "opt" in text_of(mark) else ""
    for title in select(root, "//*[self::h3 or self::h4][{name}]"):
        _member(title)
    for told in select(root, "//dl[dt and not(ancestor::dl)][.//*[{param-type}]]"):
        _typed(told)


def _member(title: HtmlElement) -> None:
    told = signature_of(title).replace("…", "...")
    for part in select(title, "//*[{type-signature}]"):
        drop(part)
    called = select(title, "//*[{signature}]")
    for part in called:
        drop(part)
    name = signature_of(title) + ("()" if called else "")
    section(title, heading(int(title.tag[1]), name, title.get("data-anchor") or ""), [told], "javascript")


def _typed(told: HtmlElement) -> None:
    """The types that a method returns or throws, with what is said of each."""
    made = Element("ul")
    said = ""
    for part in select(told, "//*[{param-desc} or {param-type}]"):
        if "param-desc" in (part.get("class") or "").split():
            said = text_of(part)
            continue
        entry = Element("li")
        entry.append(code(text_of(part)))
        if said:
            entry[0].tail = f" – {said}"
        made.append(entry)
        said = ""
    before = told.getprevious()
    if len(made) and before is not None and before.get("class") == "param-desc" and not made[0][0].tail:
        made[0][0].tail = f" – {text_of(before)}"
        drop(before)
    replace(told, made)

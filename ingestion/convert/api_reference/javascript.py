"""API references of JavaScript: JSDoc and TypeDoc."""

from __future__ import annotations

from lxml.html import Element, HtmlElement

from ingestion.convert.api_reference.symbols import (
    code,
    code_block,
    heading,
    is_short,
    item,
    list_items,
    section,
    signature_of,
    unwrap_lists,
)
from ingestion.convert.html.dom import bold, bold_paragraph, drop, replace, select, text_of


def write_jsdoc(root: HtmlElement) -> None:
    """Make sections of the members of a page, and lists of what they take, return and throw."""
    for source in select(root, "//dl[{details}]/*[{tag-source}]|//header/h2[.//*[{signature} or {type-signature}]]"):
        drop(source)
    for title in select(root, "//div[{container-overview}]/h2"):
        title.tag = "h3"  # as of the other kinds of members, which would stand below it
    for mark in select(root, "//*[{signature-attributes}]"):
        mark.text = "?" if "opt" in text_of(mark) else ""
    for title in select(root, "//*[self::h3 or self::h4][{name}]"):
        _jsdoc_member(title)
    for told in select(root, "//dl[dt and not(ancestor::dl)][.//*[{param-type}]]"):
        _typed(told)


def _jsdoc_member(title: HtmlElement) -> None:
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
    listing = Element("ul")
    said = ""
    for part in select(told, "//*[{param-desc} or {param-type}]"):
        if "param-desc" in (part.get("class") or "").split():
            said = text_of(part)
            continue
        entry = Element("li")
        entry.append(code(text_of(part)))
        if said:
            entry[0].tail = f" – {said}"
        listing.append(entry)
        said = ""
    before = told.getprevious()
    if len(listing) and before is not None and before.get("class") == "param-desc" and not listing[0][0].tail:
        listing[0][0].tail = f" – {text_of(before)}"
        drop(before)
    replace(told, listing)


_DROPPED = "//*[{tsd-breadcrumb} or {tsd-index-group} or {tsd-sources} or {tsd-anchor-icon} or {tsd-navigation} or {site-menu}]"
_ENTRIES = "//ul[{tsd-parameter-list} or {tsd-type-parameter-list} or {tsd-parameters}]/li"
_LABELS = "//h4[not(@data-anchor)]|//*[{tsd-comment}]/div/h4"


def write_typedoc(root: HtmlElement) -> None:
    """Make sections of the members of a class, and of functions; short properties are items of a list."""
    inherited = dict(filter(None, map(_inherited, select(root, "//section[{tsd-member} and {tsd-is-inherited}]"))))
    for element in select(root, _DROPPED):
        drop(element)
    for title in select(root, "//h4[{tsd-returns-title}]"):
        _returns(title)
    for label in select(root, _LABELS):
        bold_paragraph(label)
    for entry in select(root, _ENTRIES):
        _parameter(entry)
    for member in select(root, "//section[{tsd-member}]"):
        _member(member, inherited.get(member))
    _function(root)
    for signature in select(root, "//*[{tsd-signature}]"):
        unwrap_lists(signature)
        replace(signature, code_block(signature_of(signature), "typescript"))


def _function(root: HtmlElement) -> None:
    """The page of a function: its title leads to the first of its signatures."""
    for title in select(root, "//h1[not(@data-anchor)]"):
        if overloads := select(
            root, "/ul[{tsd-signatures}]//*[{tsd-signature}][@id]|/section/ul//*[{tsd-signature}][@id]"
        ):
            title.set("data-anchor", overloads[0].get("id"))


def _returns(title: HtmlElement) -> None:
    """`Returns string` -> the word as a label, the type as code."""
    label = (title.text or "").strip()
    word = bold(label)
    title.text = None
    if told := signature_of(title):
        word[0].tail = " "
        word.append(code(told))
    replace(title, word)


def _parameter(entry: HtmlElement) -> None:
    for title in select(entry, "/h5|/h4"):
        title.tag = "span"
    if len(entry) and entry[0].tag == "span":
        flags = [text_of(flag) for flag in select(entry[0], "//code[{tsd-tag}]")]
        for flag in select(entry[0], "//code[{tsd-tag}]"):
            drop(flag)
        name = code(signature_of(entry[0]))
        name.tail = f" ({', '.join(flags)})" if flags else None
        entry.replace(entry[0], name)
    for comment in select(entry, "/*[{tsd-comment}]"):
        if len(comment) and comment[0].tag == "p":
            comment.tag = comment[0].tag = "span"
            before = comment.getprevious()
            if before is not None:
                before.tail = (before.tail or "").rstrip() + " – "


def _inherited(member: HtmlElement) -> tuple[HtmlElement, HtmlElement] | None:
    """The member, and the link to the page of the site that describes it for the class that it is inherited from."""
    for source in select(member, "//*[{tsd-sources}]/p"):
        links = [link for link in source.iter("a") if "://" not in (link.get("href") or "://")]
        if links and text_of(source).startswith("Inherited from"):
            links[-1].text = text_of(source).removeprefix("Inherited from").strip()
            return member, links[-1]
    return None


def _member(member: HtmlElement, inherited: HtmlElement | None) -> None:
    """A member with a signature of its own is a value, one with a list of them is called."""
    title = next(iter(select(member, "/h3")), None)
    if title is None:
        return
    values = select(member, "/*[{tsd-signature}]")
    if not values and inherited is not None:
        entry = item(f"{signature_of(title)}()", "inherited from ")
        inherited.tail = None
        entry.append(inherited)
        list_items(member, [entry])
        return
    if not values:
        _headed(title, "()" if select(member, "//*[{tsd-kind-call-signature}]") else "")
        return
    flags = [text_of(flag).lower() for flag in select(title, "//code[{tsd-tag}]")]
    told = " ".join([*flags, signature_of(values[0])])
    said = [part for part in member if part is not title and part is not values[0]]
    if all(map(is_short, said)):
        list_items(member, [item(told, " ".join(map(text_of, said)))])
        return
    replace(values[0], code_block(told, "typescript"))
    _headed(title, "")


def _headed(title: HtmlElement, parentheses: str) -> None:
    for flag in select(title, "//code[{tsd-tag}]"):
        drop(flag)
    level = int(title.tag[1])
    section(title, heading(level, signature_of(title) + parentheses, title.get("data-anchor") or ""), (), "typescript")

"""The section of a symbol: a heading with its name and anchor, and its signature as code."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from copy import deepcopy

from lxml.html import Element, HtmlElement

from ingestion.convert.html.dom import bold, bold_paragraph, drop, replace, select, text_of

HEADINGS = ("h1", "h2", "h3", "h4", "h5", "h6")
DEEPEST = 6
LONGEST_ITEM = 300
"""Characters of what is said of a constant or attribute that is an item of a list; one with more is a section."""

_NO_SIGNATURE = (
    "//*[{headerlink} or {viewcode-link} or {tsd-anchor-icon} or {permalink} or {src} or {doc-anchor}]"
    "|//a[{anchor}]|//button|//svg"
)
_BREAK = "\u2028"
_BLOCKS = "//dl|//ul|//ol|//pre|//table|//h1|//h2|//h3|//h4|//h5|//h6|//blockquote"


def signature_of(element: HtmlElement) -> str:
    """The signature as code: its line breaks are those that readers see, links and their marks are gone."""
    element = deepcopy(element)
    element.tail = None
    for mark in select(element, _NO_SIGNATURE):
        drop(mark)
    for arrow in select(element, "//*[{sig-return-icon}]"):
        arrow.text = "->"
    for line in element.iter("br", "dd"):
        indent = "\xa0" * 4 if line.tag == "dd" else ""
        if indent:
            line.text = _BREAK + indent + (line.text or "").lstrip()
            if line.getnext() is None:
                line.tail = _BREAK + (line.tail or "").lstrip()
        else:
            line.tail = _BREAK + (line.tail or "")
    text = re.sub(r"[ \t\r\n]+", " ", re.sub("[\u200b\u00ad\ufeff]", "", element.text_content()))
    lines = (re.sub(r"^ ", "", line).replace("\xa0", " ").rstrip() for line in text.split(_BREAK))
    return "\n".join(line for line in lines if line.strip()).strip()


def code(text: str) -> HtmlElement:
    """The text as inline code."""
    element = Element("code")
    element.text = text
    return element


def code_block(text: str, language: str) -> HtmlElement:
    """The text as a block of code."""
    pre, inner = Element("pre"), code(text)
    if language:
        inner.set("class", f"language-{language}")
    pre.append(inner)
    return pre


def heading(level: int, name: str, anchor: str) -> HtmlElement:
    """The heading of a symbol's section."""
    element = Element(f"h{min(level, DEEPEST)}")
    element.set("data-symbol", "")
    if anchor:
        element.set("data-anchor", anchor)
    element.append(code(name))
    return element


def section(place: HtmlElement, head: HtmlElement, signatures: Sequence[str], language: str) -> None:
    """Put the heading and the signatures in the element's place. A signature that says no more than the name isn't repeated."""
    replace(place, head)
    unwrap_lists(head)
    told = [signature for signature in dict.fromkeys(signatures) if signature and not text_of(head).endswith(signature)]
    if told:
        block = code_block("\n".join(told), language)
        block.tail, head.tail = head.tail, None
        head.addnext(block)


def unwrap_lists(element: HtmlElement) -> None:
    """Lists around a section are layout."""
    for outer in element.iterancestors("ul", "ol", "li"):
        outer.tag = "div"


def is_short(body: HtmlElement | None) -> bool:
    """True when what is said of a symbol fits an item of a list."""
    return body is None or (len(text_of(body)) <= LONGEST_ITEM and not select(body, _BLOCKS))


def item(signature: str, said: str) -> HtmlElement:
    """A symbol as an item of a list."""
    element = Element("li")
    element.append(code(signature))
    if said:
        element[0].tail = f" – {said}"
    return element


def list_items(place: HtmlElement, items: Iterable[HtmlElement], label: str = "") -> None:
    """Put the items in the element's place, or before the sections beside it: what follows these would be theirs.

    They go into the list just before it if there is one of this kind; the label keeps them apart from another.
    """
    before = place.getprevious()
    if before is not None and "data-body" in before.attrib:
        next(beside for beside in place.getparent() if "data-body" in beside.attrib).addprevious(place)
        before = place.getprevious()
    if (
        before is not None
        and before.tag == "ul"
        and "data-symbols" in before.attrib
        and not (before.tail or "").strip()
    ):
        before.extend(items)
        drop(place)
        return
    listing = Element("ul")
    listing.set("data-symbols", "")
    listing.extend(items)
    if before is not None and before.tag in ("ul", "ol", "dl") and label:
        place.addprevious(bold(label))
    replace(place, listing)


def keep_headings(root: HtmlElement) -> None:
    """A heading that opens and closes its section stays one."""
    for summary in select(root, "//summary[.//*[self::h2 or self::h3 or self::h4][@data-anchor]]"):
        summary.tag = "div"
        if (outer := summary.getparent()) is not None and outer.tag == "details":
            outer.tag = "div"


def settle_headings(root: HtmlElement) -> None:
    """Below a symbol, a heading without an anchor is a label: no section loses the symbol's name and anchor to it."""
    around = DEEPEST
    for element in list(root.iter(*HEADINGS)):
        level = int(element.tag[1])
        if "data-symbol" in element.attrib:
            around = level
        elif level <= around and not _is_inside(element):
            around = DEEPEST
        elif not element.get("data-anchor"):
            bold_paragraph(element)
        elif level <= around:
            element.tag = f"h{min(around + 1, DEEPEST)}"


def _is_inside(element: HtmlElement) -> bool:
    """True inside the body of a symbol."""
    return any("data-body" in outer.attrib for outer in element.iterancestors("div"))

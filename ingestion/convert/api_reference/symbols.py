"""The section of a symbol (a heading with its name and anchor, its signature as code), and its parameters, returns and errors as lists."""

import re
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy

from lxml.html import HtmlElement
from lxml.html.builder import E

from ingestion.convert.html.blocks import code_block
from ingestion.convert.html.dom import (
    HEADINGS,
    append_text,
    bold,
    bold_paragraph,
    class_names,
    drop,
    has_class,
    replace,
    select,
    text_of,
)

DEEPEST = 6
LONGEST_ITEM = 300
"""Characters of what is said of a constant or attribute that is an item of a list; one with more is a section."""

_NO_SIGNATURE = (
    "//*[{headerlink} or {viewcode-link} or {tsd-anchor-icon} or {permalink} or {src} or {doc-anchor} or {mlabels-right}]"
    "|//a[{anchor}]|//button|//svg"
)
_BREAK = "\u2028"
_WRITTEN: tuple[tuple[str, Callable[[str], str]], ...] = (
    ("//*[{sig-return-icon}]", lambda _: "->"),
    ("//*[{signature-attributes}]", lambda text: "?" if "opt" in text else ""),
    ("//*[{where}]", lambda text: f" {text}"),
    ("//*[{memtemplate}]", lambda text: f"{text}{_BREAK}"),
)
"""What stands in a signature for what a page shows otherwise."""
_BLOCKS = "//dl|//ul|//ol|//pre|//table|//h1|//h2|//h3|//h4|//h5|//h6|//blockquote"


def signature_of(element: HtmlElement) -> str:
    """The signature as code: its line breaks are those that readers see, links and their marks are gone."""
    element = deepcopy(element)
    element.tail = None
    for mark in select(element, _NO_SIGNATURE):
        drop(mark)
    for path, written in _WRITTEN:
        for mark in select(element, path):
            mark.text = written(mark.text or "")
    for line in element.iter("br", "dd"):
        indent = "\xa0" * 4 if line.tag == "dd" else ""
        if indent:
            line.text = _BREAK + indent + (line.text or "").lstrip()
            if line.getnext() is None:
                line.tail = _BREAK + (line.tail or "").lstrip()
        else:
            line.tail = _BREAK + (line.tail or "")
    text = re.sub(r"[ \t\r\n]+", " ", re.sub("[\u200b\u00ad\ufeff]", "", element.text_content()))
    lines = (re.sub(r"^ ", "", line).replace("\xa0", " ").rstrip() for line in text.replace("…", "...").split(_BREAK))
    return "\n".join(line for line in lines if line.strip()).strip()


def section(
    place: HtmlElement, name: str, signatures: Sequence[str], language: str, level: int = 0, anchor: str | None = None
) -> None:
    """Put a heading and the signatures in the element's place. A signature that says no more than the name isn't repeated.

    Level and anchor are those of the heading in this place, unless they are given.
    """
    anchor = place.get("data-anchor") if anchor is None else anchor
    attributes = {"data-symbol": "", **({"data-anchor": anchor} if anchor else {})}
    head = E(f"h{min(level or int(place.tag[1]), DEEPEST)}", E.code(name), attributes)
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
    return E.li(E.code(signature), f" – {said}" if said else "")


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
    listing = E.ul(*items, **{"data-symbols": ""})
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
        elif level <= around and not any("data-body" in outer.attrib for outer in element.iterancestors("div")):
            around = DEEPEST
        elif not element.get("data-anchor"):
            bold_paragraph(element)
        elif level <= around:
            element.tag = f"h{min(around + 1, DEEPEST)}"


_LISTS = "//dl[{field-list} or {notes} or {params} or {retval} or {exception} or {tparams} or {section}]"
_TABLES = "//table[{params} or {props} or {retval} or {exception} or {tparams} or {fieldtable}]"
_NAMES = ("name", "paramname", "fieldname")
_WRAPPERS = ("ul", "ol")


def write_fields(root: HtmlElement, present: frozenset[str]) -> None:
    """Make lists of the fields below `root`; `present` are the classes in it."""
    for table in reversed(select(root, _TABLES, present)):  # inner ones first
        _rows(table)
    for fields in select(root, _LISTS, present):
        before = fields.getprevious()
        follows = before is not None and len(before) and before[-1].tag == "ul"  # another list would be the same one
        # a list, or a name with what is said of it; other fields are definitions like any other
        bodies = (part for part in fields if part.tag == "dd")
        if follows or any(select(body, "/ul|/ol") or _name_of(_line_of(body)) is not None for body in bodies):
            _fields(fields)


def _fields(fields: HtmlElement) -> None:
    division = E.div()
    items: HtmlElement | None = None
    for child in list(fields):
        if child.tag == "dt":
            if text := text_of(child):
                division.append(bold(text))
            items = E.ul()
            division.append(items)
        elif child.tag == "dd" and items is not None:
            _described(child, items)
    for empty in [child for child in division if child.tag == "ul" and not len(child)]:
        drop(empty)
    replace(fields, division)


def _described(body: HtmlElement, items: HtmlElement) -> None:
    """Add what the field says to the list: the items of its own list, or all of it as one."""
    own = [child for child in body if child.tag in _WRAPPERS]
    listed = list(own[0]) if len(own) == len(body) == 1 and not (body.text or "").strip() else []
    if not listed:
        body.tag = "li"
        body.tail = None
        listed = [body]
    for entry in listed:
        if [child.tag for child in entry] == ["p"] and not (entry.text or "").strip():
            entry[0].drop_tag()
        _named(entry)
        items.append(entry)


def _named(entry: HtmlElement) -> None:
    """The name at the beginning as code, and the type behind it in parentheses too."""
    name = _name_of(_line_of(entry))
    if name is None:
        return
    if name.tag in ("strong", "b") or select(name, "//strong"):
        label = E.code(text_of(name))
        replace(name, label)
        name = label
    _typed(name)


def _line_of(entry: HtmlElement) -> HtmlElement:
    return entry[0] if len(entry) and entry[0].tag == "p" and not (entry.text or "").strip() else entry


def _name_of(line: HtmlElement) -> HtmlElement | None:
    """The name that the line begins with, in bold or code, also of a link."""
    if not len(line) or (line.text or "").strip():
        return None
    name = line[0]
    while name.tag == "span" and len(name) == 1 and not (name.text or "").strip():
        name = name[0]
    is_name = name.tag in ("strong", "b", "code") or (name.tag == "a" and bool(select(name, "//strong|//code")))
    return line[0] if is_name else None


def _typed(name: HtmlElement) -> None:
    """`(<em>str</em><em> or </em><a>bytes</a>)` behind the name -> `(` the type as code `)`."""
    opening = (name.tail or "").lstrip()
    if not opening.startswith("("):
        return
    text, taken = "", list[HtmlElement]()
    tail = opening
    while True:
        if (end := _closing(text, tail)) is not None:
            break
        text += tail
        following = (taken[-1] if taken else name).getnext()
        if following is None:
            return
        taken.append(following)
        text, tail = text + following.text_content(), following.tail or ""
    told = " ".join((text + tail[:end])[1:].split())
    for element in taken:
        element.tail = None
        drop(element)
    name.tail = " ("
    label = E.code(told)
    label.tail = ")" + tail[end + 1 :]
    name.addnext(label)
    if not told:
        drop(label)


def _closing(before: str, tail: str) -> int | None:
    """Returns the index in `tail` of the parenthesis that closes the one opened before it or in it."""
    depth = before.count("(") - before.count(")")
    for at, character in enumerate(tail):
        depth += (character == "(") - (character == ")")
        if character == ")" and not depth:
            return at
    return None


def _rows(table: HtmlElement) -> None:
    """A table of parameters as a list; one of other make stays."""
    rows = [row for row in table.iter("tr") if next(row.iterancestors("table")) is table]
    items = [item for row in rows if (item := _row(row)) is not None]
    labels = [text_of(cell) for row in rows for cell in row if cell.tag == "th" and cell.get("colspan")]
    if not items:
        return
    listing = E.ul(*items)
    replace(table, listing)
    for label in filter(None, labels):
        listing.addprevious(bold(label))


def _row(row: HtmlElement) -> HtmlElement | None:
    cells = [cell for cell in row if cell.tag == "td"]
    name = next((cell for cell in cells if set(_NAMES) & set((cell.get("class") or "").split())), None)
    if name is None or len(cells) < 2:
        return None
    item, about = E.li(E.code(text_of(name))), cells[-1]
    facts = [fact for cell in cells[:-1] if cell is not name and (fact := _fact(cell)) is not None]
    for number, fact in enumerate(facts):
        append_text(item, ", " if number else " (")
        item.append(fact)
    append_text(item, ")" if facts else "")
    if text_of(about):
        append_text(item, " – ")
        _moved(about, item)
    return item


def _fact(cell: HtmlElement) -> HtmlElement | None:
    """A type or a default as code, other words as they are; None if the cell says nothing."""
    text = text_of(cell).strip("<>[]")
    if not text:
        return None
    if has_class(cell, "type") or "param-type" in class_names(cell):
        return E.code(text)
    return E.span("= ", E.code(text)) if has_class(cell, "default") else E.span(text)


def _moved(source: HtmlElement, target: HtmlElement) -> None:
    """Move all that is in the cell to the end of the item; a paragraph at its beginning continues the line."""
    if len(source) and source[0].tag == "p" and not (source.text or "").strip():
        source[0].tag = "span"
    append_text(target, (source.text or "").strip())
    target.extend(list(source))

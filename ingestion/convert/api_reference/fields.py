"""Fields of parameters, returns and errors -> a label and a list: the name in code, its type, what it is."""

from __future__ import annotations

from lxml.html import Element, HtmlElement

from ingestion.convert.api_reference.symbols import code
from ingestion.convert.html.dom import bold, class_names, drop, has_class, replace, select, text_of

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
        if follows or any(part.tag == "dd" and _names(part) for part in fields):
            _fields(fields)


def _names(body: HtmlElement) -> bool:
    """True of a list, or a name with what is said of it; other fields are definitions like any other."""
    return bool(select(body, "/ul|/ol")) or _name_of(_line_of(body)) is not None


def _fields(fields: HtmlElement) -> None:
    division = Element("div")
    items: HtmlElement | None = None
    for child in list(fields):
        if child.tag == "dt":
            if text := text_of(child):
                division.append(bold(text))
            items = Element("ul")
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
        label = code(text_of(name))
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
    label = code(told)
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
    listing = Element("ul")
    listing.extend(items)
    replace(table, listing)
    for label in filter(None, labels):
        listing.addprevious(bold(label))


def _row(row: HtmlElement) -> HtmlElement | None:
    cells = [cell for cell in row if cell.tag == "td"]
    name = next((cell for cell in cells if set(_NAMES) & set((cell.get("class") or "").split())), None)
    if name is None or len(cells) < 2:
        return None
    item, about = Element("li"), cells[-1]
    item.append(code(text_of(name)))
    facts = [fact for cell in cells[:-1] if cell is not name and (fact := _fact(cell)) is not None]
    for number, fact in enumerate(facts):
        item[-1].tail = (item[-1].tail or "") + (", " if number else " (")
        item.append(fact)
    if facts:
        item[-1].tail = (item[-1].tail or "") + ")"
    if text_of(about):
        item[-1].tail = (item[-1].tail or "") + " – "
        _moved(about, item)
    return item


def _fact(cell: HtmlElement) -> HtmlElement | None:
    """A type or a default as code, other words as they are; None if the cell says nothing."""
    text = text_of(cell).strip("<>[]")
    if not text:
        return None
    if has_class(cell, "type") or "param-type" in class_names(cell):
        return code(text)
    fact = Element("span")
    if has_class(cell, "default"):
        fact.text = "= "
        fact.append(code(text))
    else:
        fact.text = text
    return fact


def _moved(source: HtmlElement, target: HtmlElement) -> None:
    """Move all that is in the cell to the end of the item; a paragraph at its beginning continues the line."""
    if len(source) and source[0].tag == "p" and not (source.text or "").strip():
        source[0].tag = "span"
    target[-1].tail = (target[-1].tail or "") + (source.text or "").strip()
    target.extend(list(source))

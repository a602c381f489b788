"""Definition lists -> lists in which each item begins with its bold term."""

from __future__ import annotations

from collections.abc import Iterator

from lxml.html import Element, HtmlElement

from ingestion.convert.dom import drop, replace, select, text_of

_BLOCKS = frozenset(
    {"p", "pre", "ul", "ol", "div", "table", "blockquote", "section", "article", "figure", "details", "hr"}
)
_TOO_LARGE = "//h1|//h2|//h3|//h4|//h5|//h6|//table|//dt[{sig}]"
"""What an item of a list can't hold, or would hide from readers of its headings."""


def write_definitions(root: HtmlElement, present: frozenset[str]) -> None:
    """Write `- **term**: definition`, or a bold line above definitions with headings or tables in them."""
    for table in select(root, "//*[{hdlist}]/table", present):  # Asciidoctor's horizontal lists
        _as_list(table)
    for table in select(root, "//*[{colist}]/table", present):  # Asciidoctor's notes to lines of code
        _as_notes(table)
    for classifier in select(root, "//dt//*[{classifier}]", present):  # Sphinx: its colon is drawn by the style
        classifier.text = f" ({text_of(classifier)})"
    for found in reversed(list(root.iter("dl"))):  # inner ones first
        made = _flat(found) if select(found, _TOO_LARGE) else _listed(found)
        if len(made) and found.getparent() is not None:
            replace(found, made)


def _flat(found: HtmlElement) -> HtmlElement:
    made = Element("div")
    for terms, definitions in _entries(found):
        for definition in definitions:
            definition.tag, definition.tail = "div", None
        made.extend([*([_line(terms)] if terms else ()), *definitions])
    return made


def _listed(found: HtmlElement) -> HtmlElement:
    made = Element("ul")
    made.extend([_item(terms, definitions) for terms, definitions in _entries(found)])
    if all(len(item) == 1 for item in made):
        for item in made:
            item[0].drop_tag()  # a list without blank lines
    return made


def _as_list(table: HtmlElement) -> None:
    for part in list(table.iter("td", "tr", "tbody", "colgroup")):
        if part.tag == "td":
            part.tag = "dt" if "hdlist1" in (part.get("class") or "") else "dd"
        elif part.tag == "colgroup":
            drop(part)
        else:
            part.drop_tag()
    table.tag = "dl"


def _as_notes(table: HtmlElement) -> None:
    for number in select(table, "//td[1]"):
        drop(number)
    for row in select(table, "//tr"):
        row.tag = "li"
    for part in list(table.iter("td", "tbody")):
        part.drop_tag()
    table.tag = "ol"


def _entries(found: HtmlElement) -> Iterator[tuple[list[HtmlElement], list[HtmlElement]]]:
    """(terms, their definitions), in order; groups may be in a <div> each."""
    terms, definitions = list[HtmlElement](), list[HtmlElement]()
    for part in [inner for child in found for inner in (child if child.tag == "div" else (child,))]:
        if part.tag == "dt":
            if definitions:
                yield terms, definitions
                terms, definitions = [], []
            terms.append(part)
        else:
            definitions.append(part)
    if terms or definitions:
        yield terms, definitions


def _item(terms: list[HtmlElement], definitions: list[HtmlElement]) -> HtmlElement:
    item, line = Element("li"), _line(terms)
    item.append(line)
    for number, definition in enumerate(definitions):
        if len(line) and not number:
            line[-1].tail = ": "
        first = line if not number else Element("p")
        if number:
            item.append(first)
        _pour(definition, first, item)
    return item


def _pour(definition: HtmlElement, line: HtmlElement, item: HtmlElement) -> None:
    """Move what a definition starts with into the line, if that is text, and the blocks after it into the item."""
    children = list(definition)
    if not (definition.text or "").strip() and children and children[0].tag == "p":
        start, rest, tail = children[0], children[1:], children[0].tail
        _append_text(line, (start.text or "").lstrip())
        line.extend(list(start))
    else:
        count = next((n for n, child in enumerate(children) if child.tag in _BLOCKS), len(children))
        rest, tail = children[count:], ""
        _append_text(line, (definition.text or "").lstrip())
        line.extend(children[:count])
    if (tail or "").strip():
        item.append(Element("p"))
        item[-1].text = tail
    item.extend(rest)


def _line(terms: list[HtmlElement]) -> HtmlElement:
    line = Element("p")
    for term in terms:
        if not text_of(term):
            continue
        if len(line):
            line[-1].tail = ", "
        line.append(_strong(term))
    return line


def _strong(term: HtmlElement) -> HtmlElement:
    """The term in bold; a signature as code, so that nothing in it is taken for markup."""
    strong = Element("strong")
    if "sig" in (term.get("class") or "").split():
        strong.append(Element("code"))
        strong[0].text = text_of(term)
        return strong
    for inner in list(term.iter("strong", "b", "p", "div", "h1", "h2", "h3", "h4", "h5", "h6")):
        inner.drop_tag()
    strong.text = (term.text or "").lstrip()
    strong.extend(list(term))
    last = strong[-1] if len(strong) else None
    if last is None:
        strong.text = strong.text.rstrip().removesuffix(":")
    elif last.tail or last.tag != "span":
        last.tail = (last.tail or "").rstrip().removesuffix(":")
    elif text_of(last) == ":":  # Sphinx: the colon of a field
        strong.remove(last)
    return strong


def _append_text(line: HtmlElement, text: str) -> None:
    if len(line):
        line[-1].tail = (line[-1].tail or "") + text
    else:
        line.text = (line.text or "") + text

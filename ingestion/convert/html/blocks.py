"""Blocks of HTML that Markdown can't hold as they are: code of highlighters, lists of definitions, blocks in cells of tables."""

import re
from collections.abc import Iterator
from copy import deepcopy
from functools import cache
from itertools import islice

from lxml.html import HtmlElement
from lxml.html.builder import E
from pygments.lexers import get_all_lexers  # type: ignore[import-untyped]

from ingestion.convert.html.dom import ROWS, append_text, drop, drop_all, has_class, replace, select, text_of

_NO_CODE = (
    "//*[{linenos} or {linenodiv} or {lineno} or {line-number} or {linenumber} or {line-numbers-wrapper} or {copy}]|//button"
    "|//*[{ln} or {lnt} or {gutter} or {rouge-gutter} or {line-numbers} or {hljs-ln-numbers} or {blob-num}]"
    "|//*[{language-id} or {select-none} or {unselectable} or {vp-copy-ignore}]"
    "|//*[contains(translate(@class, 'LN-_', 'ln'), 'linen')][number() = number()]"
    "|//*[self::span or self::a][@aria-hidden='true' or contains(translate(@style, ' ', ''), 'user-select:none')]"
    "[string-length(normalize-space()) < 8]"
)
_WITHOUT_PRE = (
    "//div[{fragment} and div[{line}]]"  # Doxygen
    "|//xmp|//listing|//br/parent::*[self::code or self::samp or self::tt][not(ancestor::pre)]"
    "|//div[{codehilite} or {hljs} or {prettyprint} or {sourceCode} or {shiki}][not(.//pre or .//p or .//div or .//table)]"
    "|//*[@style][self::div or self::code or self::p][contains(concat(translate(@style, ' ', ''), ';'), 'white-space:pre;')]"
    "[self::div or contains(., '\n')][not(ancestor::pre or .//pre or .//p or .//div or .//table or .//ul)]"
)
"""Code in lines without a `<pre>`, set so by its style, or by line breaks."""

_GUTTERED = (
    "//table[{highlighttable} or {rouge-table} or {rouge-line-table} or {hljs-ln} or {lntable} or {linenotable} or {CodeRay}]"
    "|//table[.//td[{gutter} or {linenos} or {blob-num} or {line-numbers}]]"
    "|//table[count(.//td)=1 and .//td/pre and not(.//th)]"  # DocBook's frame around code
)
_GUTTER = (
    "//td[{linenos} or {gutter} or {rouge-gutter} or {line-numbers} or {hljs-ln-numbers} or {blob-num}]"
    "|//td[{lntd} and following-sibling::td]"
)
_LANGUAGE = re.compile(
    r"(?:^|\s)(?:language-|lang-|highlight-source-|highlight-text-(?=html|xml)|highlight-(?!ipynb)|hl-|brush:\s*)([\w+#.-]+?)(?:-basic)?(?=[\s;]|$)"
)
_HIGHLIGHTERS = frozenset({
    "hljs", "highlightjs", "sourceCode", "prettyprint", "highlight", "CodeRay", "rouge", "chroma", "shiki",
    "syntaxhighlighter", "rust-example-rendered", "item-decl", "prism-code",
})  # fmt: skip
"""Classes beside which a language may stand without a prefix."""

_NO_LANGUAGE = frozenset(
    {"", "default", "none", "notranslate", "plaintext", "source", "wrapper", "text-block", "output"}
)
_LINES = frozenset({"div", "li", "p"})


def rebuild_code(root: HtmlElement, present: frozenset[str]) -> None:
    """Replace every <pre> below `root` by a plain one, and what holds code beside line numbers.

    `present` are the classes in `root`.
    """
    for code in select(root, "//code[.//pre]"):  # no valid HTML, but parsers differ in what they make of it
        for pre in (*code.iter("pre"), *code.iterancestors("pre")):
            pre.set("data-language", _language(code))
        code.drop_tag()
    for code in select(root, "//*[self::code or self::tt][a and not(normalize-space(text()[1]))]"):
        code.text = None  # the converter makes code of its own of a blank before a link
    for table in select(root, _GUTTERED, present):
        _unwrap_table(table)
    for element in select(root, _WITHOUT_PRE, present):
        element.tag = "pre"
    for pre in select(root, "//pre"):
        if pre.getparent() is not None and next(pre.iterancestors("pre"), None) is None:
            _rebuild(pre, present)


def _unwrap_table(table: HtmlElement) -> None:
    """Make one <pre> of a table with a column of line numbers, or only lines if it is in a <pre>."""
    language = _language(table)
    drop_all(table, _GUTTER)
    for title in select(table, "//th[{filename}]"):  # mkdocs-material
        table.addprevious(E.p(title.text_content()))
        drop(title)
    for element in list(table.iter("tbody", "thead", "tr", "td", "th", "pre")):
        element.tag = "div" if element.tag == "tr" else "span"
    table.tag = "div" if next(table.iterancestors("pre"), None) is not None else "pre"
    if language and table.tag == "pre":
        table.set("class", f"language-{language}")


def _rebuild(pre: HtmlElement, present: frozenset[str]) -> None:
    language = _language(pre)
    drop_all(pre, _NO_CODE, present)
    for figure in pre.iterancestors("figure"):
        figure.tag = "div"  # in one, the converter changes code that looks like an image of Markdown
    for element in pre.iter("br"):
        element.tail = "\n" + (element.tail or "")
    _end_lines(pre)
    replace(pre, code_block(pre.text_content().replace("\u200b", "") or "\n", language))


def code_block(text: str, language: str) -> HtmlElement:
    """The text as a block of code."""
    return E.pre(E.code(text, **{"class": f"language-{language}"} if language else {}))


def _end_lines(pre: HtmlElement) -> None:
    """Highlighters that make an element of each line need not write the line ends."""
    for line in pre.iter(*_LINES):
        if line is pre or line.getnext() is None or line.getnext().tag != line.tag:
            continue
        if not line.text_content().endswith("\n") and not (line.tail or "").startswith("\n"):
            line.tail = "\n" + (line.tail or "")


def _language(pre: HtmlElement) -> str:
    ancestors = list(pre.iterancestors())[:6]
    for element in (*pre.iter("code"), pre, *ancestors):
        named = element.get("data-lang") or element.get("data-language")
        match = _LANGUAGE.search(f"{element.get('class') or ''} {element.get('data-syntaxhighlighter-params') or ''}")
        language = (named or (match[1] if match else _bare(element))).strip().lower()
        if language not in _NO_LANGUAGE and re.fullmatch(r"[\w+#.-]+", language):
            return language
    return ""


def _bare(element: HtmlElement) -> str:
    """The one class that names a language, on an element of a highlighter or on <code> (`hljs python`, `sourceCode python`)."""
    classes = (element.get("class") or "").split()
    if element.tag == "pre" and "mermaid" in classes:
        return "mermaid"  # a diagram, which a script draws
    if element.tag != "code" and not _HIGHLIGHTERS.intersection(classes):
        return ""
    named = [name for name in classes if name.lower() in _known() and name not in _HIGHLIGHTERS]
    return named[0] if len(named) == 1 else ""


@cache
def _known() -> frozenset[str]:
    return frozenset(alias for _, aliases, _, _ in get_all_lexers(plugins=False) for alias in aliases)


_BLOCKS = frozenset(
    {"p", "pre", "ul", "ol", "div", "table", "blockquote", "section", "article", "figure", "details", "hr"}
)
_TOO_LARGE = "//h1|//h2|//h3|//h4|//h5|//h6|//table|//dt[{sig}]"
"""Elements that an item of a list can't hold, or would hide from readers of its headings."""


def write_definitions(root: HtmlElement, present: frozenset[str]) -> None:
    """Write `- **term**: definition`, or a bold line above definitions with headings or tables in them."""
    for table in select(root, "//*[{hdlist}]/table", present):  # Asciidoctor's horizontal lists
        _as_list(table)
    for table in select(root, "//*[{colist}]/table", present):  # Asciidoctor's notes to lines of code
        _as_notes(table)
    for classifier in select(root, "//dt//*[{classifier}]", present):  # Sphinx: its colon is drawn by the style
        classifier.text = f" ({text_of(classifier)})"
    for definitions in reversed(list(root.iter("dl"))):  # inner ones first
        written = _flat(definitions) if select(definitions, _TOO_LARGE) else _listed(definitions)
        if len(written) and definitions.getparent() is not None:
            replace(definitions, written)


def _flat(found: HtmlElement) -> HtmlElement:
    flat = E.div()
    for terms, definitions in _entries(found):
        for definition in definitions:
            definition.tag, definition.tail = "div", None
        flat.extend([*([_line(terms)] if terms else ()), *definitions])
    return flat


def _listed(found: HtmlElement) -> HtmlElement:
    listing = E.ul(*(_item(terms, definitions) for terms, definitions in _entries(found)))
    if all(len(item) == 1 for item in listing):
        for item in listing:
            item[0].drop_tag()  # a list without blank lines
    return listing


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
    drop_all(table, "//td[1]")
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
    line = _line(terms)
    item = E.li(line)
    if len(line):
        append_text(line, ": " if definitions else "")
    for number, definition in enumerate(definitions):
        if number:
            item.append(E.p())
        _pour(definition, item[-1] if number else line, item)
    return item


def _pour(definition: HtmlElement, line: HtmlElement, item: HtmlElement) -> None:
    """Move what a definition starts with into the line, if that is text, and the blocks after it into the item."""
    children = list(definition)
    if not (definition.text or "").strip() and children and children[0].tag == "p":
        start, rest, tail = children[0], children[1:], children[0].tail
        append_text(line, (start.text or "").lstrip())
        line.extend(list(start))
    else:
        count = next((n for n, child in enumerate(children) if child.tag in _BLOCKS), len(children))
        rest, tail = children[count:], ""
        append_text(line, (definition.text or "").lstrip())
        line.extend(children[:count])
    if (tail or "").strip():
        item.append(E.p(tail))
    item.extend(rest)


def _line(terms: list[HtmlElement]) -> HtmlElement:
    line = E.p()
    for term in filter(text_of, terms):
        append_text(line, ", " if len(line) else "")
        line.append(_strong(term))
    return line


def _strong(term: HtmlElement) -> HtmlElement:
    """The term in bold; a signature as code, so that nothing in it is taken for markup."""
    if has_class(term, "sig"):
        return E.strong(E.code(text_of(term)))
    for inner in list(term.iter("strong", "b", "p", "div", "h1", "h2", "h3", "h4", "h5", "h6")):
        inner.drop_tag()
    strong = E.strong((term.text or "").lstrip(), *term)
    last = strong[-1] if len(strong) else None
    if last is None:
        strong.text = strong.text.rstrip().removesuffix(":")
    elif last.tail or last.tag != "span":
        last.tail = (last.tail or "").rstrip().removesuffix(":")
    elif text_of(last) == ":":  # Sphinx: the colon of a field
        strong.remove(last)
    return strong


_HOLDS = "/descendant::*[self::p or self::div or self::li or self::pre or self::dl or self::blockquote][1]"
_DEEPEST = 6
"""Levels of lists that are told apart."""

_LAYOUT = "//table|//h1|//h2|//h3|//h4|//h5|//h6"
"""A cell with one of these is no cell of a table to readers."""


def write_cells(root: HtmlElement) -> None:
    """Write each line of code in a cell as code of its own, and items of lists behind their marks."""
    for cell in select(root, "//td|//th"):
        if not select(cell, _HOLDS) or select(cell, _LAYOUT):
            continue
        for items in list(cell.iter("ul", "ol")):
            for number, item in enumerate(items.iterchildren("li"), 1):
                _mark(item, f"{number}. " if items.tag == "ol" else "- ")
        for pre in list(cell.iter("pre")):
            replace(pre, _lines(pre))
        for wrapper in list(cell.iter("ul", "ol", "dl", "section", "figure")):
            wrapper.drop_tag()
        for block in list(cell.iter("p", "div", "li", "blockquote", "dt", "dd", "details", "br")):
            _on_line(block)


def _on_line(block: HtmlElement) -> None:
    """Make a <div> of the block, which the converter sets on a line of its own; empty ones go."""
    block.text, block.tail = ((text or "").lstrip(" \t\r\n") for text in (block.text, block.tail))
    if block.tag != "br":
        block.tag = "div"
        if not len(block) and not block.text:
            drop(block)


def _mark(item: HtmlElement, mark: str) -> None:
    """Write the mark of the item, indented by how deep in lists it is."""
    lists = list(islice(item.iterancestors("ul", "ol", "td", "th"), _DEEPEST))
    depth = next((number for number, element in enumerate(lists) if element.tag in ("td", "th")), _DEEPEST)
    if len(item) and item[0].tag == "p" and not (item.text or "").strip():
        item[0].drop_tag()  # a loose item: its mark stands on the line of its text
    item.text = "\xa0\xa0" * max(0, depth - 1) + mark + (item.text or "").lstrip()


def _lines(pre: HtmlElement) -> HtmlElement:
    lines = [line.rstrip() for line in pre.text_content().expandtabs(4).split("\n") if line.strip()]
    return E.div(*[part for line in lines for part in (E.br(), E.code(line))][1:])


def write_tables(root: HtmlElement) -> None:
    """Repeat a cell in each row that it spans, and put an empty row above a table without header."""
    for table in root.iter("table"):
        _spread(table)
        _head(table)


def _spread(table: HtmlElement) -> None:
    """Repeat a cell in each row that it spans."""
    if not select(table, f"{ROWS}/*[@rowspan]"):
        return
    rows = select(table, ROWS)
    widest = max(map(len, rows))
    spanning: dict[int, tuple[HtmlElement, int]] = {}  # by column, a cell and how many rows it spans yet
    for number, row in enumerate(rows):
        if number and row.getparent() is not rows[number - 1].getparent():
            spanning.clear()
        column, cells = 0, list(row)
        while cells or any(below >= column for below in spanning):
            cell, left = spanning.pop(column, (None, 0))
            if cell is None:
                if not cells:
                    column = min(below for below in spanning if below >= column)
                    continue
                cell = cells.pop(0)
                left = _span(cell, "rowspan") or len(rows)
                cell.attrib.pop("rowspan", None)
            else:
                cell = E.td() if select(cell, _LAYOUT) else deepcopy(cell)
                cell.tail = None
                row.insert(len(row) - len(cells), cell)
            if left > 1 and len(spanning) < widest:
                spanning[column] = cell, left - 1
            column += max(1, _span(cell, "colspan"))


def _span(cell: HtmlElement, name: str) -> int:
    value = cell.get(name) or "1"
    return int(value) if value.isdecimal() else 1


def _head(table: HtmlElement) -> None:
    """Put an empty row above the first one, which the converter would take for a header."""
    rows = select(table, ROWS)
    if not rows or len(rows[0]) < 2 or select(table, f"/thead|{_LAYOUT}") or _is_header(*rows[:2]):
        return
    width = sum(min(_span(cell, "colspan"), len(rows[0])) for cell in rows[0])
    table.insert(0, E.thead(E.tr(*(E.th() for _ in range(width)))))


def _is_header(row: HtmlElement, following: HtmlElement | None = None) -> bool:
    """True for cells of headers, or in bold, or of plain words above a first column of code, links or numbers."""
    if all(cell.tag == "th" or text_of(cell) == " ".join(map(text_of, cell.iter("b", "strong"))) for cell in row[1:]):
        return True
    return following is not None and all(map(_is_plain, row)) and not all(map(_is_plain, following[:1]))


def _is_plain(cell: HtmlElement) -> bool:
    return not select(cell, "//code|//a") and not any(map(str.isdigit, text_of(cell)))

"""An ODT file -> HTML. OpenDocument is close to HTML: paragraphs, headings with levels, lists, tables, notes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import lxml.html
from lxml import etree
from lxml.html.builder import E

from ingestion.convert.files import is_code_style, is_monospace
from ingestion.errors import ConversionError
from plugins.formats.office.package import Package

_TEXT = "{urn:oasis:names:tc:opendocument:xmlns:text:1.0}"
_TABLE = "{urn:oasis:names:tc:opendocument:xmlns:table:1.0}"
_STYLE = "{urn:oasis:names:tc:opendocument:xmlns:style:1.0}"
_OFFICE = "{urn:oasis:names:tc:opendocument:xmlns:office:1.0}"
_FO = "{urn:oasis:names:tc:opendocument:xmlns:xsl-fo-compatible:1.0}"
_SVG = "{urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0}"
_HREF = "{http://www.w3.org/1999/xlink}href"

MOST_SPACES = 200
DEEPEST = 60
_LEFT_OUT = frozenset(
    [f"{_TEXT}{name}" for name in ("tracked-changes", "sequence-decls", "table-of-content", "alphabetical-index")]
    + [f"{_TEXT}{name}" for name in ("variable-decls", "user-field-decls", "bookmark-start", "bookmark-end")]
    + [f"{_OFFICE}{name}" for name in ("forms", "annotation", "annotation-end")]
)
_INLINE = frozenset([f"{_TEXT}{name}" for name in ("span", "a", "s", "tab", "line-break", "note", "soft-page-break")])


def odt_html(package: Package) -> str:
    """The HTML of the file's text. Raises `ConversionError` if it can't be read."""
    content = package.xml("content.xml")
    body = content.find(f"{_OFFICE}body/{_OFFICE}text") if content is not None else None
    if content is None or body is None:
        raise ConversionError(f"{package.url} is damaged: it has no text of a word processor")
    styles = package.xml("styles.xml")
    writer = _Writer(_Styles([root for root in (styles, content) if root is not None]))
    root = E.div()
    writer.blocks(body, root)
    if writer.notes:
        root.append(E.ol(*writer.notes))
    return "".join(lxml.html.tostring(child, encoding="unicode") for child in root)


@dataclass
class _Styles:
    """Styles of a file."""

    roots: list[etree._Element]
    _by_name: dict[str, etree._Element] = field(init=False)
    _code: dict[str, bool] = field(default_factory=dict)
    _fonts: dict[str, etree._Element] = field(init=False)
    _counted: set[str] = field(init=False)

    def __post_init__(self) -> None:
        self._by_name = {
            style.get(f"{_STYLE}name", ""): style for root in self.roots for style in root.iter(f"{_STYLE}style")
        }
        self._fonts = {
            font.get(f"{_STYLE}name", ""): font for root in self.roots for font in root.iter(f"{_STYLE}font-face")
        }
        lists = (style for root in self.roots for style in root.iter(f"{_TEXT}list-style"))
        self._counted = {
            style.get(f"{_STYLE}name", "")
            for style in lists
            if len(style) and style[0].tag == f"{_TEXT}list-level-style-number"
        }

    def counts(self, name: str) -> bool:
        """True for a list style whose first level has numbers."""
        return name in self._counted

    def is_named(self, name: str, wanted: str) -> bool:
        """True for the style, or one that is made of it."""
        return wanted in self._line(name)

    def is_code(self, name: str) -> bool:
        """True when the style or one that it is made of has a font of code, or the name of a style for it."""
        if name not in self._code:
            self._code[name] = any(is_code_style(style) or self._is_mono(style) for style in self._line(name))
        return self._code[name]

    def _line(self, name: str) -> list[str]:
        """The name, and those of the styles that it is made of."""
        line: list[str] = []
        while name and name not in line:
            line.append(name)
            style = self._by_name.get(name)
            name = style.get(f"{_STYLE}parent-style-name", "") if style is not None else ""
        return line

    def _is_mono(self, name: str) -> bool:
        style = self._by_name.get(name)
        properties = style.find(f"{_STYLE}text-properties") if style is not None else None
        if properties is None:
            return False
        font = properties.get(f"{_STYLE}font-name", "")
        face = self._fonts.get(font)
        pitch = face.get(f"{_STYLE}font-pitch", "") if face is not None else ""
        family = face.get(f"{_SVG}font-family", "") if face is not None else ""
        return pitch == "fixed" or is_monospace(f"{font} {family} {properties.get(f'{_FO}font-family', '')}")


@dataclass
class _Writer:
    """Writes HTML; `notes` are those at the end."""

    styles: _Styles
    notes: list[lxml.html.HtmlElement] = field(default_factory=list)

    def blocks(self, parent: etree._Element, into: lxml.html.HtmlElement, depth: int = 0) -> None:
        """Write the blocks of an element."""
        if depth > DEEPEST:
            return
        for child in parent:
            if child.tag in _LEFT_OUT or not isinstance(child.tag, str):
                continue
            if child.tag == f"{_TEXT}h":
                level = child.get(f"{_TEXT}outline-level", "1")
                into.append(self._inline(child, E(f"h{min(int(level), 6) if level.isdecimal() else 1}")))
            elif child.tag == f"{_TEXT}p":
                self._paragraph(child, into)
            elif child.tag == f"{_TEXT}list":
                _add_list(into, self._list(child, depth))
            elif child.tag == f"{_TABLE}table":
                into.append(self._table(child, depth))
            else:  # sections, frames with text
                self.blocks(child, into, depth + 1)

    def _paragraph(self, paragraph: etree._Element, into: lxml.html.HtmlElement) -> None:
        style = paragraph.get(f"{_TEXT}style-name", "")
        if self.styles.is_named(style, "Title"):
            into.append(self._inline(paragraph, E.h1({"class": "title"})))
        elif self.styles.is_code(style):
            code = "".join(_plain(paragraph))
            if len(into) and into[-1].tag == "pre":
                into[-1].text += "\n" + code
            else:
                into.append(E.pre(code))
        else:
            into.append(self._inline(paragraph, E.p()))
            for frame in paragraph.iter(f"{_TEXT}p"):  # a text box that hangs on the paragraph
                if frame is not paragraph and not any(
                    ancestor.tag == f"{_TEXT}note" for ancestor in frame.iterancestors()
                ):
                    self._paragraph(frame, into)

    def _list(self, found: etree._Element, depth: int) -> lxml.html.HtmlElement:
        items = E("ol" if self.styles.counts(found.get(f"{_TEXT}style-name", "")) else "ul")
        for item in found:
            if item.tag in (f"{_TEXT}list-item", f"{_TEXT}list-header"):
                items.append(E.li())
                self.blocks(item, items[-1], depth + 1)
                if len(items[-1]) and items[-1][0].tag == "p":
                    items[-1][0].drop_tag()  # a list without blank lines
        return items

    def _table(self, found: etree._Element, depth: int) -> lxml.html.HtmlElement:
        table = E.table()
        for row in found.iter(f"{_TABLE}table-row"):
            table.append(E.tr())
            for cell in row.iterchildren(f"{_TABLE}table-cell"):
                table[-1].append(E("td" if len(table) > 1 else "th"))
                self.blocks(cell, table[-1][-1], depth + 1)
        return table

    def _inline(self, element: etree._Element, into: lxml.html.HtmlElement, depth: int = 0) -> lxml.html.HtmlElement:
        """The element's text and what is in it, added to `into`."""
        _append(into, element.text or "")
        for child in element if depth < DEEPEST else ():
            if child.tag in _INLINE:
                self._one(child, into, depth)
            elif isinstance(child.tag, str) and child.tag not in _LEFT_OUT and child.tag.startswith(_TEXT):
                self._inline(child, into, depth + 1)
            _append(into, child.tail or "")
        return into

    def _one(self, child: etree._Element, into: lxml.html.HtmlElement, depth: int) -> None:
        name = child.tag.removeprefix(_TEXT)
        href = child.get(_HREF, "")
        if name == "note":
            self._note(child, into)
        elif name == "line-break":
            into.append(E.br())
        elif name in ("s", "tab"):
            _append(into, "".join(_plain(child)))
        elif name == "a" and href and not href.startswith("#"):
            into.append(self._inline(child, E.a(href=href), depth + 1))
        elif name == "span" and self.styles.is_code(child.get(f"{_TEXT}style-name", "")):
            into.append(E.code("".join(_plain(child))))
        else:
            self._inline(child, into, depth + 1)

    def _note(self, note: etree._Element, into: lxml.html.HtmlElement) -> None:
        item = E.li()
        self.notes.append(item)
        into.append(E.sup(f"[{len(self.notes)}]"))
        body = note.find(f"{_TEXT}note-body")
        if body is not None:
            self.blocks(body, item)


def _add_list(into: lxml.html.HtmlElement, made: lxml.html.HtmlElement) -> None:
    """Add a list; one that holds a list only is written by LibreOffice for deeper items of the list before."""
    while len(into) and into[-1].tag in ("ol", "ul") and len(into[-1]) and len(made) == 1 and len(made[0]) == 1:
        if made[0][0].tag not in ("ol", "ul") or (made[0].text or "").strip():
            break
        into, made = into[-1][-1], made[0][0]
    into.append(made)


def _plain(element: etree._Element) -> Iterator[str]:
    """The text of an element with its spaces and line breaks."""
    for event, part in etree.iterwalk(element, events=("start", "end")):
        if event == "start":
            if part.tag == f"{_TEXT}s":
                count = part.get(f"{_TEXT}c", "1")
                yield " " * min(int(count) if count.isdecimal() else 1, MOST_SPACES)
            elif part.tag in (f"{_TEXT}tab", f"{_TEXT}line-break"):
                yield "\t" if part.tag.endswith("tab") else "\n"
            yield part.text or ""
        elif part is not element:
            yield part.tail or ""


def _append(into: lxml.html.HtmlElement, text: str) -> None:
    if len(into):
        into[-1].tail = (into[-1].tail or "") + text
    else:
        into.text = (into.text or "") + text

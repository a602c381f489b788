"""An ODT file -> HTML. OpenDocument is close to HTML, so that most elements only get another name."""

from collections.abc import Sequence
from functools import cache

from lxml import etree

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
_LEFT_OUT = (
    *(f"{_TEXT}{name}" for name in ("tracked-changes", "sequence-decls", "table-of-content", "alphabetical-index")),
    *(f"{_TEXT}{name}" for name in ("variable-decls", "user-field-decls", "note-citation")),
    *(f"{_OFFICE}{name}" for name in ("forms", "annotation", "annotation-end")),
    f"{_TABLE}covered-table-cell",
    etree.Comment,
    etree.ProcessingInstruction,
)
_NAMES = {
    f"{_TEXT}list-item": "li",
    f"{_TEXT}list-header": "li",
    f"{_TEXT}note": "sup",
    f"{_TEXT}line-break": "br",
    f"{_TABLE}table": "table",
    f"{_TABLE}table-row": "tr",
    f"{_TABLE}table-cell": "td",
}


def odt_html(package: Package) -> str:
    """The HTML of the file's text. Raises `ConversionError` if it can't be read."""
    content = package.xml("content.xml")
    body = content.find(f"{_OFFICE}body/{_OFFICE}text") if content is not None else None
    if content is None or body is None:
        raise ConversionError(f"{package.url} is damaged: it has no text of a word processor")
    styles = package.xml("styles.xml")
    known = _Styles([root for root in (styles, content) if root is not None])
    _simplify(body)
    for element in list(body.iter()):
        _rename(element, known)
    _settle(body)
    # sections, frames, fields: what is in them stays
    etree.strip_tags(body, *{element.tag for element in body.iter() if element.tag.startswith("{")})
    return "".join(etree.tostring(child, encoding="unicode", method="html") for child in body)


class _Styles:
    def __init__(self, roots: Sequence[etree._Element]) -> None:
        def by_name(tag: str) -> dict[str, etree._Element]:
            return {style.get(f"{_STYLE}name", ""): style for root in roots for style in root.iter(tag)}

        self._by_name, self._fonts = by_name(f"{_STYLE}style"), by_name(f"{_STYLE}font-face")
        self._lists = by_name(f"{_TEXT}list-style")
        self.is_code = cache(
            lambda name: any(is_code_style(style) or self._is_mono(style) for style in self.line(name))
        )

    def counts(self, name: str) -> bool:
        """True for a list style whose first level has numbers."""
        style = self._lists.get(name)
        return style is not None and len(style) > 0 and style[0].tag == f"{_TEXT}list-level-style-number"

    def line(self, name: str) -> list[str]:
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
        face = self._fonts.get(font, {})
        named = f"{font} {face.get(f'{_SVG}font-family', '')} {properties.get(f'{_FO}font-family', '')}"
        return face.get(f"{_STYLE}font-pitch") == "fixed" or is_monospace(named)


def _simplify(body: etree._Element) -> None:
    """Leave out what readers don't see, write blanks as text, and move the notes into a list at the end."""
    etree.strip_elements(body, *_LEFT_OUT, with_tail=False)
    for element in body.iter():
        if not element.tag.startswith(_TEXT):
            element.text = None  # names and data of pictures
    for blank in body.iter(f"{_TEXT}s", f"{_TEXT}tab"):
        count = blank.get(f"{_TEXT}c", "1")
        blank.text = (
            "\t" if blank.tag.endswith("tab") else " " * min(int(count) if count.isdecimal() else 1, MOST_SPACES)
        )
    if notes := list(body.iter(f"{_TEXT}note")):
        listing = etree.SubElement(body, "ol")
        for number, note in enumerate(notes, 1):
            etree.SubElement(listing, "li").extend(note.findall(f"{_TEXT}note-body/*"))
            note.text = f"[{number}]"


def _rename(element: etree._Element, styles: _Styles) -> None:
    """Make HTML of the element; what has no name there keeps its own."""
    style, address = element.get(f"{_TEXT}style-name", ""), element.get(_HREF, "")
    if element.tag == f"{_TEXT}h":
        level = element.get(f"{_TEXT}outline-level", "1")
        _become(element, f"h{min(int(level), 6) if level.isdecimal() else 1}")
    elif element.tag == f"{_TEXT}p":
        _paragraph(element, styles, style)
    elif element.tag == f"{_TEXT}list":
        _become(element, "ol" if styles.counts(style) else "ul")
    elif element.tag == f"{_TEXT}span" and styles.is_code(style):
        _become_code(element, "code")
    elif element.tag == f"{_TEXT}a" and address[:1] not in ("", "#"):
        _become(element, "a", href=address)
    elif name := _NAMES.get(element.tag):
        _become(element, name)


def _paragraph(paragraph: etree._Element, styles: _Styles, style: str) -> None:
    for inner in reversed(list(paragraph.iter(f"{_TEXT}p"))[1:]):  # of a text box that hangs on the paragraph
        paragraph.addnext(inner)
    if "Title" in styles.line(style):
        _become(paragraph, "h1", **{"class": "title"})
    elif not styles.is_code(style):
        _become(paragraph, "p")
    else:
        _become_code(paragraph, "pre")
        if (before := paragraph.getprevious()) is not None and before.tag == "pre":
            before.text += f"\n{paragraph.text}"
            paragraph.getparent().remove(paragraph)


def _become(element: etree._Element, name: str, **attributes: str) -> None:
    element.tag = name
    element.attrib.clear()
    element.attrib.update(attributes)


def _become_code(element: etree._Element, name: str) -> None:
    for line_break in element.iter(f"{_TEXT}line-break"):
        line_break.text = "\n"
    text = "".join(element.itertext())
    del element[:]
    element.text = text
    _become(element, name)


def _join(listing: etree._Element) -> None:
    """Put a list that holds a list only into the one before it: so LibreOffice writes deeper items of that."""
    while (before := listing.getprevious()) is not None and before.tag in ("ol", "ul") and len(before):
        inner = listing[0][0] if len(listing) == len(listing[0]) == 1 else listing
        if inner is listing or inner.tag not in ("ol", "ul") or (listing[0].text or "").strip():
            return
        before[-1].append(inner)
        listing.getparent().remove(listing)
        listing = inner


def _settle(body: etree._Element) -> None:
    """Make lists without blank lines, and a head of the first row of each table."""
    for item in body.iter("li"):
        if len(item) and item[0].tag == "p":
            item[0].tag = f"{_TEXT}p"
    for listing in list(body.iter("ol", "ul")):
        _join(listing)
    for table in body.iter("table"):
        for cell in next(table.iter("tr"), ()):
            cell.tag = "th"

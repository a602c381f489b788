"""DOCX files -> documents. A file is a ZIP archive of XML, opened within limits; mammoth makes HTML of it, which goes the way of any HTML
page. Code is found by the fonts of styles and runs, headings by outline levels too.

A link leads to the file, because no program opens one at a heading.
"""

import io
import re
import zipfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import lxml.html
from lxml import etree

from app.text.blocks import breadcrumb
from ingestion.convert.document import Document, SourceText
from ingestion.convert.files import Facts, is_code_style, is_monospace, written_document
from ingestion.convert.html.dom import drop
from ingestion.errors import ConversionError
from plugins.formats import DOCX

MOST_UNPACKED = 200_000_000
"""Bytes of all parts together, pictures too."""

MOST_XML = 40_000_000
"""Bytes of the parts that are read; a thousand pages of text have 10 MB."""

MOST_PARTS = 5_000
_OLE = b"\xd0\xcf\x11\xe0"
_DC = "{http://purl.org/dc/elements/1.1/}"
_TERMS = "{http://purl.org/dc/terms/}"
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")
_LANGUAGE = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8})*")
INSTALL = "needs mammoth, which isn't installed: pip install '.[files]' in a checkout"
_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_CODE_BLOCK, _CODE = "docs-assistant-code-block", "docs-assistant-code"
_STYLES = (
    f"p.{_CODE_BLOCK} => pre:separator('\\n')",
    f"r.{_CODE} => code",
    "p[style-name='Title'] => h1.title:fresh",
    "p[style-name='title'] => h1.title:fresh",
    "p[style-name^='toc '] => !",
    "p[style-name^='TOC '] => !",
)
_SAFE_ID = re.compile(r"[A-Za-z][\w-]*")
_DEEPEST = 5
_HEADINGS = {f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)}


class DocxConverter:
    """Reads DOCX files."""

    def matches(self, source: SourceText) -> bool:
        """True for the files of Word."""
        return source.media_type == DOCX

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` for a file that is damaged, encrypted, too large or without text."""
        package = _opened(source.body, source.url)
        facts = package.facts()
        root = lxml.html.fragment_fromstring(_html_of(package), create_parent="main")
        if not root.text_content().strip():
            raise ConversionError(f"{source.url} holds no text: it is empty")
        title = _titled(root, facts.title or breadcrumb(source.url))
        return written_document(source, lxml.html.tostring(root, encoding="unicode"), title, facts)


def _titled(root: Any, title: str) -> str:
    """The title, which is the text's only heading of level 1 afterwards, at its beginning."""
    own = [heading for heading in root.iter("h1") if heading.text_content().strip()]
    marked = next((heading for heading in own if heading.get("class") == "title"), None)
    if marked is not None:
        title = " ".join(marked.text_content().split())
        root.remove(marked)
    elif len(own) == 1 and next(root.iter(*_HEADINGS)) is own[0]:
        return str(" ".join(own[0].text_content().split()))
    for heading in root.iter(*_HEADINGS):
        heading.tag = _HEADINGS[heading.tag]
    first = lxml.html.Element("h1")
    first.text = title
    root.insert(0, first)
    return title


@dataclass(frozen=True, slots=True)
class _Package:
    """An open file."""

    url: str
    body: bytes
    archive: zipfile.ZipFile

    def xml(self, name: str) -> etree._Element | None:
        """The root of the part with this name, if the file has it. Raises `ConversionError` if it isn't XML."""
        if name not in self.archive.namelist():
            return None
        try:
            parser = etree.XMLParser(resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False)
            return etree.fromstring(self.archive.read(name), parser)
        except (etree.LxmlError, zipfile.BadZipFile, zlib.error, EOFError) as error:
            raise ConversionError(f"{self.url} is damaged: {name} can't be read ({error})") from error

    def facts(self) -> Facts:
        """Returns the file's own metadata."""
        root = self.xml("docProps/core.xml")
        if root is None:
            return Facts()

        def said(tag: str) -> str:
            return next((" ".join(element.text.split()) for element in root.iter(tag) if element.text), "")

        created, modified = _DATE.match(said(f"{_TERMS}created")), _DATE.match(said(f"{_TERMS}modified"))
        language = said(f"{_DC}language")
        return Facts(
            said(f"{_DC}title"),
            created[0] if created else "",
            modified[0] if modified else "",
            language if _LANGUAGE.fullmatch(language) else "",
        )


def _opened(body: bytes, url: str) -> _Package:
    """The file. Raises `ConversionError` for one that is encrypted, damaged, or unpacks to too much."""
    if body.startswith(_OLE):
        raise ConversionError(f"{url} is encrypted, or in the format of Word before 2007")
    try:
        archive = zipfile.ZipFile(io.BytesIO(body))
        parts = archive.infolist()
        xml = [part for part in parts if part.filename.endswith((".xml", ".rels"))]
        if len(parts) > MOST_PARTS or sum(part.file_size for part in parts) > MOST_UNPACKED:
            raise ConversionError(f"{url} unpacks to more than {MOST_UNPACKED:,} bytes or {MOST_PARTS:,} parts")
        if sum(part.file_size for part in xml) > MOST_XML:
            raise ConversionError(f"{url} has more than {MOST_XML:,} bytes of XML")
        for part in xml:
            _check(archive.read(part), url)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, OSError) as error:
        raise ConversionError(f"{url} isn't a file of a word processor that can be read: {error}") from error
    return _Package(url, body, archive)


def _check(xml: bytes, url: str) -> None:
    """Refuse declarations of entities, which can grow without end and read other files; no word processor writes them."""
    plain = xml.replace(b"\0", b"")  # UTF-16
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise ConversionError(f"{url} declares XML entities: no word processor writes them")


def _html_of(package: _Package) -> str:
    """The HTML of the file's text. Raises `ConversionError` if it can't be read."""
    try:
        import mammoth
    except ImportError as error:
        raise ConversionError(f"{package.url} is a DOCX file: it {INSTALL}") from error
    styles = package.xml("word/styles.xml")
    rules = [*_STYLES, *(_rules(styles) if styles is not None else ())]
    result = mammoth.convert_to_html(
        io.BytesIO(package.body),
        style_map="\n".join(rules),
        include_embedded_style_map=False,
        external_file_access=False,
        convert_image=lambda _: [],
        ignore_empty_paragraphs=False,
        transform_document=mammoth.transforms.paragraph(_marked),
    )
    return _tidy(result.value)


def _rules(styles: etree._Element) -> Iterator[str]:
    """The rules for the file's own styles: code by font or name, headings by outline level."""
    by_id = {style.get(f"{_W}styleId", ""): style for style in styles.iter(f"{_W}style")}
    for identifier, style in by_id.items():
        kind = style.get(f"{_W}type")
        if not _SAFE_ID.fullmatch(identifier) or kind not in ("paragraph", "character"):
            continue
        if _is_code(identifier, by_id):
            yield f"p.{identifier} => pre:separator('\\n')" if kind == "paragraph" else f"r.{identifier} => code"
        elif kind == "paragraph" and (level := style.find(f"{_W}pPr/{_W}outlineLvl")) is not None:
            number = level.get(f"{_W}val", "9")
            if number.isdecimal() and int(number) <= _DEEPEST:
                yield f"p.{identifier} => h{int(number) + 1}:fresh"


def _is_code(identifier: str, by_id: dict[str, etree._Element]) -> bool:
    """True when the style, one that it is based on or linked with has a font of code, or the name of a style for it."""
    waiting, seen = [identifier], set[str]()
    while waiting:
        style = by_id.get(waiting.pop())
        if style is None or style.get(f"{_W}styleId", "") in seen:
            continue
        seen.add(style.get(f"{_W}styleId", ""))
        name = style.find(f"{_W}name")
        fonts = style.find(f"{_W}rPr/{_W}rFonts")
        if is_monospace((fonts.get(f"{_W}ascii") or "") if fonts is not None else ""):
            return True
        if name is not None and is_code_style(name.get(f"{_W}val") or ""):
            return True
        others = (style.find(f"{_W}{tag}") for tag in ("basedOn", "link"))
        waiting += [other.get(f"{_W}val", "") for other in others if other is not None]
    return False


def _marked(paragraph: Any) -> Any:
    """The paragraph of mammoth's document with styles of ours where its runs are in a font of code."""
    runs = [child for child in paragraph.children if hasattr(child, "font") and _text(child).strip()]
    if not runs or not any(is_monospace(run.font or "") for run in runs):
        return paragraph
    if all(is_monospace(run.font or "") for run in runs) and len(runs) == len(paragraph.children):
        return paragraph.copy(style_id=_CODE_BLOCK, style_name=None)
    return paragraph.copy(
        children=[
            child.copy(style_id=_CODE, style_name=None) if child in runs and is_monospace(child.font or "") else child
            for child in paragraph.children
        ]
    )


def _text(element: Any) -> str:
    return getattr(element, "value", "") + "".join(_text(child) for child in getattr(element, "children", ()))


def _tidy(made: str) -> str:
    """The HTML without ids and links within the file, which lead nowhere."""
    root = lxml.html.fragment_fromstring(made, create_parent="div")
    for element in list(root.iter()):
        element.attrib.pop("id", None)
        if element.tag != "a":
            continue
        if element.get("href", "").startswith("#") and element.text == "↑":
            drop(element)  # from a note back to the text
        elif not element.get("href") or element.get("href").startswith("#"):
            element.drop_tag()
    return "".join(lxml.html.tostring(child, encoding="unicode") for child in root)


__all__ = ["DocxConverter"]

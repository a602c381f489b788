"""A DOCX file: a ZIP archive of XML, opened within limits."""

import io
import re
import zipfile
import zlib
from dataclasses import dataclass

from lxml import etree

from ingestion.convert.files import Facts
from ingestion.errors import ConversionError

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


@dataclass(frozen=True, slots=True)
class Package:
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


def open_package(body: bytes, url: str) -> Package:
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
    return Package(url, body, archive)


def _check(xml: bytes, url: str) -> None:
    """Refuse declarations of entities, which can grow without end and read other files; no word processor writes them."""
    plain = xml.replace(b"\0", b"")  # UTF-16
    if b"<!DOCTYPE" in plain or b"<!ENTITY" in plain:
        raise ConversionError(f"{url} declares XML entities: no word processor writes them")

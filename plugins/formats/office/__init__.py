"""DOCX files -> documents. The HTML that `docx` writes goes the way of any HTML page.

A link leads to the file, because no program opens one at a heading.
"""

from typing import Any

import lxml.html

from app.text.blocks import breadcrumb
from ingestion.convert.document import Document, SourceText
from ingestion.convert.files import written_document
from ingestion.errors import ConversionError
from plugins.formats import DOCX
from plugins.formats.office.docx import docx_html
from plugins.formats.office.package import open_package

_HEADINGS = {f"h{level}": f"h{min(level + 1, 6)}" for level in range(1, 7)}


class OfficeConverter:
    """Reads DOCX files."""

    def matches(self, source: SourceText) -> bool:
        """True for the files of Word."""
        return source.media_type == DOCX

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` for a file that is damaged, encrypted, too large or without text."""
        package = open_package(source.body, source.url)
        facts = package.facts()
        root = lxml.html.fragment_fromstring(docx_html(package), create_parent="main")
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


__all__ = ["OfficeConverter"]

"""PDF, DOCX and ODT, OpenAPI, reStructuredText and AsciiDoc as pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.formats import Format

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
ODT = "application/vnd.oasis.opendocument.text"
RST = "text/x-rst"
ASCIIDOC = "text/asciidoc"


@hookimpl
def register_formats() -> Iterable[Format]:
    """The forms of pages of this package."""
    from ingestion.formats import Format

    return (
        Format("plugins.formats.pdf:PdfConverter", {".pdf": PDF}, binary=True),
        Format("plugins.formats.office:OfficeConverter", {".docx": DOCX, ".odt": ODT}, binary=True),
        Format("plugins.formats.openapi:OpenApiConverter"),
        Format("plugins.formats.rst:RstConverter", {".rst": RST}, includes=True),
        Format("plugins.formats.asciidoc:AsciiDocConverter", {".adoc": ASCIIDOC, ".asciidoc": ASCIIDOC}, includes=True),
    )

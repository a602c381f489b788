"""PDF, DOCX and ODT, OpenAPI, reStructuredText and AsciiDoc as pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.formats import Format


@hookimpl
def register_formats() -> Iterable[Format]:
    """The forms of pages of this package."""
    from ingestion.formats import Format
    from plugins.formats.asciidoc import ASCIIDOC, AsciiDocConverter
    from plugins.formats.office import DOCX, ODT, OfficeConverter
    from plugins.formats.openapi import OpenApiConverter
    from plugins.formats.pdf import PDF, PdfConverter
    from plugins.formats.rst import RST, RstConverter

    return (
        Format(PdfConverter(), {".pdf": PDF}, binary=True),
        Format(OfficeConverter(), {".docx": DOCX, ".odt": ODT}, binary=True),
        Format(OpenApiConverter()),
        Format(RstConverter(), {".rst": RST}, includes=True),
        Format(AsciiDocConverter(), {".adoc": ASCIIDOC, ".asciidoc": ASCIIDOC}, includes=True),
    )

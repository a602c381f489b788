"""PDF, DOCX and OpenAPI as pages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from app.core.hooks import hookimpl

if TYPE_CHECKING:
    from ingestion.formats import Format

PDF = "application/pdf"
DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@hookimpl
def register_formats() -> Iterable[Format]:
    """The forms of pages of this package."""
    from ingestion.formats import Format

    return (
        Format("plugins.formats.pdf:PdfConverter", {".pdf": PDF}, binary=True),
        Format("plugins.formats.docx:DocxConverter", {".docx": DOCX}, binary=True),
        Format("plugins.formats.openapi:OpenApiConverter"),
    )

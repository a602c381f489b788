"""reStructuredText, also as Sphinx has it: docutils makes HTML of a file, which is converted like any other page's.

No directive or role of Sphinx needs Sphinx, or any code of the project: what it would generate from code isn't there, what
stands in the file is. `raw` is off, and files are read only below the source's directory.
"""

from dataclasses import replace

from ingestion.convert.document import Document, SourceText
from ingestion.convert.html.page import HtmlConverter
from plugins.formats import RST


class RstConverter:
    """Reads .rst files."""

    def matches(self, source: SourceText) -> bool:
        """True for reStructuredText."""
        return source.media_type in (RST, "text/prs.fallenstein.rst")

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when there is no text in it."""
        from plugins.formats.rst.read import html_of  # docutils takes its time to load

        return HtmlConverter().convert(replace(source, text=html_of(source), media_type="text/html"))


__all__ = ["RstConverter"]

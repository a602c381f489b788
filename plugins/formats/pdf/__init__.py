"""A PDF file -> its document: sections whose anchors are page numbers, without what repeats on every page.

`characters` reads the pages with PDFium, `furniture` drops running heads, `headings` finds the sections, `blocks` makes
paragraphs, lists, code and tables of lines. The HTML that they write goes the way of any HTML page.
"""

import re
from contextlib import closing

from ingestion.convert.document import Document, SourceText
from ingestion.convert.files import written_document
from ingestion.errors import ConversionError
from plugins.formats import PDF
from plugins.formats.pdf.blocks import place_in_rows, written
from plugins.formats.pdf.characters import open_pdf
from plugins.formats.pdf.headings import headed, title_of, without_furniture

MOST_PAGES = 3_000


class PdfConverter:
    """Reads the text of PDF files; pictures of text aren't read."""

    def matches(self, source: SourceText) -> bool:
        """True for PDF files."""
        return source.media_type == PDF

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` for a file that is damaged, encrypted, too large or without text."""
        with closing(open_pdf(source.body, source.url)) as pdf:
            facts = pdf.facts()
            if len(pdf) > MOST_PAGES:
                raise ConversionError(f"{source.url} has {len(pdf):,} pages: more than {MOST_PAGES:,} aren't read")
            pages = list(pdf.pages())
            if not any(re.search(r"\w", line.text) for page in pages for line in page.lines):
                what = "it is scanned pictures" if any(page.pictured for page in pages) else "it is empty"
                raise ConversionError(f"{source.url} holds no text: {what}")
            text_pages = without_furniture(pages)
            for page in text_pages:
                place_in_rows(page)
            document = headed(text_pages, pdf.outline())
        title = title_of(document, facts, source.url)
        return written_document(source, f"<main>{written(document, title)}</main>", title, facts)


__all__ = ["PdfConverter"]

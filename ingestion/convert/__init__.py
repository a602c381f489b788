"""A download -> clean Markdown. A new form of page is one file and one entry in `CONVERTERS`.

Called by `split`, `publish`, `page_reader` and `run`; imports `crawl`.
"""

from __future__ import annotations

import re

from app.text.fences import blocks
from ingestion.convert.asciidoc import AsciiDocConverter
from ingestion.convert.document import Converter, Document, SourceText, well_formed
from ingestion.convert.html import HtmlConverter
from ingestion.convert.javascript import NeedsJavaScript
from ingestion.convert.markdown import MarkdownConverter
from ingestion.convert.office import OfficeConverter
from ingestion.convert.openapi import OpenApiConverter
from ingestion.convert.pdf import PdfConverter
from ingestion.convert.rst import RstConverter
from ingestion.errors import ConversionError

VERSION = "convert-7"
"""Another version means other Markdown from the same page, so that pages must be read anew."""

CONVERTERS: tuple[Converter, ...] = (
    PdfConverter(),
    OfficeConverter(),
    OpenApiConverter(),
    RstConverter(),
    AsciiDocConverter(),
    MarkdownConverter(),
    HtmlConverter(),
)
"""Asked in this order; the first that matches converts."""

MOST_HEADINGS = 5_000
"""More are no page for readers: the longest references have about 2,000, and each takes its time to be cut and anchored."""

_HEADING = re.compile(r"(?m)^(?: {0,3}#{1,6}(?=\s)|(?:=++|-++)[ \t]*+$)")


def convert(source: SourceText) -> Document:
    """The source as a document. Raises `ConversionError` when nothing can read it, or it is no text for readers."""
    for converter in CONVERTERS:
        if converter.matches(source):
            try:
                return _for_readers(well_formed(converter.convert(source)), source.url)
            except (ConversionError, MemoryError):
                raise
            except Exception as error:  # a page nobody foresaw must not end a run of thousands
                raise ConversionError(f"{source.url} can't be converted ({type(error).__name__}: {error})") from error
    raise ConversionError(f"{source.url} is {source.media_type or 'of no known type'}: no converter reads that")


def _for_readers(document: Document, url: str) -> Document:
    if len(_HEADING.findall(document.markdown)) > MOST_HEADINGS:  # comments in code may look like headings
        count = sum(len(_HEADING.findall(piece)) for code, piece in blocks(document.markdown) if not code)
        if count > MOST_HEADINGS:
            raise ConversionError(f"{url} has {count:,} headings: more than {MOST_HEADINGS:,} are no page for readers")
    return document


__all__ = [
    "CONVERTERS",
    "VERSION",
    "ConversionError",
    "Converter",
    "Document",
    "NeedsJavaScript",
    "SourceText",
    "convert",
]

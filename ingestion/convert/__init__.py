"""HTML or Markdown of a page -> clean Markdown. A new form of page is one more entry in `CONVERTERS`."""

from __future__ import annotations

from ingestion.convert.base import ConversionError, Converter, Document, Source, well_formed
from ingestion.convert.html import HtmlConverter
from ingestion.convert.markdown import MarkdownConverter
from ingestion.convert.scripted import MadeByScript

VERSION = "convert-2"
"""Another version means other Markdown from the same page, so that pages must be read anew."""

CONVERTERS: tuple[Converter, ...] = (MarkdownConverter(), HtmlConverter())
"""Asked in this order; the first that matches converts."""


def convert(source: Source) -> Document:
    """The source as a document. Raises `ConversionError` when nothing can read it or it holds no text."""
    for converter in CONVERTERS:
        if converter.matches(source):
            try:
                return well_formed(converter.convert(source))
            except (ConversionError, MemoryError):
                raise
            except Exception as error:  # a page nobody foresaw must not end a run of thousands
                raise ConversionError(f"{source.url} can't be converted ({type(error).__name__}: {error})") from error
    raise ConversionError(f"{source.url} is {source.media_type or 'of no known type'}: no converter reads that")


__all__ = ["CONVERTERS", "VERSION", "ConversionError", "Converter", "Document", "MadeByScript", "Source", "convert"]

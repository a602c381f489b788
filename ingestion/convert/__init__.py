"""A download -> clean Markdown. A new form of page is a `Format` of a plugin.

Called by `split`, `publish`, `page_reader` and `run`; imports `crawl`.
"""

import re
from functools import cache
from typing import cast

from app.core.plugins import load
from ingestion.convert.document import Converter, Document, SourceText, well_formed
from ingestion.convert.markdown.structure import headings_in
from ingestion.errors import ConversionError
from ingestion.formats import Format, formats

VERSION = "convert-13"
"""Another version means other Markdown from the same page, so that pages must be read anew."""


@cache
def converters() -> tuple[Converter, ...]:
    """All, in the order in which they are asked: the first that matches converts. They are imported only where a page is converted."""
    from ingestion.convert.html.page import HtmlConverter
    from ingestion.convert.markdown.page import MarkdownConverter

    return (*(_made(form) for form in formats()), MarkdownConverter(), HtmlConverter())


def _made(form: Format) -> Converter:
    named = form.converter
    return cast("Converter", load(named, object, "register_formats")()) if isinstance(named, str) else named


MOST_HEADINGS = 5_000
"""More are no page for readers: the longest references have about 2,000, and each takes its time to be cut and anchored."""

_HEADING = re.compile(r"(?m)^(?: {0,3}#{1,6}(?=\s)|(?:=++|-++)[ \t]*+$)")


def convert(source: SourceText) -> Document:
    """The source as a document. Raises `ConversionError` when nothing can read it, or it is no text for readers."""
    for converter in converters():
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
        count = len(headings_in(document.markdown))
        if count > MOST_HEADINGS:
            raise ConversionError(f"{url} has {count:,} headings: more than {MOST_HEADINGS:,} are no page for readers")
    return document


__all__ = [
    "VERSION",
    "ConversionError",
    "Converter",
    "Document",
    "SourceText",
    "convert",
    "converters",
]

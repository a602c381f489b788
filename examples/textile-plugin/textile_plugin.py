"""Textile files as pages."""

from dataclasses import replace

import textile

from docs_assistant import Document, Format, HtmlConverter, SourceText, hookimpl


class TextileConverter:
    """Makes HTML of Textile, which is converted like any other page's."""

    def matches(self, source: SourceText) -> bool:
        """True for Textile."""
        return source.media_type == "text/x-textile"

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when there is no text in it."""
        html = f"<main>{textile.textile(source.text)}</main>"
        return HtmlConverter().convert(replace(source, text=html, media_type="text/html"))


@hookimpl
def register_formats():
    """Textile."""
    return [Format(TextileConverter(), {".textile": "text/x-textile"})]

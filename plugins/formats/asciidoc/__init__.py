"""AsciiDoc, also as Antora has it: Asciidoctor, where it is installed, makes HTML of a file, which is converted like any other page's."""

from dataclasses import replace

from ingestion.convert.document import Document, SourceText
from ingestion.convert.files import Tree
from ingestion.convert.html.page import HtmlConverter
from plugins.formats import ASCIIDOC
from plugins.formats.asciidoc.includes import Place, with_includes
from plugins.formats.asciidoc.program import html_of


class AsciiDocConverter:
    """Reads .adoc files. Asciidoctor runs in its mode `secure`: it reads no files; includes are made here, within the source."""

    def matches(self, source: SourceText) -> bool:
        """True for AsciiDoc."""
        return source.media_type in (ASCIIDOC, "text/x-asciidoc")

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` without Asciidoctor, or when there is no text in it."""
        place = Place(source.file, Tree(source.root))
        attributes = place.attributes
        html = html_of(with_includes(source.text.lstrip("\ufeff"), place, attributes), attributes)
        body = f'<html><body><div itemprop="articleBody">{place.linked(html)}</div></body></html>'
        return HtmlConverter().convert(replace(source, text=body, media_type="text/html"))


__all__ = ["AsciiDocConverter"]

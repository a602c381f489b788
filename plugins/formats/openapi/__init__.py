"""OpenAPI documents (Swagger 2.0, OpenAPI 3): each operation is a section with its parameters, bodies and responses as lists."""

from dataclasses import replace

from ingestion.convert.document import Document, SourceText
from ingestion.convert.markdown.page import MarkdownConverter
from ingestion.crawl.openapi import is_openapi, may_be_openapi
from ingestion.errors import ConversionError
from plugins.formats.openapi.api import Api, parse
from plugins.formats.openapi.write import write_api


class OpenApiConverter:
    """Reads JSON and YAML. References inside the document are resolved, others are named and never fetched."""

    def matches(self, source: SourceText) -> bool:
        """True for JSON or YAML that says so itself."""
        return may_be_openapi(source.media_type, source.url) and is_openapi(source.text)

    def convert(self, source: SourceText) -> Document:
        """The document; raises `ConversionError` when it isn't what it says it is."""
        api = Api(parse(source.text, source.url))
        if not api.operations and not api.schemas:
            raise ConversionError(f"{source.url} is an OpenAPI document without operations and schemas")
        markdown = write_api(api, source.anchors)
        document = MarkdownConverter().convert(replace(source, text=markdown, media_type="text/markdown"))
        return replace(document, version=api.version, raw=False)  # nothing else knows its anchors


__all__ = ["OpenApiConverter"]

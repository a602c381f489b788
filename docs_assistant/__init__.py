"""The public package: what plugins, classes of your own and other programs import. Everything else may change with any version.

A name is imported when it is used: all take 2 s. Classes of LlamaIndex are in `docs_assistant.llama_index`, the commands in
`docs_assistant.cli`.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from app.core.errors import (
        AssistantError,
        DatabaseError,
        DatabaseUnavailable,
        IndexDamaged,
        IndexMismatch,
        ModelError,
        ModelRateLimited,
        ModelTimeout,
        ModelUnavailable,
        NoIndex,
        PromptError,
        RequestError,
        SettingsError,
        SitemapError,
        SourceUnavailable,
        StoreError,
        StoreUnavailable,
    )
    from app.core.hooks import hookimpl
    from app.core.prompts import Prompts
    from app.core.settings import Settings
    from app.core.turn import AnswerRecord, Message, Question, Turn
    from app.core.types import Chunk, Hit
    from app.models import Embedder, Model
    from app.pipeline.calls import ask_helper
    from app.routes.admin.routes import AdminView
    from app.routes.service import Service
    from docs_assistant.search import Answer, Index, open_index
    from ingestion.convert.document import Converter, Document, SourceText
    from ingestion.convert.html.page import HtmlConverter
    from ingestion.convert.markdown.page import MarkdownConverter
    from ingestion.crawl.fetch import Fetcher
    from ingestion.entry import Entry, Listing, Skipped
    from ingestion.errors import ConversionError
    from ingestion.formats import Format
    from ingestion.sources import Source

_PLACES = {
    "app.core.hooks": ("hookimpl",),
    "docs_assistant.search": ("open_index", "Index", "Answer"),
    "app.core.settings": ("Settings",),
    "app.core.errors": (
        "AssistantError", "DatabaseError", "DatabaseUnavailable", "IndexDamaged", "IndexMismatch", "ModelError", "ModelRateLimited",
        "ModelTimeout", "ModelUnavailable", "NoIndex", "PromptError", "RequestError", "SettingsError", "SitemapError", "SourceUnavailable",
        "StoreError", "StoreUnavailable",
    ),
    "ingestion.errors": ("ConversionError",),
    "ingestion.formats": ("Format",),
    "ingestion.convert.document": ("Converter", "Document", "SourceText"),
    "ingestion.convert.html.page": ("HtmlConverter",),
    "ingestion.convert.markdown.page": ("MarkdownConverter",),
    "ingestion.sources": ("Source",),
    "ingestion.entry": ("Entry", "Listing", "Skipped"),
    "ingestion.crawl.fetch": ("Fetcher",),
    "app.core.turn": ("Turn", "Question", "Message", "AnswerRecord"),
    "app.core.types": ("Hit", "Chunk"),
    "app.core.prompts": ("Prompts",),
    "app.models": ("Model", "Embedder"),
    "app.pipeline.calls": ("ask_helper",),
    "app.routes.service": ("Service",),
    "app.routes.admin.routes": ("AdminView",),
}  # fmt: skip
_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "hookimpl",
    "open_index", "Index", "Answer",
    "Settings",
    "AssistantError", "DatabaseError", "DatabaseUnavailable", "IndexDamaged", "IndexMismatch", "ModelError", "ModelRateLimited",
    "ModelTimeout", "ModelUnavailable", "NoIndex", "PromptError", "RequestError", "SettingsError", "SitemapError", "SourceUnavailable",
    "StoreError", "StoreUnavailable", "ConversionError",
    "Format", "Converter", "Document", "SourceText", "HtmlConverter", "MarkdownConverter",
    "Source", "Entry", "Listing", "Skipped", "Fetcher",
    "Turn", "Question", "Message", "AnswerRecord", "Hit", "Chunk", "Prompts", "Model", "Embedder", "ask_helper",
    "Service", "AdminView",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"docs_assistant has no {name!r}: its names are {', '.join(__all__)}.")
    return getattr(import_module(_MODULES[name]), name)

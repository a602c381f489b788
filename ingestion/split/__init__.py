"""Pages -> chunks. A new splitter is one file and one entry in `SPLITTERS`.

Called by `publish`, `page_reader` and `run`; imports `convert` and `crawl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType

from app.core.errors import SettingsError
from app.core.language import vocabulary
from app.core.settings import Settings
from ingestion.split.fixed import FixedSplitter
from ingestion.split.markdown import MarkdownSplitter
from ingestion.split.semantic import SemanticSplitter
from ingestion.split.splitter import Splitter
from ingestion.split.whole import PageSplitter

__all__ = ["SPLITTERS", "Splitter", "open_splitter"]


def open_splitter(settings: Settings) -> Splitter:
    """The splitter that DOCS_SPLITTER names. Raises `SettingsError` for one that there isn't, or lengths that can't be."""
    if settings.splitter not in SPLITTERS:
        raise SettingsError(f"DOCS_SPLITTER is {settings.splitter!r}. Known are: {', '.join(SPLITTERS)}.")
    return SPLITTERS[settings.splitter](settings)


def _markdown(settings: Settings) -> Splitter:
    return MarkdownSplitter(settings.chunk_size, settings.chunk_context, _abbreviations(settings))


def _semantic(settings: Settings) -> Splitter:
    least, most = settings.semantic_min_tokens, settings.semantic_max_tokens
    if least * 2 > most:
        raise SettingsError(
            f"DOCS_SEMANTIC_MIN_TOKENS is {least} and DOCS_SEMANTIC_MAX_TOKENS is {most}: "
            "the second must be at least twice the first, or chunks can't be kept within them."
        )
    return SemanticSplitter(least, most, settings.semantic_percentile, settings.chunk_context, _abbreviations(settings))


def _fixed(settings: Settings) -> Splitter:
    tokens, overlap = settings.chunk_tokens, settings.chunk_overlap
    if overlap * 2 > tokens:
        raise SettingsError(
            f"DOCS_CHUNK_OVERLAP is {overlap} and DOCS_CHUNK_TOKENS is {tokens}: at most half of a chunk may be repeated."
        )
    return FixedSplitter(tokens, overlap, _abbreviations(settings))


def _abbreviations(settings: Settings) -> frozenset[str]:
    return vocabulary(settings.languages, settings.prompts).abbreviations


def _page(settings: Settings) -> Splitter:
    del settings
    return PageSplitter()


SPLITTERS: Mapping[str, Callable[[Settings], Splitter]] = MappingProxyType(
    {"markdown": _markdown, "semantic": _semantic, "fixed": _fixed, "page": _page}
)

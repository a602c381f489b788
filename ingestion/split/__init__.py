"""Pages -> chunks. A new splitter is one file and one entry in `SPLITTERS`, or a LlamaIndex `NodeParser` from outside.

Called by `publish` and `run`; imports `convert` and `crawl`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from app.core.errors import SettingsError
from app.core.language import vocabulary
from app.core.settings import Settings
from ingestion.split.splitters import (
    FixedSplitter,
    MarkdownSplitter,
    NeighbourSplitter,
    PageSplitter,
    SemanticSplitter,
    Splitter,
)

__all__ = ["SPLITTERS", "Splitter", "open_splitter"]

SEMANTIC_LEAST, SEMANTIC_MOST = 100, 400  # tokens of a chunk
SEMANTIC_PERCENTILE = 25
"""Percentage of the places between sentences, those with the largest change of topic, at which a page may be split."""
FIXED_TOKENS = 512
"""Length of a fixed chunk, as in other systems."""
FIXED_OVERLAP = 50
"""Tokens of a fixed chunk that are repeated in the next one."""


def open_splitter(settings: Settings) -> Splitter:
    """The splitter that DOCS_SPLITTER names, whose chunks also have what DOCS_TUNING__CHUNK_NEIGHBOURS says of those beside them.

    Raises `SettingsError` for an unknown one, and for arguments that it refuses.
    """
    splitter, characters = _open(settings), settings.tuning.chunk_neighbours
    return NeighbourSplitter(splitter, characters) if characters else splitter


def _open(settings: Settings) -> Splitter:
    if ":" in settings.splitter:
        from ingestion.split.node_parser import open_node_parser

        return open_node_parser(settings.splitter, settings.splitter_args)
    if settings.splitter_args:
        raise SettingsError("DOCS_SPLITTER_ARGS are for a splitter of your own: set DOCS_SPLITTER=module:Class.")
    if settings.splitter not in SPLITTERS:
        raise SettingsError(
            f"DOCS_SPLITTER is {settings.splitter!r}. Known are: {', '.join(SPLITTERS)}, and module:Class."
        )
    abbreviations = vocabulary(settings.languages, settings.prompts).abbreviations
    return SPLITTERS[settings.splitter](settings.tuning.chunk_size, abbreviations)


SPLITTERS: Mapping[str, Callable[[int, frozenset[str]], Splitter]] = {
    "markdown": MarkdownSplitter,
    "semantic": lambda _, ends: SemanticSplitter(SEMANTIC_LEAST, SEMANTIC_MOST, SEMANTIC_PERCENTILE, ends),
    "fixed": lambda _, ends: FixedSplitter(FIXED_TOKENS, FIXED_OVERLAP, ends),
    "page": lambda *_: PageSplitter(),
}
"""By their names, made of the size of chunks and of the abbreviations that end no sentence."""

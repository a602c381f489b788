"""What a reader may choose from in a search, and the words of a query that it may show, within the limits of the reader's key."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from app.api.answer_models import Facets
from app.core.filters import Filters
from app.core.generation import GenerationInfo
from app.core.turn import Turn
from app.index import Store
from app.index.protocols import Generation
from app.pipeline.type_ahead import read
from app.text.analysis import fold

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant

_languages: WeakKeyDictionary[Store, tuple[GenerationInfo, dict[Filters, AbstractSet[str]]]] = WeakKeyDictionary()
"""Those of the pages within each limit, which are read once for each generation."""


async def facets_of(turn: Turn, assistant: Assistant) -> Facets:
    """The collections and languages of the index that the reader may choose from."""
    info, allowed = turn.generation.info, assistant.limits.within(assistant.collections)
    collections = {source.collection for source in info.sources} | {hit.chunk.collection for hit in turn.hits}
    languages = info.languages if allowed == Filters() else await _languages_within(turn, assistant.store, allowed)
    return {
        "collections": sorted(name for name in collections if name in allowed.collections or not allowed.collections),
        "languages": sorted(code for code in languages if code in allowed.languages or not allowed.languages),
    }


async def _languages_within(turn: Turn, store: Store, allowed: Filters) -> AbstractSet[str]:
    generation: Generation = turn.generation
    info = generation.info
    known, by_limits = _languages.get(store, (info, {}))
    if known != info:
        by_limits = {}
    if allowed not in by_limits:
        pages = await generation.pages()
        by_limits[allowed] = {
            page.language for page in pages if allowed.admits(page.url, page.collection, {page.language}, page.versions)
        }
    _languages[store] = (info, by_limits)
    return by_limits[allowed] | {hit.chunk.language for hit in turn.hits}  # translations have languages of their own


def shown_query(turn: Turn, assistant: Assistant) -> str:
    """The query as it was searched; as it was typed if a correction is no word of what was found.

    Corrections come from all words of the index, which a limited key mustn't learn.
    """
    typed = turn.request.question
    if not turn.refined or assistant.limits.within(assistant.collections) == Filters():
        return turn.refined or typed
    corrections = {fold(word) for word in turn.refined.split()} - {fold(word) for word in typed.split()}
    found = [text for hit in turn.hits for _, fields in read(hit.chunk) for text in fields]
    seen = all(any(f" {word}" in text for text in found) for word in corrections)
    return turn.refined if seen else typed

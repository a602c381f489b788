"""Checks that an index can be read, with a small search of each kind and a page; calls no model."""

from __future__ import annotations

import asyncio
import time

from app.core.errors import IndexDamaged, StoreError, StoreUnavailable
from app.core.generation import GenerationInfo
from app.core.types import LexicalText, Query
from app.index.protocols import Generation
from app.text.analysis import analyse

FRESH = 5.0  # seconds that a result is valid
FIRST_WAIT = 5.0  # seconds to wait for the first result
LATER_WAIT = 0.5  # seconds to wait for a later result; then the previous one is returned


async def check_readable(generation: Generation) -> None:
    """Raises `StoreError` that names what can't be read."""
    try:
        lacking = await _damage(generation)
    except StoreError:
        raise
    except Exception as error:  # corrupt rows may fail anywhere
        raise IndexDamaged(f"What the index has isn't what was written to it: {error!r}.") from error
    if lacking:
        raise IndexDamaged(lacking)


async def _damage(generation: Generation) -> str:
    info = generation.info
    if not info.chunks:
        return ""
    near = (await generation.search(Query((), [1.0] * info.recipe.dimension, depth=1))).vector
    chunks = await generation.fetch([candidate.id for candidate in near])
    if not chunks:
        return f"The index should have {info.chunks} chunks, but a search finds none of them."
    text, language = chunks[0].embedded_text[:500], chunks[0].language
    words = Query((LexicalText(language, text),), depth=1)
    if tokens := analyse(text, language):
        if not (await generation.search(words)).lexical:
            return "A search for a chunk's own words finds nothing."
        if not any((await generation.frequencies(tokens)).values()):
            return "The words of the index have none of a chunk's own."
    page = await generation.page(chunks[0].url)
    return "" if page else f"The page {chunks[0].url} has chunks, but no record."


class Checkup:
    """Checks the live generation of a store, at most every few seconds and only on demand.

    `index` is the name of the index; empty for the configured one.
    """

    def __init__(self, index: str = "") -> None:
        self._index = index
        self._of: GenerationInfo | None = None
        self._known: str | None = None
        self._until = 0.0
        self._looking: asyncio.Task[None] | None = None

    async def problem(self, generation: Generation) -> str:
        """The problem found, or an empty string. Waits only briefly; a slow check is reported by a later call."""
        if generation.info != self._of:
            self._of, self._known, self._until, self._looking = generation.info, None, 0.0, None
        if time.monotonic() >= self._until and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look(generation))
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=FIRST_WAIT if self._known is None else LATER_WAIT)
        return self._known or ""

    async def _look(self, generation: Generation) -> None:
        found = ""
        try:
            await check_readable(generation)
        except StoreUnavailable as error:
            found = str(error)
        except StoreError as error:
            found = damage_message(error, self._index)
        if generation.info == self._of:
            self._known, self._until = found, time.monotonic() + FRESH


def unreadable(what: str, error: Exception) -> StoreError:
    """The error for a list of generations that raised this: `IndexDamaged`, which a run repairs, unless a later version wrote it."""
    if isinstance(error, TypeError) and "unexpected keyword argument" in str(error):
        return StoreError(
            f"{what} was written by a later version of this program ({error}): "
            "use that version, restore a backup, or choose another index in DOCS_STORE."
        )
    return IndexDamaged(f"{what} is damaged ({error!r}): restore it from a backup, or index the sites again.")


def damage_message(error: StoreError, index: str = "") -> str:
    """The message for operators, with the command that repairs the index."""
    option = f" --index {index}" if index else ""
    return f"{error} `docs-assistant ingest --rebuild{option}` builds it again."

"""Checks that an index can be read, with a small search of each kind and a page; calls no model."""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime

from app.core.errors import IndexDamaged, StoreError, StoreUnavailable
from app.core.types import LexicalText, Query
from app.index.protocols import Generation
from app.text.analysis import analyse

AGE_FRESH = 60.0  # seconds that the age of an index without changes is valid: all its pages are read for it
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
    if analyse(text, language) and not (await generation.search(words)).lexical:
        return "A search for a chunk's own words finds nothing."
    page = await generation.page(chunks[0].url)
    return "" if page else f"The page {chunks[0].url} has chunks, but no record."


def seconds_since(at: str) -> float | None:
    """Seconds since this ISO 8601 time, in UTC if it names no zone; None if it isn't one."""
    try:
        then = datetime.fromisoformat(at)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0.0, (datetime.now(UTC) - then).total_seconds())


class Checkup:
    """Checks the live generation of a store, at most every few seconds and only on demand.

    `index` is the name of the index; empty for the configured one. `too_old` is a message if no page was read for more
    than `max_age` hours; else empty.
    """

    def __init__(self, index: str = "", max_age: float | None = None) -> None:
        self._index = index
        self._max_age = max_age
        self._of: Generation | None = None
        self._known: str | None = None
        self._until = 0.0
        self._read_at, self._read_until = "", 0.0
        self._looking: asyncio.Task[None] | None = None
        self.too_old = ""

    async def problem(self, generation: Generation) -> str:
        """The problem found, or an empty string. Waits only briefly; a slow check is reported by a later call."""
        if generation is not self._of:
            self._of, self._known, self._until, self._looking = generation, None, 0.0, None
            self._read_until = 0.0
        if time.monotonic() >= self._until and (self._looking is None or self._looking.done()):
            self._looking = asyncio.create_task(self._look(generation))
        if self._looking is not None:
            await asyncio.wait({self._looking}, timeout=FIRST_WAIT if self._known is None else LATER_WAIT)
        return self._known or ""

    async def _look(self, generation: Generation) -> None:
        found, too_old = "", self.too_old
        try:
            await check_readable(generation)
            too_old = await self._age_problem(generation)
        except StoreUnavailable as error:
            found = str(error)
        except StoreError as error:
            found = damage_message(error, self._index)
        if generation is self._of:
            self._known, self._until, self.too_old = found, time.monotonic() + FRESH, too_old

    async def _age_problem(self, generation: Generation) -> str:
        built_at = generation.info.built_at
        if self._max_age is None or _hours_since(built_at) <= self._max_age:
            return ""
        if time.monotonic() >= self._read_until:  # a run that finds no change publishes nothing, but records its visit
            self._read_at = max((page.last_ok for page in await generation.pages()), default="")
            self._read_until = time.monotonic() + AGE_FRESH
        age = _hours_since(self._read_at or built_at)
        if age <= self._max_age:
            return ""
        option = f" --index {self._index}" if self._index else ""
        return (
            f"The pages were last read {age:.1f} hours ago, and DOCS_MAX_INDEX_AGE is {self._max_age:g}:"
            f" run `docs-assistant ingest{option}`, and see why the last runs failed."
        )


def _hours_since(at: str) -> float:
    return (seconds_since(at) or 0.0) / 3600


def damage_message(error: StoreError, index: str = "") -> str:
    """The message for operators, with the command that repairs the index."""
    option = f" --index {index}" if index else ""
    return f"{error} `docs-assistant ingest --rebuild{option}` builds it anew."

"""Around the store of the service: one that keeps failing isn't asked, and a search takes a place (`app.core.gate`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from app.core.breaker import Breaker
from app.core.errors import StoreUnavailable
from app.core.gate import busy
from app.core.types import Chunk, GenerationInfo, Legs, Page, Query, Recipe
from app.index.base import Draft, Generation, Store


class GuardedStore:
    """See `app.index.base.Store`. Raises `StoreUnavailable` at once where calls kept failing."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._breaker = Breaker(name, (StoreUnavailable,), StoreUnavailable)
        self.breakers = (self._breaker,)

    async def live(self) -> Generation:
        """The published generation, pinned."""
        with self._breaker.call(proves=False):  # a store may answer it from memory
            return GuardedGeneration(await self._store.live(), self._breaker)

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> Draft:
        """Begin the next generation."""
        return await self._store.draft(recipe, rebuild=rebuild)

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """Those kept, newest first."""
        return await self._store.generations()

    async def rollback(self) -> GenerationInfo:
        """Make the generation before the live one live again."""
        return await self._store.rollback()

    async def close(self) -> None:
        """Let go of connections."""
        await self._store.close()


class GuardedGeneration:
    """See `app.index.base.Generation`."""

    __slots__ = ("_breaker", "_generation", "info")

    def __init__(self, generation: Generation, breaker: Breaker) -> None:
        self.info = generation.info
        self._generation = generation
        self._breaker = breaker

    @contextmanager
    def _asking(self) -> Iterator[None]:
        with self._breaker.call(), busy():
            yield

    async def search(self, query: Query) -> Legs:
        """Both legs apart, best first, with raw scores."""
        with self._asking():
            return await self._generation.search(query)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks of these ids in their order."""
        with self._asking():
            return await self._generation.fetch(ids)

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """How many chunks have each of these tokens."""
        with self._asking():
            return await self._generation.frequencies(tokens)

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown."""
        with self._asking():
            return await self._generation.page(url)

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        with self._asking():
            return await self._generation.pages()

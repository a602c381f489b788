"""A wrapper of a store with a circuit breaker; a search takes a place of the gate (`app.core.gate`)."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from app.core.breaker import Breaker
from app.core.errors import StoreUnavailable
from app.core.gate import busy
from app.core.generation import GenerationInfo, Recipe
from app.core.types import Chunk, Legs, Page, PlainText, Query, Vector
from app.index.protocols import Draft, Generation, Store
from app.index.recent import Recent, size_of_chunk, size_of_text
from app.index.run_history import RunHistory, runs_of
from app.index.translation_sets import TranslationSets
from app.index.vocabulary import Vocabulary


class GuardedStore:
    """See `app.index.protocols.Store`. Raises `StoreUnavailable` at once while the breaker is open."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._breaker = Breaker("store", name, (StoreUnavailable,), StoreUnavailable)
        self._breaker.facts = getattr(store, "facts", {"db.system.name": type(store).__name__})
        self._texts, self._chunks = Recent[PlainText](size_of_text), Recent[Chunk](size_of_chunk)
        self.breakers = (self._breaker,)

    async def live(self) -> Generation:
        """The live generation."""
        with self._breaker.call("live", proves=False):  # a store may answer from memory, so success proves nothing
            return GuardedGeneration(await self._store.live(), self._breaker, self._texts, self._chunks)

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> Draft:
        """Begin the next generation."""
        return await self._store.draft(recipe, rebuild=rebuild)

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """The kept generations, newest first."""
        return await self._store.generations()

    async def runs(self) -> RunHistory:
        """The results of the runs so far."""
        with self._breaker.call("runs", proves=False):
            return await runs_of(self._store)

    async def rollback(self) -> GenerationInfo:
        """Make the previous generation live again."""
        return await self._store.rollback()

    async def close(self) -> None:
        """Close all connections."""
        await self._store.close()


class GuardedGeneration:
    """See `app.index.protocols.Generation`."""

    __slots__ = ("_breaker", "_chunks", "_generation", "_texts", "info")

    def __init__(
        self, generation: Generation, breaker: Breaker, texts: Recent[PlainText], chunks: Recent[Chunk]
    ) -> None:
        self.info = generation.info
        self._generation = generation
        self._breaker = breaker
        self._texts, self._chunks = texts, chunks

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with raw scores."""
        with self._breaker.call("search"), busy():
            return await self._generation.search(query)

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids."""
        with self._breaker.call("fetch", proves=False), busy():  # a chunk that is kept proves nothing
            chunks = await self._chunks.of(self.info, ids, self._fetched)
        return tuple(chunks[id_] for id_ in ids if id_ in chunks)

    async def _fetched(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        return {chunk.id: chunk for chunk in await self._generation.fetch(ids)}

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        with self._breaker.call("plain_texts", proves=False), busy():  # a text that is kept proves nothing
            return await self._texts.of(self.info, urls, self._generation.plain_texts)

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other."""
        with self._breaker.call("translation_sets", proves=False), busy():  # they are cached, so success proves nothing
            return await self._generation.translation_sets()

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language."""
        with self._breaker.call("language_centres", proves=False), busy():  # they are cached, so success proves nothing
            centres = getattr(self._generation, "language_centres", None)  # a store from outside may have none
            return await centres() if centres else {}

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages."""
        with self._breaker.call("chunks_of"), busy():
            return await self._generation.chunks_of(urls)

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks; none of a store that doesn't tell them."""
        with self._breaker.call("vectors"), busy():
            vectors = getattr(self._generation, "vectors", None)
            return await vectors(ids) if vectors else {}

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        with self._breaker.call("frequencies"), busy():
            return await self._generation.frequencies(tokens)

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks."""
        with self._breaker.call("vocabulary", proves=False), busy():  # it is cached, so success proves nothing
            vocabulary = getattr(self._generation, "vocabulary", None)  # a store from outside may have none
            return await vocabulary() if vocabulary else Vocabulary()

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown."""
        with self._breaker.call("page"), busy():
            return await self._generation.page(url)

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        with self._breaker.call("pages"), busy():
            return await self._generation.pages()

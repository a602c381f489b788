"""A wrapper of a store with a circuit breaker, which keeps lately read chunks; a search takes a place of the gate (`app.core.gate`)."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import Generic, TypeVar

from app.core.breaker import Breaker
from app.core.errors import StoreUnavailable
from app.core.gate import busy
from app.core.generation import GenerationInfo, Recipe
from app.core.types import Chunk, Legs, Page, PlainText, Query, Vector
from app.index.protocols import Draft, Generation, Store, TranslationSets
from app.index.run_history import RunHistory
from app.index.vocabulary import Vocabulary

MOST_BYTES = 16_000_000
"""About what the plain texts of 500 pages of documentation take, or 5,000 chunks."""

_BORDER, _SECTION, _PLACE, _CHUNK = 40, 400, 200, 600  # bytes that one takes

T = TypeVar("T")


class Recent(Generic[T]):
    """Keeps the latest read values of the generation that was asked for last, `most` bytes of them by `size`."""

    def __init__(self, size: Callable[[T], int], most: int = MOST_BYTES) -> None:
        self._size, self._most = size, most
        self._info: GenerationInfo | None = None
        self._values: OrderedDict[str, T] = OrderedDict()
        self._bytes = 0

    async def of(
        self, info: GenerationInfo, keys: Sequence[str], read: Callable[[Sequence[str]], Awaitable[Mapping[str, T]]]
    ) -> Mapping[str, T]:
        """The values of these keys; those that aren't kept are read from the generation."""
        if info != self._info:
            self._info, self._values, self._bytes = info, OrderedDict(), 0
        values, own = self._values, self._info
        cached = {key: values[key] for key in keys if key in values}
        for key in cached:
            values.move_to_end(key)
        if missing := [key for key in keys if key not in cached]:
            new = await read(missing)
            cached |= new
            if self._info is own:  # no newer generation was asked for meanwhile
                self._keep(new)
        return cached

    def _keep(self, new: Mapping[str, T]) -> None:
        for key, value in new.items():
            if key not in self._values:
                self._values[key] = value
                self._bytes += self._size(value)
        while self._bytes > self._most:
            self._bytes -= self._size(self._values.popitem(last=False)[1])


def size_of_text(plain: PlainText) -> int:
    """About how many bytes the plain text of a page takes."""
    return (
        _letters(plain.text)
        + _BORDER * len(plain.borders)
        + _SECTION * len(plain.sections)
        + _PLACE * len(plain.places)
    )


def size_of_chunk(chunk: Chunk) -> int:
    """About how many bytes a chunk takes, with its questions."""
    return _letters(chunk.text) + _letters(chunk.questions_text) + _SECTION * len(chunk.sections) + _CHUNK


def _letters(text: str) -> int:
    return len(text) * (1 if text.isascii() else 2)


class GuardedStore:
    """See `app.index.protocols.Store`. Raises `StoreUnavailable` at once while the breaker is open."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._breaker = Breaker("store", name, (StoreUnavailable,), StoreUnavailable)
        self._breaker.facts = store.facts
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
            return await self._store.runs()

    @property
    def facts(self) -> Mapping[str, str | int]:
        """The server's facts for traces."""
        return self._store.facts

    async def write_runs(self, runs: RunHistory) -> None:
        """Replace the results."""
        await self._store.write_runs(runs)

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
            return await self._generation.language_centres()

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages."""
        with self._breaker.call("chunks_of"), busy():
            return await self._generation.chunks_of(urls)

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks."""
        with self._breaker.call("vectors"), busy():
            return await self._generation.vectors(ids)

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        with self._breaker.call("frequencies"), busy():
            return await self._generation.frequencies(tokens)

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks."""
        with self._breaker.call("vocabulary", proves=False), busy():  # it is cached, so success proves nothing
            return await self._generation.vocabulary()

    async def lost(self) -> str:
        """Returns the damage that is made up for."""
        return await self._generation.lost()

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown."""
        with self._breaker.call("page"), busy():
            return await self._generation.page(url)

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""
        with self._breaker.call("pages"), busy():
            return await self._generation.pages()

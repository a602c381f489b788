"""A generation that is seen through another object, each of whose calls can be guarded, recorded or answered in another way."""

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TypeVar

from app.core.generation import GenerationInfo
from app.core.types import Candidate, Chunk, Legs, Page, PlainText, Query, Vector
from app.index.protocols import Counterparts, Generation, Pair, TranslationSets
from app.index.vocabulary import Vocabulary

T = TypeVar("T")


class ObservedGeneration:  # those of the protocol
    """See `app.index.protocols.Generation`. Each call goes through `observe`, which observers override, or the call itself."""

    def __init__(self, generation: Generation) -> None:
        self.observed = generation

    @property
    def info(self) -> GenerationInfo:
        """The facts about this generation."""
        return self.observed.info

    async def observe(self, name: str, answer: Callable[[], Awaitable[T]]) -> T:  # noqa: ARG002  # for those who override it
        """What the call of this name answers."""
        return await answer()

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg."""
        return await self.observe("search", lambda: self.observed.search(query))

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids."""
        return await self.observe("fetch", lambda: self.observed.fetch(ids))

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of these pages."""
        return await self.observe("plain_texts", lambda: self.observed.plain_texts(urls))

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other."""
        return await self.observe("translation_sets", self.observed.translation_sets)

    async def counterparts(self, pairs: Collection[Pair]) -> Mapping[Pair, Counterparts]:
        """The counterparts of each of these pairs."""
        return await self.observe("counterparts", lambda: self.observed.counterparts(pairs))

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language."""
        return await self.observe("language_centres", self.observed.language_centres)

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages."""
        return await self.observe("chunks_of", lambda: self.observed.chunks_of(urls))

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of these chunks."""
        return await self.observe("vectors", lambda: self.observed.vectors(ids))

    async def units(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The vectors of the stretches of these chunks."""
        return await self.observe("units", lambda: self.observed.units(ids))

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        return await self.observe("frequencies", lambda: self.observed.frequencies(tokens))

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks."""
        return await self.observe("vocabulary", self.observed.vocabulary)

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown."""
        return await self.observe("page", lambda: self.observed.page(url))

    async def pages(self) -> tuple[Page, ...]:
        """All pages, without Markdown."""
        return await self.observe("pages", self.observed.pages)

    async def first_chunks(self) -> tuple[Candidate, ...]:
        """The first chunk of each page."""
        return await self.observe("first_chunks", self.observed.first_chunks)

    async def lost(self) -> str:
        """Returns the damage that is made up for."""
        return await self.observe("lost", self.observed.lost)

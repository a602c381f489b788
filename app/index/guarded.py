"""A wrapper of a store with a circuit breaker, which keeps lately read chunks; a search takes a place of the gate (`app.core.gate`)."""

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from app.core.breaker import Breaker
from app.core.errors import StoreUnavailable
from app.core.gate import busy
from app.core.generation import GenerationInfo
from app.core.types import Chunk, PlainText
from app.index.observed import ObservedGeneration
from app.index.protocols import Generation, Kept, Store

MOST_BYTES = 16_000_000
"""About what the plain texts of 500 pages of documentation take, or 5,000 chunks, or the units of 10,000."""

_WIDE, _SECTION, _PLACE = (
    2,
    400,
    100,
)  # bytes that a letter takes at the most, a section or chunk, and a place in a text

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
    return _WIDE * len(plain.text) + _SECTION * len(plain.sections) + _PLACE * (len(plain.places) + len(plain.borders))


def size_of_chunk(chunk: Chunk) -> int:
    """About how many bytes a chunk takes, with its questions."""
    return _WIDE * (len(chunk.text) + len(chunk.questions_text)) + _SECTION * (1 + len(chunk.sections))


class _Kept(NamedTuple):
    texts: Recent[PlainText]
    chunks: Recent[Chunk]
    units: Recent[bytes]
    frequencies: Recent[int]


class GuardedStore:
    """See `app.index.protocols.Store`. Raises `StoreUnavailable` at once while the breaker is open."""

    def __init__(self, store: Store, name: str) -> None:
        self._store = store
        self._breaker = Breaker("store", name, (StoreUnavailable,), StoreUnavailable)
        self._breaker.facts = store.facts
        self._recent = _Kept(Recent(size_of_text), Recent(size_of_chunk), Recent(len), Recent(lambda _: _SECTION))
        self.breakers = (self._breaker,)

    async def live(self) -> Generation:
        """The live generation."""
        with self._breaker.call("live", proves=False):  # a store may answer from memory, so success proves nothing
            return GuardedGeneration(await self._store.live(), self._breaker, self._recent)

    def __getattr__(self, name: str) -> Any:
        """Each other method is that of the store: commands call them, and wait for it."""
        return getattr(self._store, name)

    async def kept(self, name: Kept) -> Mapping[str, Any]:
        """What is kept with the index under this name."""
        with self._breaker.call("kept", proves=False):
            return await self._store.kept(name)


FROM_MEMORY = frozenset({"translation_sets", "language_centres", "vocabulary", "lost"})
"""What a generation reads once and keeps: a success of these calls proves nothing about the server."""


class GuardedGeneration(ObservedGeneration):
    """See `app.index.protocols.Generation`: each of its calls goes through the breaker, and what is kept needs no store."""

    def __init__(self, generation: Generation, breaker: Breaker, recent: _Kept) -> None:
        super().__init__(generation)
        self._breaker, self._recent = breaker, recent

    async def observe(self, name: str, answer: Callable[[], Awaitable[T]]) -> T:
        """What the call of this name answers, as far as the breaker lets it through."""
        with self._breaker.call(name, proves=name not in FROM_MEMORY), busy():
            return await answer()

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids."""
        chunks = await self._recent.chunks.of(self.info, ids, self._by_id)
        return tuple([chunks[id_] for id_ in ids if id_ in chunks])

    async def _by_id(self, ids: Sequence[str]) -> Mapping[str, Chunk]:
        return {chunk.id: chunk for chunk in await super().fetch(ids)}

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses."""
        return await self._recent.texts.of(self.info, urls, super().plain_texts)

    async def units(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The units of the chunks with these ids."""
        return await self._recent.units.of(self.info, ids, super().units)

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens."""
        return await self._recent.frequencies.of(self.info, tokens, super().frequencies)

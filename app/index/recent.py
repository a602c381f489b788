"""What was read of the index lately: readers ask about the same pages again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Generic, TypeVar

from app.core.generation import GenerationInfo
from app.core.types import Chunk, PlainText

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
        found = {key: values[key] for key in keys if key in values}
        for key in found:
            values.move_to_end(key)
        if missing := [key for key in keys if key not in found]:
            new = await read(missing)
            found |= new
            if self._info is own:  # no newer generation was asked for meanwhile
                self._keep(new)
        return found

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

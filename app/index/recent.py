"""The plain texts of pages that were read lately: readers ask about the same pages again and again."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping, Sequence

from app.core.types import GenerationInfo, PlainText
from app.index.protocols import Generation

MOST_BYTES = 32_000_000
"""About what 1,000 pages of documentation take."""

_BORDER, _SECTION, _PLACE = 40, 400, 200  # bytes that one takes


class RecentTexts:
    """Keeps plain texts of the newest generation that was asked for, the latest read ones, `most` bytes of them."""

    def __init__(self, most: int = MOST_BYTES) -> None:
        self._most = most
        self._info: GenerationInfo | None = None
        self._texts: OrderedDict[str, PlainText] = OrderedDict()
        self._bytes = 0

    async def of(self, generation: Generation, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """As `Generation.plain_texts`; what isn't kept is read from the generation."""
        if generation.info != self._info:
            self._info, self._texts, self._bytes = generation.info, OrderedDict(), 0
        texts, info = self._texts, self._info
        found = {url: texts[url] for url in urls if url in texts}
        if missing := [url for url in urls if url not in found]:
            read = await generation.plain_texts(missing)
            found |= read
            if self._info is info:
                self._keep(read)
        for url in found.keys() & texts.keys():
            texts.move_to_end(url)
        return found

    def _keep(self, read: Mapping[str, PlainText]) -> None:
        for url, text in read.items():
            if url not in self._texts:
                self._texts[url] = text
                self._bytes += _size(text)
        while self._bytes > self._most:
            self._bytes -= _size(self._texts.popitem(last=False)[1])


def _size(plain: PlainText) -> int:
    letters = len(plain.text) * (1 if plain.text.isascii() else 2)
    return letters + _BORDER * len(plain.borders) + _SECTION * len(plain.sections) + _PLACE * len(plain.places)

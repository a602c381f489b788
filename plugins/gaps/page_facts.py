"""Facts about the indexed pages for a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from math import log
from urllib.parse import urldefrag

from app.core.types import Page
from app.index.protocols import Generation, TranslationSets
from plugins.gaps.records import Untranslated, UnusedPage

MOST = 200
"""Pages that a list of the report has at most."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of the live generation by address, which are translations of each other, and how many of its chunks have a token."""

    by_url: Mapping[str, Page] = field(default_factory=dict)
    sets: TranslationSets = field(default_factory=TranslationSets)
    frequencies: Mapping[str, int] = field(default_factory=dict)
    chunks: int = 0

    @classmethod
    async def of(cls, live: Generation, tokens: Iterable[str]) -> Pages:
        """The pages that are searched, with the frequencies of these tokens."""
        pages = {page.url: page for page in await live.pages() if page.derived.chunk_ids}
        return cls(pages, await live.translation_sets(), await live.frequencies(list(tokens)), live.info.chunks)

    def rarity(self, token: str) -> float:
        """Returns 1 for a token that no chunk has, 0 for one that all have; 1 if nothing is known of the pages."""
        most = max(self.chunks, self.frequencies.get(token, 0))
        return 1 - log(1 + self.frequencies.get(token, 0)) / log(1 + most) if most else 1.0

    def untranslated(self, asked: Sequence[tuple[str, str, int]]) -> list[Untranslated]:
        """The pages that answered questions in a language that they have no translation into, the most asked first.

        `asked` has languages and addresses with the numbers of questions.
        """
        counts = Counter[tuple[str, str]]()
        for language, url, count in asked:
            page = self.by_url.get(urldefrag(url).url)
            translations = self.sets.of.get(page.url) if page else None
            if page and language not in {page.language, *(translations.pages if translations else ())}:
                counts[page.url, language] += count
        order = sorted(counts.items(), key=lambda one: (-one[1], one[0]))[:MOST]
        return [
            Untranslated(language, url, self.by_url[url].title, self.by_url[url].language, count)
            for (url, language), count in order
        ]

    def unused(self, used: AbstractSet[str]) -> list[UnusedPage]:
        """The pages that aren't among these addresses, by language and address."""
        shown = {urldefrag(address).url for address in used}
        never_shown = [page for url, page in self.by_url.items() if url not in shown]
        never_shown.sort(key=lambda page: (page.language, page.url))
        return [UnusedPage(page.url, page.title, page.language) for page in never_shown]

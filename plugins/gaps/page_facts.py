"""Facts about the indexed pages for a report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from urllib.parse import urldefrag

from app.conversations.log_figures import Elsewhere
from app.core.types import Page
from app.index.protocols import TranslationSets
from plugins.gaps.records import Untranslated, UnusedPage

MOST = 200
"""Pages that a list of the report has at most."""


@dataclass(frozen=True, slots=True)
class Pages:
    """The pages of the live generation by address, and which are translations of each other."""

    by_url: Mapping[str, Page] = field(default_factory=dict)
    sets: TranslationSets = field(default_factory=TranslationSets)

    @classmethod
    def of(cls, pages: Iterable[Page], sets: TranslationSets) -> Pages:
        """The pages that are searched."""
        return cls({page.url: page for page in pages if page.chunk_ids}, sets)

    def set_of(self, address: str) -> str:
        """The same for a section, its page and its translations; empty for an empty address."""
        url = urldefrag(address).url
        translations = self.sets.of.get(url)
        return translations.id if translations else url

    def untranslated(self, asked: Sequence[Elsewhere]) -> list[Untranslated]:
        """The pages that answered questions in a language that they have no translation into, the most asked first."""
        counts: dict[tuple[str, str], int] = {}
        for question in asked:
            page = self.by_url.get(urldefrag(question.url).url)
            if page and page.language != question.language and question.language not in self._languages(page.url):
                counts[page.url, question.language] = counts.get((page.url, question.language), 0) + question.count
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

    def _languages(self, url: str) -> Iterable[str]:
        translations = self.sets.of.get(url)
        return translations.pages if translations else ()

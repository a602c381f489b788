"""The translation sets of a generation: pages that are translations of each other."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from app.core.types import Candidate, Query

KEPT_COUNTERPARTS = 2000  # pairs of pages, each a few kilobytes


@dataclass(frozen=True, slots=True)
class TranslationSet:
    """The addresses of its pages by language; `id` is one of them."""

    id: str
    pages: Mapping[str, str]

    def own_page(self, candidate: Candidate, query: Query) -> str:
        """The address of the page in the reader's language, if the filters of the query admit it; else empty."""
        url = self.pages.get(query.language, "")
        collection = next(iter(query.filters.collections), "")  # that of the candidate: a set is in one collection
        admitted = url and query.filters.admits(url, collection, {query.language}, candidate.versions)
        return url if admitted else ""


@dataclass(frozen=True, slots=True)
class Counterparts:
    """For the chunks of a page, by their ids, the chunks of a translation that say the same.

    `only_there` are the names (see `app.text.marks`) that the translation lacks, `first` is its first chunk.
    """

    of: Mapping[str, str]
    only_there: frozenset[str] = frozenset()
    first: str = ""


@dataclass(frozen=True, slots=True)
class TranslationSets:
    """The translation set of each page that is in one, by address.

    `counterparts` caches comparisons, by the addresses of both pages.
    """

    of: Mapping[str, TranslationSet] = field(default_factory=dict)
    counterparts: dict[tuple[str, str], Counterparts] = field(default_factory=dict)

    @classmethod
    def read(cls, rows: Iterable[tuple[str, str, str]]) -> TranslationSets:
        """From the address, the language and the set of each page that is in one."""
        found: dict[str, dict[str, str]] = defaultdict(dict)
        for url, language, id_ in rows:
            found[id_].setdefault(language, url)
        several = [TranslationSet(id_, pages) for id_, pages in found.items() if len(pages) > 1]
        return cls({url: one for one in several for url in one.pages.values()})

    def cache(self, pages: tuple[str, str], counterparts: Counterparts) -> None:
        """Keep a comparison, and drop the oldest one if there are too many."""
        while len(self.counterparts) >= KEPT_COUNTERPARTS:
            del self.counterparts[next(iter(self.counterparts))]
        self.counterparts[pages] = counterparts

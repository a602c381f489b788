"""Protocols of a store: `Store` keeps generations, `Generation` is one of them to read, `Draft` is the next one.

Publishing moves one pointer atomically; unchanged chunks are not copied. A reader uses one `Generation` throughout and
never sees an incomplete one. Every method is async; failures are `StoreError`s.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Literal, Protocol, Self

from app.core.generation import GenerationInfo, Recipe, SourceRecord
from app.core.types import Candidate, Chunk, Legs, Page, PlainText, Query, Vector
from app.index.vocabulary import Vocabulary

KEPT_COUNTERPARTS = 2000  # pairs of pages, each a few kilobytes
Pair = tuple[str, str]
"""The address of a page and that of its translation in the reader's language."""
Kept = Literal["sites", "curated", "runs", "briefing"]
"""What is kept with an index beside its generations, as JSON: it is what the service and the runs share, wherever they run."""


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

    `counterparts` caches those that questions have read.
    """

    of: Mapping[str, TranslationSet] = field(default_factory=dict)
    counterparts: dict[Pair, Counterparts] = field(default_factory=dict)

    @classmethod
    def read(cls, rows: Iterable[tuple[str, str, str]]) -> TranslationSets:
        """From the address, the language and the set of each page that is in one."""
        pages_of: dict[str, dict[str, str]] = defaultdict(dict)
        for url, language, id_ in rows:
            pages_of[id_].setdefault(language, url)
        several = [TranslationSet(id_, pages) for id_, pages in pages_of.items() if len(pages) > 1]
        return cls({url: translations for translations in several for url in translations.pages.values()})

    def cache(self, new: Mapping[Pair, Counterparts]) -> None:
        """Keep these, and drop the oldest ones if there are too many."""
        self.counterparts.update(new)
        while len(self.counterparts) > KEPT_COUNTERPARTS:
            del self.counterparts[next(iter(self.counterparts))]


class Generation(Protocol):
    """A published state of the index. Later publishing doesn't change what it returns."""

    @property
    def info(self) -> GenerationInfo:
        """The facts about this generation."""

    async def search(self, query: Query) -> Legs:
        """The lexical and the vector leg, each best first, with at most `query.depth` candidates and raw scores.

        Filters apply to both. Questions of chunks and summaries of pages, if there are any, are searched too, as `Legs.indirect`.
        """

    async def fetch(self, ids: Sequence[str]) -> tuple[Chunk, ...]:
        """The chunks with these ids, in the order of the ids; unknown ids are left out."""

    async def plain_texts(self, urls: Sequence[str]) -> Mapping[str, PlainText]:
        """The plain texts of the pages with these addresses, in one round trip; without those that aren't there."""

    async def translation_sets(self) -> TranslationSets:
        """The pages that are translations of each other. Read once per generation and cached."""

    async def counterparts(self, pairs: Collection[Pair]) -> Mapping[Pair, Counterparts]:
        """The counterparts of each of these pairs, as the run that published them stored them. A pair without any is compared by the call
        (`app.index.ranking.counterparts.counterparts_of`).
        """

    async def language_centres(self) -> Mapping[str, Vector]:
        """The mean vector of the chunks in each language, of a sample of them. Read once per generation and cached."""

    async def chunks_of(self, urls: Collection[str]) -> Mapping[str, tuple[Chunk, ...]]:
        """The chunks of each of these pages, in the order of the page; pages without chunks are left out."""

    async def vectors(self, ids: Sequence[str]) -> Mapping[str, Vector]:
        """The vectors of the texts of these chunks, by id; of any length. Unknown ids and chunks without a vector are left out."""

    async def units(self, ids: Sequence[str]) -> Mapping[str, bytes]:
        """The vectors of the stretches of these chunks, by id, as `app.index.ranking.units.packed` made them; without those that have none."""

    async def frequencies(self, tokens: Sequence[str]) -> Mapping[str, int]:
        """The number of chunks with each of these tokens (of `app.text.analysis`); 0 for an unknown token."""

    async def vocabulary(self) -> Vocabulary:
        """The words of the chunks, of a sample of them in a large index. Read once per generation and cached."""

    async def page(self, url: str) -> Page | None:
        """A page with its Markdown, by its public address."""

    async def pages(self) -> tuple[Page, ...]:
        """All pages, by address, without Markdown."""

    async def first_chunks(self) -> tuple[Candidate, ...]:
        """The first chunk of each page that has one, by address, with a score of 0: a small part of what `pages` reads."""

    async def lost(self) -> str:
        """Returns the damage that is made up for, so that answers are worse; empty if nothing is damaged."""


class Draft(Protocol):
    """The next generation, being written. Leaving the context without `publish` discards it."""

    @property
    def rebuilds(self) -> bool:
        """True if nothing can be shared with the live generation (another recipe, or none is live)."""

    async def page_states(self) -> Mapping[str, Page]:
        """The pages as the draft has them, by address, without Markdown: first those of the live generation, or none."""

    async def missing(self, chunks: Iterable[Chunk]) -> tuple[Chunk, ...]:
        """The chunks that the draft doesn't have yet: `put` needs vectors for them. Those of the live generation count as had, also after `remove`."""

    async def put(self, page: Page, chunks: Sequence[Chunk], vectors: Mapping[str, Vector]) -> None:
        """Add the page, or replace its chunks with these. `vectors` are by chunk id, for the `missing` chunks.

        If the recipe has summaries or questions, `vectors` must contain that of the page's `summary_text` under its address,
        and those of the chunks' `questions_text` under their `questions_id`. Vectors of stretches (`app.index.ranking.units`) may be
        there, too. An unchanged chunk isn't written again, nor are the vectors of its questions; a chunk with other changes
        (sections, title, dates) keeps its vector and those of its stretches.
        """

    async def remove(self, url: str) -> None:
        """Remove the page and its chunks; an unknown address is no error."""

    async def touch(self, pages: Iterable[Page]) -> None:
        """Replace the records of these pages (etag, last_ok, status ...) without writing chunks.

        `chunk_ids` and `markdown` of the given pages are ignored; the stored values are kept. Another `translation_set` makes a
        new generation, as `put` does.
        """

    async def publish(self, sources: Sequence[SourceRecord] = ()) -> GenerationInfo:
        """Make the draft live in one atomic step, and drop generations that are no longer kept.

        First it stores the counterparts of pages whose translation set changed (`app.index.ranking.counterparts`). `sources` become those
        of the info; without any, those of the live generation stay.

        If nothing was put or removed, no new generation is made: touched records and other `sources` are saved, and the
        info of the live generation is returned. Raises `NoIndex` if nothing was published before, either.
        """

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None: ...


class Store(Protocol):
    """An index with its generations.

    A class that `DOCS_STORE` names as `module:Class` is called with the `Settings`. Indexing and the service are different
    processes, so what one of them keeps in its memory alone the other doesn't see.
    """

    @property
    def facts(self) -> Mapping[str, str | int]:
        """The server's facts for traces: OpenTelemetry's attributes of a database, such as `db.system.name`."""

    async def live(self) -> Generation:
        """The published generation, pinned. Raises `NoIndex` when nothing was published yet. Cheap: called per question. Stores that are opened
        apart return objects of their own.
        """

    async def draft(self, recipe: Recipe, *, rebuild: bool = False) -> Draft:
        """Begin the next generation, first clearing what an aborted run left. Use it as `async with await store.draft(...)`.

        Another recipe than the live one's means a full rebuild beside the live generation. So does `rebuild`, which also
        works where nothing that is there can be read, and keeps no earlier generation once it is published. Raises
        `StoreBusy` while another draft is written, in any process.
        """

    async def generations(self) -> tuple[GenerationInfo, ...]:
        """The kept generations, newest first, including the live one."""

    async def kept(self, name: Kept) -> Mapping[str, Any]:
        """What is kept with the index under this name, also before the first generation; empty at first. Raises `IndexDamaged` if
        it can't be read.
        """

    async def keep(self, name: Kept, values: Mapping[str, Any]) -> None:
        """Replace it; the index stays as it is."""

    async def rollback(self) -> GenerationInfo:
        """Make the previous generation live again. Raises `NoIndex` if none is kept."""

    async def close(self) -> None:
        """Close all connections; safe to call twice."""

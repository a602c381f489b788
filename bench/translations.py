"""Pages in several languages: which of them the index knows as translations, and whether they take places from each other.

python -m bench.translations [--variant NAME]: indexes the site of `tests/parallel` in each arrangement of its languages,
in the embedded store with the static vectors, compares the groups of translations with the truth, and asks its questions.
"""

from __future__ import annotations

import argparse
import asyncio
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

from app.assistants.assembly import opened
from app.assistants.assistant import Assistant
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.core.types import Page
from app.index import open_store
from app.models import open_embedder
from eval.commands.options import NO_MODEL, quiet_pipeline
from eval.measure.tables import as_table
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest
from tests.parallel.content import LANGUAGES, Question, questions
from tests.parallel.site import VARIANTS, ParallelSite

PLACES = 5
COLUMNS = (
    "site", "pages", "groups", "precision", "recall", "twin before", "twin beside", "page missing", "MRR@5", "cs", "en", "de",
    "any language", "places", "documents", "all different", "elsewhere",
)  # fmt: skip


def known_translations(pages: Iterable[Page]) -> set[frozenset[str]]:
    """The groups of addresses that the index takes for translations of each other: all that this file knows of how."""
    groups: dict[str, set[str]] = defaultdict(set)
    for page in pages:
        groups[page.translation_set].add(page.url)
    return {frozenset(group) for id_, group in groups.items() if id_}


@dataclass(frozen=True, slots=True)
class Asked:
    """Where the passages found for a question lie: addresses in the order of the ranking."""

    question: Question
    found: Sequence[str]
    page: str
    twins: frozenset[str]

    @property
    def rank(self) -> int:
        """Of the page in the question's language, among different pages; 0 where it wasn't found."""
        return _rank(self.found, {self.page})

    @property
    def twin_before(self) -> bool:
        """True if another version of the page stands before it, or in its place."""
        twin = _rank(self.found, self.twins)
        return bool(twin) and (not self.rank or twin < self.rank)

    @property
    def twin_beside(self) -> bool:
        """True if another version takes a place at all."""
        return not self.twins.isdisjoint(self.found)


def _rank(found: Sequence[str], wanted: Iterable[str]) -> int:
    wanted = set(wanted)
    return next((rank for rank, url in enumerate(dict.fromkeys(found), start=1) if url in wanted), 0)


def precision_and_recall(known: set[frozenset[str]], truth: set[frozenset[str]]) -> tuple[float | None, float]:
    """Of pairs of pages; None where no pair is known."""
    pairs, right = _pairs(known), _pairs(truth)
    return (len(pairs & right) / len(pairs) if pairs else None), len(pairs & right) / len(right)


def _pairs(groups: set[frozenset[str]]) -> set[frozenset[str]]:
    return {frozenset(pair) for group in groups for pair in combinations(sorted(group), 2)}


async def measure(site: ParallelSite) -> list[str]:
    """A row of the table."""
    with tempfile.TemporaryDirectory() as store:
        settings = Settings.load(None, store=store, languages=LANGUAGES, top_k=PLACES, **NO_MODEL)
        await index_site(site, settings)
        async with opened(settings) as assistants:
            pages = await (await assistants.store.live()).pages()
            asked = [await _ask(assistants.get(""), site, one) for one in questions()]
    known = known_translations(pages)
    precision, recall = precision_and_recall(known, site.truth)
    shown = "-" if precision is None else f"{precision:.3f}"
    return [site.variant.name, str(len(pages)), str(len(known)), shown, f"{recall:.3f}", *_figures(site, asked)]


async def index_site(site: ParallelSite, settings: Settings) -> None:
    """Crawl the site into the store of these settings."""
    store, embedder = open_store(settings), open_embedder(settings)
    try:
        with site.served() as (sitemaps, transport):
            async with Fetcher(settings, transport=transport) as fetcher:
                report = await ingest(sitemaps, store=store, embedder=embedder, settings=settings, fetcher=fetcher)
        if report.exit_code:
            raise SystemExit(report.text)
    finally:
        await store.close()
        await embedder.close()


async def _ask(assistant: Assistant, site: ParallelSite, question: Question) -> Asked:
    turn = await assistant.find(Request((Message("user", question.text),), id="bench"))
    versions = site.answer(question)
    # what the question's language lacks is best read in English
    page = versions["en" if question.elsewhere else question.language]
    return Asked(question, [hit.chunk.url for hit in turn.hits], page, frozenset(versions.values()) - {page})


def _figures(site: ParallelSite, asked: Sequence[Asked]) -> list[str]:
    own = [one for one in asked if not one.question.elsewhere]
    document = {url: group for group in site.truth for url in group}
    places = [len(one.found) for one in own]
    documents = [len({document.get(url, url) for url in one.found}) for one in own]
    same = sum(a == b for a, b in zip(places, documents, strict=True))
    by_language = {code: [one for one in own if one.question.language == code] for code in LANGUAGES}
    elsewhere = [one for one in asked if one.question.elsewhere]
    return [
        str(sum(one.twin_before for one in own)),
        str(sum(one.twin_beside for one in own)),
        str(sum(not one.rank for one in own)),
        _mrr([one.rank for one in own]),
        *(_mrr([one.rank for one in by_language[code]]) for code in ("cs", "en", "de")),
        _mrr([_rank(one.found, {one.page} | one.twins) for one in own]),
        f"{sum(places) / len(places):.2f}",
        f"{sum(documents) / len(documents):.2f}",
        f"{same} of {len(own)}",
        f"{sum(one.rank == 1 for one in elsewhere)} of {len(elsewhere)} first",
    ]


def _mrr(ranks: Sequence[int]) -> str:
    return f"{sum(1 / rank for rank in ranks if rank) / len(ranks):.3f}"


async def main() -> None:
    """Measure each arrangement and print the table."""
    names: Mapping[str, ParallelSite] = {variant.name: ParallelSite(variant) for variant in VARIANTS}
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--variant", action="append", choices=names, help="only this one; may be repeated")
    chosen = parser.parse_args().variant or names
    with quiet_pipeline():
        rows = [await measure(names[name]) for name in chosen]
    print("\n".join(as_table(list(COLUMNS), rows)))


if __name__ == "__main__":
    asyncio.run(main())

"""Assigns the pages of a draft to translation sets, and reports how these were found."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from app.core.settings import Settings
from app.core.types import Page
from app.index.protocols import Draft
from app.text.marks import FORM, fingerprint
from ingestion.publish.baseline import Baseline
from ingestion.report import TranslationPairs, TranslationReport
from ingestion.sources import translations_of
from ingestion.translation_sets.grouping import Found, Pair, translation_sets

SAMPLE = 3


async def assign_translation_sets(draft: Draft, baseline: Baseline, settings: Settings) -> TranslationReport:
    """Change the draft's pages where their set is another one, and count what was found."""
    states = await draft.page_states()
    pages, found = states, Found({}, ())
    if len({page.language for page in states.values()}) > 1:
        pages = {url: await _with_fingerprint(page, baseline) for url, page in states.items()}
        found = await asyncio.to_thread(translation_sets, list(pages.values()), settings.default_language, _rule_of)
    assigned = [replace(page, translation_set=found.of.get(url, "")) for url, page in pages.items()]
    await draft.touch([page for page in assigned if page != states[page.url]])
    return _report(found)


def _rule_of(page: Page) -> str:
    return translations_of(page.reading)


async def _with_fingerprint(page: Page, baseline: Baseline) -> Page:
    """The page with the fingerprint of its text, which an index of an earlier release lacks."""
    if page.fingerprint.startswith(FORM):
        return page
    stored = await baseline.page(page.url)
    return replace(page, fingerprint=fingerprint(stored.markdown)) if stored else page


def _report(found: Found) -> TranslationReport:
    by_origin: Mapping[tuple[str, str], list[Pair]] = defaultdict(list)
    for pair in found.pairs:
        by_origin[pair.origin, pair.form].append(pair)
    translations = tuple(
        TranslationPairs(origin, form, len(pairs), tuple((pair.one.url, pair.other.url) for pair in pairs[:SAMPLE]))
        for (origin, form), pairs in by_origin.items()
    )
    return TranslationReport(len(set(found.of.values())), len(found.of), translations)

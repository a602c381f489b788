"""The explanation of a ranking says what the ranking itself does."""

from __future__ import annotations

import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.types import Boost, Candidate, Legs, Query, Recency
from app.index.protocols import TranslationSets
from app.index.ranking.fuse import explained, leg_weights
from tests.app.index.test_fuse import fuse

QUERIES = [
    Query(texts=(), language="en", limit=4, per_page=2),
    Query(texts=(), language="en", limit=3, per_page=1, fusion="rrf", other_language=0.5),
    Query(texts=(), language="cs", limit=5, language_offsets=(("en", 0.1),), lexical_weight=0.2, vector_weight=0.8),
    Query(texts=(), limit=2, boosts=(Boost(1.5, url_prefixes=("https://x/1",)),), recency=Recency("2026-01-01")),
]


async def no_sets() -> TranslationSets:
    return TranslationSets({})


GENERATION: Any = SimpleNamespace(translation_sets=no_sets)


def made(seed: int) -> Legs:
    rng = random.Random(seed)

    def leg(low: float, high: float) -> tuple[Candidate, ...]:
        found = []
        for number in rng.sample(range(24), rng.randrange(1, 18)):
            page, language = number // 4, "cs" if number % 3 == 0 else "en"
            url = f"https://x/{'v1/' if page == 4 else 'v2/' if page == 5 else ''}{page % 4}"
            found.append(Candidate(f"c{number}", url, language, rng.uniform(low, high), f"202{page % 4}-01-01"))
        return tuple(sorted(found, key=lambda one: -one.score))

    return Legs(leg(0, 20), leg(-0.2, 0.9))


async def test_it_has_all_candidates_their_scores_and_the_same_hits():
    """Of 400 rankings: the hits of `fuse`, in its order; the parts of both legs add up to the score; the others say why."""
    reasons = set()
    for seed in range(100):
        legs = made(seed)
        for query in QUERIES:
            told = await explained(GENERATION, legs, query)
            ranked = fuse(legs, query)
            hits = [row for row in told if not row.cut]
            told_of = [(row.candidate.id, row.fused, row.boost) for row in hits]
            assert told_of == [(one.chunk.id, one.fused, one.boost) for one in ranked]
            assert {row.candidate.id for row in told} == {c.id for c in (*legs.lexical, *legs.vector)}
            for row in told:
                assert row.words + row.vectors == pytest.approx(row.fused)
                if not any(c.id == row.candidate.id for c in legs.lexical):
                    assert row.words == pytest.approx(0)
            reasons |= {row.cut for row in told}
            assert sum(leg_weights(legs, query)) == pytest.approx(1)
    assert reasons == {"", "version", "language", "per_page", "top_k"}


async def test_what_is_dropped_for_its_language_would_be_a_hit_without_the_factor():
    """Such a chunk is a hit of the same query in which other languages cost nothing."""
    checked = 0
    for seed in range(60):
        legs, query = made(seed), QUERIES[1]
        told = await explained(GENERATION, legs, query)
        free = {r.chunk.id for r in fuse(legs, replace(query, other_language=1.0, per_page=99, limit=99))}
        least = min((row.fused for row in told if not row.cut), default=0)
        for row in (one for one in told if one.cut == "language"):
            assert row.candidate.language != "en"
            assert row.candidate.id in free
            assert row.fused / row.language_factor > least
            checked += 1
    assert checked > 10

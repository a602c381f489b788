"""The time of a page, and where it lies, change its place in the ranking; a page without a date keeps its own."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.types import Boost, Candidate, Legs, Query, Recency
from app.index.ranking.fuse import NEAR_THE_READER, factors, near_page
from tests.app.index.test_fuse import fuse

DATES = {"old": "2022-03-01T10:00:00+00:00", "middle": "2023-09-01", "new": "2025-03-01", "undated": ""}
SCORES = {"old": 10.0, "undated": 9.0, "middle": 8.0, "new": 7.0, "last": 1.0}


def fused(dates: dict[str, str] | None = None, **values) -> dict[str, float]:
    """Fused scores by id, in the order of the ranking."""
    dates = DATES if dates is None else dates
    leg = tuple(
        Candidate(id=id_, url=f"https://x/{id_}/", language="en", score=score, dated=dates.get(id_, ""))
        for id_, score in SCORES.items()
    )
    ranked = fuse(Legs(leg), Query(texts=(), limit=10, lexical_weight=1.0, **values))
    return {one.chunk.id: one.fused for one in ranked}


PLAIN = fused()


def test_pages_of_the_time_count_fifteen_times():
    """Both ends included; pages of another time and those without a date stay as they are."""
    for first, last, raised in (
        ("2023-09-01", "", {"middle", "new"}),
        ("2023-09-02", "", {"new"}),
        ("", "2023-09-01", {"old", "middle"}),
        ("2022-03-01", "2022-03-01", {"old"}),
        ("2026-01-01", "", set()),
    ):
        boosted = fused(boosts=(Boost(15, first, last),))
        assert boosted == {id_: pytest.approx(score * (15 if id_ in raised else 1)) for id_, score in PLAIN.items()}


def test_the_page_of_the_reader_and_those_below_it_count_more_but_not_those_that_begin_like_it():
    """/new/ and what is below it twice, pages beside it once; /news/ isn't below /new/."""
    at = {"/a/new": 2, "/a/new/": 2, "/a/new/below/": 2, "/a/news/": 1, "/a/new.html": 1, "/a/": 1, "/b/new/": 0}
    candidates = {path: Candidate(id=path, url=f"https://x{path}", language="en", score=1.0) for path in at}
    for page in ("/a/new", "/a/new/", "/a/new/index.html", "/a/new/?q=1#below"):
        found = factors(candidates, Query(texts=(), limit=10, boosts=near_page(f"https://x{page}")))
        assert found == {path: pytest.approx(NEAR_THE_READER**times) for path, times in at.items()}
    for page, raised in (("/a/", set(at) - {"/b/new/"}), ("/", set())):
        found = factors(candidates, Query(texts=(), limit=10, boosts=near_page(f"https://x{page}")))
        assert {path for path, factor in found.items() if factor > 1} == raised


def test_without_a_time_newer_pages_count_more():
    """1 / (1 + 0.5 a year), two years at most; a page without a date gets the median of the others."""
    ranked = fused(recency=Recency("2025-03-01"))
    assert ranked["new"] == pytest.approx(PLAIN["new"])
    assert ranked["old"] == pytest.approx(PLAIN["old"] / 2)
    assert ranked["middle"] == pytest.approx(PLAIN["middle"] / (1 + 0.5 * 547 / 365.25))
    assert ranked["undated"] / PLAIN["undated"] == pytest.approx(ranked["middle"] / PLAIN["middle"])
    assert list(ranked) == ["new", "undated", "old", "middle", "last"]


def test_without_real_dates_nothing_changes():
    """One day for all is the day of a build."""
    for dates in ({}, dict.fromkeys(SCORES, "2024-05-05"), {"old": "2020-01-01"}):
        assert fused(dates, recency=Recency("2025-03-01")) == PLAIN


def test_a_hit_has_the_factor_of_its_boost():
    """So that the relevance of a page can be separated from its date; 1 without a boost."""
    leg = (Candidate("new", "https://x/new/", "en", 2.0, "2025-03-01"), Candidate("old", "https://x/old/", "en", 1.0))
    query = Query(texts=(), lexical_weight=1.0)
    assert [one.boost for one in fuse(Legs(leg), query)] == [1.0, 1.0]
    assert [one.boost for one in fuse(Legs(leg), replace(query, boosts=(Boost(15, "2025-01-01"),)))] == [15.0, 1.0]

"""Two legs become one ranking."""

from __future__ import annotations

import random

import pytest

from app.core.types import Candidate, Chunk, Hit, Legs, Query
from app.index.ranking.fuse import chosen, hits, leg_weights, scored
from app.index.ranking.legs import offsets


def leg(*scored: tuple[str, float], language: str = "en") -> tuple[Candidate, ...]:
    return tuple(Candidate(id=id_, url=f"https://x/{id_}", language=language, score=score) for id_, score in scored)


def query(**values) -> Query:
    return Query(texts=(), **({"limit": 10, "lexical_weight": 0.7, "vector_weight": 0.3} | values))


def fuse(legs: Legs, query: Query) -> tuple[Hit, ...]:
    """The ranking where no page is a translation of another."""
    fused = scored(legs, query)
    chunks = {one.id: Chunk(one.id, "", one.url, 0, "", one.language, "") for one in fused.candidates.values()}
    return hits(chosen(fused, query), chunks, fused, legs, query)


def test_weighted_sum_of_min_max_normalised_scores():
    legs = Legs(leg(("a", 12.0), ("b", 7.0), ("c", 2.0)), leg(("c", 0.9), ("d", 0.5), ("b", 0.1)))
    ranked = fuse(legs, query())
    assert [(r.chunk.id, pytest.approx(r.fused)) for r in ranked] == [("a", 0.7), ("b", 0.35), ("c", 0.3), ("d", 0.15)]
    assert fuse(Legs(), query()) == ()


def test_raw_scores_stay_and_none_says_that_a_leg_did_not_bring_it():
    ranked = {r.chunk.id: r for r in fuse(Legs(leg(("a", 12.0), ("b", 7.0)), leg(("b", -0.2), ("c", -0.5))), query())}
    raw = {id_: (r.lexical, r.cosine) for id_, r in ranked.items()}
    assert raw == {"a": (12.0, None), "b": (7.0, -0.2), "c": (None, -0.5)}


def test_equal_scores_of_a_leg_all_count_in_full():
    assert [r.fused for r in fuse(Legs(leg(("a", 3.0), ("b", 3.0))), query())] == [pytest.approx(0.7)] * 2
    assert fuse(Legs(leg(("a", 3.0))), query())[0].fused == pytest.approx(0.7)


def test_reciprocal_ranks_ignore_how_far_scores_are_apart():
    legs = Legs(leg(("a", 1000.0), ("b", 1.0), ("c", 0.5)), leg(("b", 0.9), ("c", 0.89)))
    ranked = fuse(legs, query(fusion="rrf"))
    shares = {"b": 1 / 62 + 1 / 61, "c": 1 / 63 + 1 / 62, "a": 1 / 61}
    assert [(r.chunk.id, pytest.approx(r.fused)) for r in ranked] == [
        (id_, 61 / 2 * share) for id_, share in shares.items()
    ]
    assert fuse(Legs(leg(("a", 1.0)), leg(("a", 1.0))), query(fusion="rrf"))[0].fused == pytest.approx(1.0)


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_other_languages_are_multiplied(fusion):
    """Where the reader's own language has the best candidate, the others lose just the factor."""
    legs = Legs(lexical=leg(("b", 2.0), language="cs") + leg(("a", 1.9)) + leg(("c", 1.0), language="cs"))
    plain = {r.chunk.id: r.fused for r in fuse(legs, query(fusion=fusion))}
    czech = {r.chunk.id: r.fused for r in fuse(legs, query(fusion=fusion, language="cs", other_language=0.5))}
    assert czech == {"a": plain["a"] / 2, "b": plain["b"], "c": plain["c"]}
    assert {r.chunk.id: r.fused for r in fuse(legs, query(fusion=fusion, language="cs", other_language=1.0))} == plain


@pytest.mark.parametrize(("sureness", "first"), [(1.0, "own"), (0.25, "other"), (0.0, "other")])
def test_a_guessed_language_decides_between_equals_only(sureness: float, first: str):
    """The less sure the language is, the less its preference weighs; forbidding other languages stays so."""
    legs = Legs(leg(("other", 10.0)) + leg(("own", 9.0), ("low", 0.0), language="cs"))
    assert fuse(legs, query(language="cs", other_language=0.7, sureness=sureness))[0].chunk.id == first
    forbidden = fuse(legs, query(language="cs", other_language=0.0, sureness=0.25))
    assert {r.chunk.id for r in forbidden} == {"own", "low"}
    equal = Legs(leg(("a", 9.0)) + leg(("b", 9.0), ("low", 0.0), language="cs"))
    assert fuse(equal, query(language="cs", other_language=0.7, sureness=0.25))[0].chunk.id == "b"


@pytest.mark.parametrize(("own", "first"), [(9.0, "own"), (7.5, "own"), (5.0, "other"), (1.5, "other")])
def test_the_preference_softens_where_the_own_language_has_weak_evidence(own: float, first: str):
    """A page in the other language wins as soon as it has clearly more of what was asked."""
    legs = Legs(leg(("other", 10.0)) + leg(("own", own), ("low", 0.0), language="cs"))
    ranked = fuse(legs, query(language="cs", other_language=0.7))
    assert ranked[0].chunk.id == first
    assert 0 <= min(r.fused for r in ranked) <= max(r.fused for r in ranked) <= 1


def test_a_language_without_any_evidence_does_not_let_one_leg_drown_the_other():
    """However weak the reader's language is in one leg, the other leg still counts."""
    lexical = leg(("a", 100.0), ("b", 99.0)) + leg(("own", 0.1), ("low", 0.0), language="cs")
    vector = leg(("b", 0.9), ("a", 0.2)) + leg(("own", 0.8), language="cs")
    assert [r.chunk.id for r in fuse(Legs(lexical, vector), query(language="cs", other_language=0.7))][:2] == ["b", "a"]


def test_never_more_of_one_page_than_allowed_even_if_less_remains():
    same = tuple(Candidate(id=f"a{i}", url="https://x/a", language="en", score=9.0 - i) for i in range(5))
    ranked = fuse(Legs(lexical=same + leg(("b", 0.5))), query(limit=5, per_page=2))
    assert [r.chunk.id for r in ranked] == ["a0", "a1", "b"]


def test_the_limit_and_the_depth_cut():
    legs = Legs(leg(*((f"c{i:02}", 50.0 - i) for i in range(50))))
    assert [r.chunk.id for r in fuse(legs, query(limit=3))] == ["c00", "c01", "c02"]
    legs = Legs(leg(("a", 3.0), ("b", 2.0), ("c", -100.0)))
    assert {r.chunk.id: r.fused for r in fuse(legs, query(depth=2))} == {"a": pytest.approx(0.7), "b": 0.0}


@pytest.mark.parametrize("fusion", ["weighted", "rrf"])
def test_ties_are_ordered_by_id_whatever_the_order_they_came_in(fusion):
    scored = [(id_, 1.0) for id_ in "edcba"]
    expected = fuse(Legs(leg(*scored), leg(*scored)), query(fusion=fusion))
    assert [r.chunk.id for r in expected] == ["a", "b", "c", "d", "e"]
    for seed in range(5):
        random.Random(seed).shuffle(scored)
        assert fuse(Legs(leg(*scored), leg(*reversed(scored))), query(fusion=fusion)) == expected


@pytest.mark.parametrize(("least", "most"), [(0.0, 0.9), (0.80, 0.83)])
def test_cosines_that_hardly_differ_do_not_drown_clear_words(least: float, most: float):
    """Whatever range the model's cosines use, a leg that can't tell its candidates apart weighs little."""
    near = leg(*((f"v{i:02}", most - (most - least) * i / 60) for i in range(30)), ("named", 0.4 * most + 0.6 * least))
    near += leg(*((f"w{i:02}", least) for i in range(30)))
    words = leg(("named", 20.0), *((f"v{i:02}", 4.0 - i / 100) for i in range(60)))
    for share in (0.2, 0.35, 0.5, 0.65):
        assert fuse(Legs(words, near), query(lexical_weight=1 - share, vector_weight=share))[0].chunk.id == "named"


def test_fixed_weights_are_exactly_those_configured():
    """However clearly a leg decides: with .3 for vectors, the best of the words has .7 and that of the vectors .3."""
    words = leg(*((f"c{i:02}", 4.0 - i / 100) for i in range(60)))
    near = leg(("far", 0.9), *((f"c{i:02}", 0.5 - i / 1000) for i in range(1, 40)))
    scores = {one.chunk.id: one.fused for one in fuse(Legs(words, near), query(fusion="fixed", limit=99))}
    assert (scores["c00"], scores["far"]) == (pytest.approx(0.7), pytest.approx(0.3))
    assert leg_weights(Legs(words, near), query(fusion="fixed")) == (0.7, 0.3)
    assert leg_weights(Legs(words, near), query())[0] < 0.7


def test_the_only_page_with_a_summary_is_not_lifted_for_that():
    near = leg(*((f"c{i:02}", 0.5 - i / 100) for i in range(20)))
    few = {"summaries": leg(("c15", 0.4))}
    assert fuse(Legs((), near, indirect=few), query()) == fuse(Legs((), near), query())
    more = {"summaries": leg(("c15", 0.9), *((f"c{i:02}", 0.1) for i in range(12)))}
    assert "c15" in [one.chunk.id for one in fuse(Legs((), near, indirect=more), query(limit=5))]


def test_a_clear_vector_outweighs_words_that_all_have():
    words = leg(*((f"c{i:02}", 4.0 - i / 100) for i in range(60)))
    near = leg(("c40", 0.9), *((f"c{i:02}", 0.5 - i / 1000) for i in range(40)), ("c59", 0.3))
    for share in (0.35, 0.5, 0.65):
        assert fuse(Legs(words, near), query(lexical_weight=1 - share, vector_weight=share))[0].chunk.id == "c40"


def test_an_answer_in_another_language_is_not_behind_pages_that_are_near_for_their_language_only():
    """A multilingual model puts texts of one language near each other; the means of the languages show by how much."""
    czech = leg(*((f"c{i}", 0.86 - i / 1000) for i in range(8)), language="cs")
    legs = Legs(vector=tuple(sorted(czech + leg(("answer", 0.85), ("e1", 0.78), ("e2", 0.77)), key=lambda c: -c.score)))
    means = {"cs": (1.0, 0.0), "en": (0.92, 0.39)}
    shifted = query(language="cs", language_offsets=offsets(means, (1.0, 0.0), "cs"))
    assert shifted.language_offsets == (("en", pytest.approx(-0.08, abs=0.01)),)
    assert fuse(legs, query(language="cs"))[0].chunk.id == "c0"
    assert (first := fuse(legs, shifted)[0]).chunk.id == "answer"
    assert first.cosine == 0.85  # what is shown stays raw
    assert offsets(means, (1.0, 0.0), "de") == offsets({"cs": (1.0, 0.0)}, (1.0, 0.0), "cs") == ()

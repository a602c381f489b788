"""Explains a ranking: how each candidate got its score, and why it isn't among the hits. It computes what `rank` does, again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from app.core.types import Candidate, Legs, Query
from app.index.protocols import Generation
from app.index.ranking.fuse import (
    comparable,
    in_order,
    language_factor,
    leg_scores,
    leg_weights,
    one_version,
    scored,
    with_cuts,
)
from app.index.ranking.translations import Scored, merge_translations

Cut = Literal["", "version", "translation", "language", "per_page", "top_k"]


@dataclass(frozen=True, slots=True)
class Explained:
    """A candidate with its fused score, of which `words` and `vectors` are the parts that both legs add.

    `cut` says why it isn't among the hits; empty if it is. `found_in` is the language of the translation that has the score.
    """

    candidate: Candidate
    fused: float
    words: float
    vectors: float
    language_factor: float
    boost: float
    cut: Cut
    found_in: str = ""


@dataclass(frozen=True, slots=True)
class Explanation:
    """All candidates of a ranking, best first, and the weights of both legs for this question."""

    candidates: tuple[Explained, ...]
    words_weight: float
    vector_weight: float


async def explained(generation: Generation, legs: Legs, query: Query) -> Explanation:
    """How `rank` gets from these legs to its hits."""
    lexical, vector = legs.lexical[: query.depth], comparable(legs.vector[: query.depth], query)
    first = scored(legs, query)
    merged = await merge_translations(generation, first, query)
    shares = _shares(leg_scores(lexical, vector, query))
    cuts = _cuts(merged, query)

    def one(candidate: Candidate, score: float, cut: Cut) -> Explained:
        found = merged.found_as.get(candidate.id, candidate) if cut != "translation" else candidate
        words = shares.get(found.id, 0.0)
        found_in = "" if found is candidate else found.language
        boost = merged.boosts.get(found.id, 1.0)
        return Explained(
            candidate, score, score * words, score * (1 - words), language_factor(found, query), boost, cut, found_in
        )

    rows = [one(candidate, merged.scores[id_], cuts[id_]) for id_, candidate in merged.candidates.items()]
    rows += [one(each, first.scores[id_], "translation") for id_, each in first.candidates.items() if id_ not in cuts]
    weights = leg_weights(lexical, vector, query)
    return Explanation(tuple(sorted(rows, key=lambda row: (bool(row.cut), -row.fused, row.candidate.id))), *weights)


def _shares(scores: tuple[Mapping[str, float], Mapping[str, float]]) -> Mapping[str, float]:
    """The share (0..1) of the words in the score of each candidate."""
    words, vectors = scores
    sums = {id_: words.get(id_, 0.0) + vectors.get(id_, 0.0) for id_ in {**words, **vectors}}
    return {id_: words.get(id_, 0.0) / total if total else float(id_ in words) for id_, total in sums.items()}


def _cuts(merged: Scored, query: Query) -> dict[str, Cut]:
    """Why each candidate isn't among the hits, by id; empty for the hits."""
    order = in_order(merged)
    admitted = one_version(order, query)
    found: dict[str, Cut] = {candidate.id: "version" for candidate in order}
    found |= {candidate.id: cut for candidate, cut in with_cuts(admitted, merged, query)}
    least = min((merged.scores[id_] for id_, cut in found.items() if not cut), default=0.0)
    for candidate in admitted:
        if found[candidate.id] == "top_k" and _for_its_language(candidate, merged, query, least):
            found[candidate.id] = "language"
    return found


def _for_its_language(candidate: Candidate, merged: Scored, query: Query, least: float) -> bool:
    """Whether the candidate would be among the hits if it were in the language of the question."""
    factor = language_factor(candidate, query)
    return factor < 1 and (not factor or merged.scores[candidate.id] / factor > least)

"""The passages to label: the first 20 of each of several search methods."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from app.core.types import Legs, Query
from app.index.protocols import Generation
from app.index.ranking.fuse import fuse
from eval.judge.criteria import own_criterion
from eval.questions.cases import Case

DEPTH = 20
RELEVANT = own_criterion(
    "relevant",
    "RELEVANT",
    "IRRELEVANT",
    """Does the PASSAGE help to answer the QUESTION?
RELEVANT: it has the answer, or a part of it that a correct answer needs.
IRRELEVANT: it is only about the same topic, or about something else.""",
    ("question", "passage"),
)


@dataclass(frozen=True, slots=True)
class Pair:
    """A question and a passage, to be labelled."""

    case: str
    chunk: str
    question: str
    url: str
    passage: str

    @property
    def key(self) -> str:
        """The key of the pair in label files."""
        return f"{self.case}\0{self.chunk}"


def search_methods(query: Query) -> Mapping[str, Query]:
    """The search methods of the pool: as configured, by ranks, keywords only, vectors only."""
    deep = replace(query, limit=DEPTH, per_page=DEPTH)
    return {
        "as set": deep,
        "rrf": replace(deep, fusion="rrf"),
        "words": replace(deep, fusion="weighted", lexical_weight=1.0, vector_weight=0.0),
        "vectors": replace(deep, fusion="weighted", lexical_weight=0.0, vector_weight=1.0),
    }


def pooled(legs: Legs, query: Query) -> tuple[str, ...]:
    """Ids of the pooled chunks: the first of each method before the second of any."""
    rankings = [[ranked.id for ranked in fuse(legs, method)] for method in search_methods(query).values()]
    found: dict[str, None] = {}
    for rank in range(DEPTH):
        found.update(dict.fromkeys(ranking[rank] for ranking in rankings if rank < len(ranking)))
    return tuple(found)


async def pairs(generation: Generation, case: Case, ids: Sequence[str]) -> list[Pair]:
    """The pairs of one question, with the passages as a model would get them."""
    return [
        Pair(case.id, chunk.id, case.question, chunk.link, f"{chunk.context}\n\n{chunk.text}")
        for chunk in await generation.fetch(ids)
    ]

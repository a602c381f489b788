"""Finding the passages: both legs, fused into one ranking, on the generation that the turn pinned."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Protocol

from app.citing.sections import headed_first
from app.core.errors import IndexMismatch, ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Legs, LexicalText, Query, Vector
from app.core.versions import named_versions
from app.index.protocols import Generation
from app.index.ranking.fuse import joined, rank
from app.models.protocols import Embedder
from app.pipeline.conversation import spelled_out
from app.pipeline.runner import Changes
from app.text.language import without_stopwords

log = logging.getLogger("app.pipeline")

GUESSED = 0.25  # of the preference for a language is left where that is a guess: it decides between equals only
REFERRED_WEIGHT = 0.6  # the earlier question's words count less than the new one's


@dataclass(frozen=True)
class Probe:
    """Embeds the question and searches with it as it is, while the helper calls are still under way."""

    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "probe"
    reads = ("question", "language", "generation")
    uses = ("unsure", "referred", "period")
    writes = ("vector", "legs")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The question's vector (None when the embedder failed) and both legs with raw scores."""
        vector = await _embed(turn, self.embedder)
        query = query_for(turn, self, vector)
        return {"vector": vector, "legs": await turn.generation.search(query)}


@dataclass(frozen=True)
class Retrieve:
    """Fuses the legs into the best passages; keywords, where there are any, are searched together with the question."""

    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "retrieve"
    reads = ("question", "language", "generation")
    uses = (
        "unsure", "referred", "refined", "period", "recency", "sections", "vector", "legs", "keywords", "variants", "hypothetical",
    )  # fmt: skip
    writes = ("search", "legs", "hits")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The query as it was searched, its legs, and the hits, best first."""
        generation: Generation = turn.generation
        legs, vector = turn.legs, turn.vector
        if legs is None:
            vector = await _embed(turn, self.embedder)
        asked = spelled_out(turn)
        query = query_for(asked, self, vector, turn.keywords)
        if legs is None:
            legs = await generation.search(query)
        elif turn.keywords or asked is not turn:
            again = await generation.search(replace(query, vector=None))
            legs = Legs(again.lexical, legs.vector)
        legs = joined(legs, turn.variants, turn.hypothetical)
        hits = headed_first(await rank(generation, legs, query), asked.question, self.prompts.language(turn.language))
        return {"search": query, "legs": legs, "hits": hits}


async def _embed(turn: Turn, embedder: Embedder) -> Vector | None:
    generation: Generation = turn.generation
    recipe = generation.info.recipe
    if recipe.embedder != embedder.name:
        raise IndexMismatch(
            f"The index was built with the embedder {recipe.embedder}, the service is set to {embedder.name}: "
            "set the old one again, or index anew with docs-assistant ingest."
        )
    try:
        text = f"{turn.referred} {turn.question}" if turn.referred else turn.question
        vector = (await embedder.embed_queries([text]))[0]
    except ModelError as error:  # words still find most pages
        log.warning("question not embedded, searching by words only id=%s error=%s", turn.request.id, error)
        return None
    if len(vector) != recipe.dimension:
        raise IndexMismatch(
            f"{embedder.name} now gives vectors of {len(vector)} numbers, the index has {recipe.dimension}: index anew."
        )
    return vector


class Searching(Protocol):
    """A step that searches."""

    @property
    def prompts(self) -> Prompts:
        """For the words that say nothing."""
        ...

    @property
    def settings(self) -> Settings:
        """For weights and numbers."""
        ...


def query_for(turn: Turn, step: Searching, vector: Vector | None, keywords: Mapping[str, str] | None = None) -> Query:
    """The search for the turn's question, or for keywords together with it."""
    settings = step.settings
    question = without_stopwords(turn.question, step.prompts.language(turn.language))
    texts = [LexicalText(turn.language, question)]
    if keywords:
        texts += [LexicalText(code, text) for code, text in keywords.items()]
    elif turn.referred:  # keywords were written with the conversation in view, so they say it already
        earlier = without_stopwords(turn.referred, step.prompts.language(turn.language))
        texts.append(LexicalText(turn.language, earlier, REFERRED_WEIGHT))
    share = settings.vector_share(turn.language)
    return Query(
        texts=tuple(texts),
        vector=vector,
        language=turn.language,
        filters=turn.request.filters,
        lexical_weight=1 - share,
        vector_weight=share,
        # keywords carry the question into the other language, so that a hit there says as much
        other_language=settings.other_language_keywords if keywords else settings.other_language,
        sureness=GUESSED if turn.unsure else 1.0,
        fusion=settings.fusion,
        exact=settings.exact,
        boosts=tuple(boost for boost in (turn.period, turn.sections) if boost),
        recency=turn.recency,
        limit=turn.request.limit or settings.top_k,
        per_page=settings.per_page,
        versions=named_versions(turn.question),
    )

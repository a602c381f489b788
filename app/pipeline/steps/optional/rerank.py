"""Reorders the best candidates with a model that reads the question and each passage together."""

from __future__ import annotations

import logging
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.core.errors import ModelError, SettingsError
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Hit, Query
from app.index.ranking.fuse import rank
from app.models.rerank import Reranker
from app.pipeline.conversation import standalone
from app.pipeline.retry import retry_once
from app.pipeline.runner import Changes

log = logging.getLogger("app.pipeline")

# one passage fits, one doesn't: raw scores of at least one of them are outside of 0..1
SCORE_TEST = (
    "What is the capital of France?",
    ("Paris is the capital of France.", "Bake the bread for forty minutes."),
)


@dataclass(frozen=True)
class Rerank:
    """Sends more candidates to the reranker than are kept; if it fails, the order stays."""

    reranker: Reranker
    settings: Settings
    name = "rerank"
    reads = ("question", "search", "legs", "generation")
    uses = ("referred", "refined", "refined_language")
    writes = ("hits", "hits.rerank")
    optional = True
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The hits with their scores (0..1), best first; boosts and the preferred language apply as in the ranking.

        Raises `ModelError` for scores outside of 0..1 without `rerank_sigmoid`.
        """
        if turn.search is None or turn.legs is None:
            return {}
        wide = replace(turn.search, limit=max(self.settings.rerank_candidates, turn.search.limit))
        hits = await rank(turn.generation, turn.legs, wide)
        if not hits:
            return {}
        texts = [hit.chunk.embedded_text for hit in hits]
        scores = await retry_once(lambda: self.reranker.rerank(standalone(turn), texts))
        scored = [replace(hit, rerank=score) for hit, score in zip(hits, self._within(scores), strict=True)]
        best = sorted(scored, key=lambda hit: -_ranking_score(hit, wide))
        return {"hits": tuple(best[: turn.search.limit])}

    async def check_scores(self) -> None:
        """Rerank two passages. Raises `SettingsError` for scores outside of 0..1; ignores a server that is unavailable."""
        try:
            scores = await self.reranker.rerank(*SCORE_TEST)
        except ModelError as error:
            log.warning("reranker not checked, passages keep their order while it is unavailable: %s", error)
            return
        try:
            self._within(scores)
        except ModelError as error:
            raise SettingsError(f"The step rerank can't be used: {error}") from error

    def _within(self, scores: Sequence[float]) -> list[float]:
        if self.settings.rerank_sigmoid:
            return [1 / (1 + math.exp(-max(-700.0, min(700.0, score)))) for score in scores]
        if outside := [score for score in scores if not 0 <= score <= 1]:
            raise ModelError(
                f"{self.reranker.name} scores outside of 0..1 ({outside[0]:g}): set DOCS_RERANK_SIGMOID=true for such a model."
            )
        return list(scores)


def _ranking_score(hit: Hit, query: Query) -> float:
    of_language = 1.0 if hit.chunk.language == query.language else query.of_another_language
    return (hit.rerank or 0.0) * hit.boost * of_language

"""The best candidates in a new order, by a model that reads the question and each passage together."""

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
from app.pipeline.retry import patiently
from app.pipeline.runner import Changes

log = logging.getLogger("app.pipeline")

# one passage that surely fits and one that surely doesn't: raw scores leave 0..1 at one of the ends
PROBE = ("What is the capital of France?", ("Paris is the capital of France.", "Bake the bread for forty minutes."))


@dataclass(frozen=True)
class Rerank:
    """Asks the reranker about more candidates than are kept; without its answer the order stays."""

    reranker: Reranker
    settings: Settings
    name = "rerank"
    reads = ("question", "search", "legs", "generation")
    uses = ("referred", "refined")
    writes = ("hits", "hits.rerank")
    optional = True
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The hits with their scores of 0..1, best first; the language, time and place of a page count as in the ranking.

        Raises `ModelError` for scores outside of 0..1 where `rerank_sigmoid` doesn't bring them there.
        """
        if turn.search is None or turn.legs is None:
            return {}
        wide = replace(turn.search, limit=max(self.settings.rerank_candidates, turn.search.limit))
        hits = await rank(turn.generation, turn.legs, wide)
        if not hits:
            return {}
        texts = [hit.chunk.embedded_text for hit in hits]
        scores = await patiently(lambda: self.reranker.rerank(standalone(turn), texts))
        scored = [replace(hit, rerank=score) for hit, score in zip(hits, self._within(scores), strict=True)]
        best = sorted(scored, key=lambda hit: -_worth(hit, wide))
        return {"hits": tuple(best[: turn.search.limit])}

    async def prove(self) -> None:
        """Ask about two passages. Raises `SettingsError` for scores outside of 0..1; a server that is away proves nothing."""
        try:
            scores = await self.reranker.rerank(*PROBE)
        except ModelError as error:
            log.warning("reranker not proved, its order is left out while it is away: %s", error)
            return
        try:
            self._within(scores)
        except ModelError as error:
            raise SettingsError(f"The step rerank can't be used so: {error}") from error

    def _within(self, scores: Sequence[float]) -> list[float]:
        if self.settings.rerank_sigmoid:
            return [1 / (1 + math.exp(-max(-700.0, min(700.0, score)))) for score in scores]
        if outside := [score for score in scores if not 0 <= score <= 1]:
            raise ModelError(
                f"{self.reranker.name} scores outside of 0..1 ({outside[0]:g}): set DOCS_RERANK_SIGMOID=true for such a model."
            )
        return list(scores)


def _worth(hit: Hit, query: Query) -> float:
    of_language = 1.0 if hit.chunk.language == query.language else query.of_another_language
    return (hit.rerank or 0.0) * hit.boost * of_language

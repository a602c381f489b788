"""Lets a LlamaIndex postprocessor reorder and remove passages, between retrieval and relevance."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace

from app.core.errors import ModelError, ModelTimeout, ModelUnavailable, SettingsError
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Chunk, Hit
from app.index.ranking.fuse import rank
from app.models.postprocessor import Postprocessor
from app.pipeline.conversation import standalone
from app.pipeline.runner import Changes

log = logging.getLogger("app.pipeline")

# one passage fits, one doesn't: raw scores of at least one of them are outside of 0..1
SCORE_TEST = (
    "What is the capital of France?",
    ("Paris is the capital of France.", "Bake the bread for forty minutes."),
)


@dataclass(frozen=True)
class Postprocess:
    """Gives the postprocessor more hits than are kept; if it fails or takes too long, the hits stay as they were."""

    postprocessor: Postprocessor
    settings: Settings
    seconds: float
    name = "postprocess"
    reads = ("question", "search", "legs", "hits", "generation")
    uses = ("referred", "refined", "refined_language", "pool", "trace")
    writes = ("hits", "hits.rerank", "pool")
    optional = True
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The best of what the postprocessor keeps as hits, the others as `pool` for the next postprocessor."""
        if not turn.hits or turn.search is None:
            return {}
        hits = (*turn.hits, *await self._others(turn))
        chosen = await self.postprocessor.chosen(standalone(turn), hits, self.seconds)
        return {"hits": chosen[: turn.search.limit], "pool": chosen[turn.search.limit :]}

    async def _others(self, turn: Turn) -> tuple[Hit, ...]:
        """The further hits: what an earlier postprocessor left, or the ranking goes on with.

        None behind any other step that chose among the hits: what it removed doesn't come back.
        """
        chooser = next((record for record in reversed(turn.trace) if "hits" in record.changes), None)
        if chooser and "pool" in chooser.changes:
            return turn.pool
        if chooser is None or chooser.step != "retrieve" or turn.search is None or turn.legs is None:
            return ()
        wide = replace(turn.search, limit=max(self.settings.tuning.rerank_candidates, turn.search.limit))
        known = {hit.chunk.id for hit in turn.hits}
        return tuple(hit for hit in await rank(turn.generation, turn.legs, wide) if hit.chunk.id not in known)

    async def check_scores(self) -> None:
        """Try it on two passages. Raises `SettingsError` for a result that hits can't have; ignores what is unavailable."""
        question, texts = SCORE_TEST
        hits = [
            Hit(
                Chunk(text, "", "https://docs.example.org/", at, text, "en", text, modified="2024-05-01"),
                fused=1 - at / 2,
            )
            for at, text in enumerate(texts)
        ]
        try:
            await self.postprocessor.chosen(question, hits, self.seconds)
        except (ModelTimeout, ModelUnavailable) as error:
            log.warning("step %s not checked, passages stay as they are while it is unavailable: %s", self.name, error)
        except ModelError as error:
            raise SettingsError(f"The step {self.name} can't be used: {error}") from error

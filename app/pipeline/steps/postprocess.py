"""Lets a LlamaIndex postprocessor reorder and remove passages, between retrieval and relevance."""

import logging
from dataclasses import dataclass, replace

from app.core.errors import ModelError, ModelTimeout, ModelUnavailable, SettingsError
from app.core.settings import Settings
from app.core.turn import Search, Turn
from app.core.types import Chunk, Hit
from app.index.ranking.fuse import rank
from app.models.postprocessor import Postprocessor, Scores
from app.pipeline.conversation import standalone
from app.pipeline.runner import Changes, Step

log = logging.getLogger("app.pipeline")

_TEXTS = ("Paris is the capital of France.", "Bake the bread for forty minutes.")
SCORE_TEST = (
    "What is the capital of France?",
    tuple(
        Hit(Chunk(text, "", "https://docs.example.org/", at, text, "en", text, modified="2024-05-01"), fused=1 - at / 2)
        for at, text in enumerate(_TEXTS)
    ),
)
"""One passage fits, one doesn't: raw scores of at least one of them are outside of 0..1."""


async def wide_hits(turn: Turn, search: Search, settings: Settings) -> tuple[Hit, ...]:
    """More hits of the search than are kept, for steps that choose among them."""
    limit = max(settings.tuning.rerank_candidates, search.query.limit)
    return await rank(turn.generation, search.legs, replace(search.query, limit=limit))


@dataclass(frozen=True)
class Postprocess(Step):
    """Gives the postprocessor more hits than are kept; if it fails or takes too long, the hits stay as they were."""

    postprocessor: Postprocessor
    settings: Settings
    scores: Scores
    seconds: float
    name = "postprocess"
    reads = ("asked", "search", "hits", "generation")
    uses = ("refined", "pool", "trace")
    writes = ("hits", "hits.rerank", "pool")
    optional = True

    async def __call__(self, turn: Turn) -> Changes:
        """The best of what the postprocessor keeps as hits, the others as `pool` for the next postprocessor."""
        if not turn.hits or turn.search is None:
            return {}
        hits = (*turn.hits, *await self._others(turn))
        chosen = await self.postprocessor.chosen(standalone(turn), hits, self.scores, self.seconds)
        limit = turn.search.query.limit
        return {"hits": chosen[:limit], "pool": chosen[limit:]}

    async def _others(self, turn: Turn) -> tuple[Hit, ...]:
        """The further hits: what an earlier postprocessor left, or the ranking goes on with.

        None behind any other step that chose among the hits: what it removed doesn't come back.
        """
        chooser = next((record for record in reversed(turn.trace) if "hits" in record.changes), None)
        if chooser and "pool" in chooser.changes:
            return turn.pool
        if chooser is None or chooser.step != "retrieve" or turn.search is None:
            return ()
        known = {hit.chunk.id for hit in turn.hits}
        return tuple(hit for hit in await wide_hits(turn, turn.search, self.settings) if hit.chunk.id not in known)

    async def check_scores(self) -> None:
        """Try it on two passages. Raises `SettingsError` for a result that hits can't have; ignores what is unavailable."""
        try:
            await self.postprocessor.chosen(*SCORE_TEST, self.scores, self.seconds)
        except (ModelTimeout, ModelUnavailable) as error:
            log.warning("step %s not checked, passages stay as they are while it is unavailable: %s", self.name, error)
        except ModelError as error:
            raise SettingsError(f"The step {self.name} can't be used: {error}") from error

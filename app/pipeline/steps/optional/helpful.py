"""Keeps the reranked passages that help: by their scores, or by the model's choice if the reranker is unsure.

If no score reaches 0.30, the model chooses. Else passages from 0.20 on stay; if fewer than three reach that, from 0.10 on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.core.errors import ModelError
from app.core.language import Vocabulary
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Hit
from app.models.protocols import Model
from app.pipeline.calls import call_helper
from app.pipeline.conversation import standalone
from app.pipeline.reading import numbered
from app.pipeline.replies import replied_numbers
from app.pipeline.retry import retry_once
from app.pipeline.runner import Changes
from app.text.growth import grown

UNSURE = 0.30
GOOD = 0.20
FAIR = 0.10
ENOUGH = 3
LONGEST_HEAD = 300
ROOM = 12_000  # characters of passages that the model is shown


@dataclass(frozen=True)
class Helpful:
    """Keeps the passages that help, possibly none."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    name = "helpful"
    reads = ("question", "language", "hits", "hits.rerank")
    uses = ("referred", "refined", "refined_language", "related")
    writes = ("hits", "related")
    optional = True
    helper_calls = 1  # a retry counts as the same call

    async def __call__(self, turn: Turn) -> Changes:
        """The remaining hits; no changes if the hits weren't reranked."""
        scores = [hit.rerank for hit in turn.hits if hit.rerank is not None]
        if not scores or len(scores) < len(turn.hits):
            return {}
        if max(scores) < UNSURE and self.model is not None:
            kept = await self._asked(self.model, turn)
        else:
            kept = by_score(turn.hits)
        return {"hits": kept} if kept else {"hits": (), "related": turn.hits}

    async def _asked(self, model: Model, turn: Turn) -> tuple[Hit, ...]:
        """The hits that the model chooses, and the well scored ones of those that didn't fit into its prompt."""
        lengths = accumulate(len(hit.chunk.text) + LONGEST_HEAD for hit in turn.hits)
        hits = turn.hits[: max(1, sum(length <= ROOM for length in lengths))]
        system = self.prompts.render(turn.language, "helpful", passages=numbered(grown(hits, {}, ROOM)))
        messages = [Message("system", system), Message("user", standalone(turn))]
        answer = await call_helper(
            self.name,
            lambda options: retry_once(lambda: model.complete(messages, options)),
            turn,
            self.settings,
        )
        named = tuple(hits[number - 1] for number in parse(answer.text, len(hits), self.prompts.vocabulary))
        return named + tuple(hit for hit in by_score(turn.hits) if hit not in hits)


def by_score(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with good scores; if there are too few, those with fair scores as well."""
    good = tuple(hit for hit in hits if (hit.rerank or 0.0) >= GOOD)
    return good if len(good) >= ENOUGH else tuple(hit for hit in hits if (hit.rerank or 0.0) >= FAIR)


def parse(answer: str, count: int, words: Vocabulary | None = None) -> list[int]:
    """The numbers from 1 to `count` in the reply, sorted; none if the reply says so.

    Raises `ModelError` for a reply in sentences, or with other numbers only.
    """
    numbers = replied_numbers(answer, words)
    named = sorted({number for number in numbers or () if 1 <= number <= count})
    if numbers is None or (any(numbers) and not named):
        raise ModelError(f"The reply has no passage numbers: {answer[:200]!r}. All passages are kept.")
    return named

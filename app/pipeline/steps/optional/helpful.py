"""Which of the reranked passages help: by their scores, and by the language model where the reranker is unsure.

Below 0.30 the model is asked once; else 0.20 is kept where three or more passages reach it, 0.10 where fewer do.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.language import Vocabulary
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Hit
from app.models.protocols import Model
from app.pipeline.calls import helped
from app.pipeline.conversation import standalone
from app.pipeline.replies import replied_numbers
from app.pipeline.retry import patiently
from app.pipeline.runner import Changes
from app.pipeline.steps.synthesize import fitting

UNSURE = 0.30
GOOD = 0.20
FAIR = 0.10
ENOUGH = 3
ROOM = 12_000  # characters of passages that the model is shown


@dataclass(frozen=True)
class Helpful:
    """Keeps the passages that help; none of them may be left."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    name = "helpful"
    reads = ("question", "language", "hits", "hits.rerank")
    uses = ("referred", "refined", "related")
    writes = ("hits", "related")
    optional = True
    helper_calls = 1  # as they are counted: one that the server refused is asked again

    async def __call__(self, turn: Turn) -> Changes:
        """The hits that are left; hits that nobody reranked stay as they are."""
        scores = [hit.rerank for hit in turn.hits if hit.rerank is not None]
        if not scores or len(scores) < len(turn.hits):
            return {}
        if max(scores) < UNSURE and self.model is not None:
            kept = await self._asked(self.model, turn)
        else:
            kept = by_score(turn.hits)
        return {"hits": kept} if kept else {"hits": (), "related": turn.hits}

    async def _asked(self, model: Model, turn: Turn) -> tuple[Hit, ...]:
        """Those that the model names, and of those that there was no room to show it, the ones that score well."""
        shown = fitting(turn.hits, ROOM)
        system = self.prompts.render(turn.language, "helpful", passages="\n\n".join(shown))
        messages = [Message("system", system), Message("user", standalone(turn))]
        answer = await helped(
            self.name,
            lambda options: patiently(lambda: model.complete(messages, options)),
            turn,
            self.settings,
        )
        named = tuple(turn.hits[number - 1] for number in parse(answer.text, len(shown), self.prompts.vocabulary))
        return named + tuple(hit for hit in by_score(turn.hits) if hit in turn.hits[len(shown) :])


def by_score(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """Those that score well, or fairly where few score well."""
    good = tuple(hit for hit in hits if (hit.rerank or 0.0) >= GOOD)
    return good if len(good) >= ENOUGH else tuple(hit for hit in hits if (hit.rerank or 0.0) >= FAIR)


def parse(answer: str, count: int, words: Vocabulary | None = None) -> list[int]:
    """The numbers from 1 to `count` in the answer, in rising order; none for one that says there are none.

    Raises `ModelError` for an answer in sentences, or with none but other numbers.
    """
    numbers = replied_numbers(answer, words)
    named = sorted({number for number in numbers or () if 1 <= number <= count})
    if numbers is None or (any(numbers) and not named):
        raise ModelError(f"No passage numbers can be read from {answer[:200]!r}: all passages are kept.")
    return named

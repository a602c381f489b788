"""Asks the user back if a short question fits quite different pages equally well."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Hit
from app.pipeline.runner import Changes
from app.text.language import without_stopwords

MOST_WORDS = 3
NEAR = 0.85  # the least share of the best score for another reading
MOST_CHOICES = 3


@dataclass(frozen=True)
class Clarify:
    """Finds the readings of a short question that the passages support equally; never asks twice in a row."""

    prompts: Prompts
    settings: Settings
    name = "clarify"
    reads = ("question", "language", "hits")
    uses = ("referred", "topic")
    writes = ("choices",)
    optional = True
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The best hit of each reading; no changes if there is only one."""
        words = without_stopwords(turn.topic or turn.question, self.prompts.language(turn.language)).split()
        if turn.referred or len(words) > MOST_WORDS or self._asked_before(turn):
            return {}
        found = readings(turn.hits)
        return {"choices": found} if len(found) > 1 else {}

    def _asked_before(self, turn: Turn) -> bool:
        """Whether the last answer was our question back, in any language."""
        answer = next((m.content for m in reversed(turn.request.messages) if m.role == "assistant"), "").strip()
        openings = (
            self.prompts.render(code, "clarify", choices="").split("\n")[0].strip() for code in self.prompts.languages
        )
        return any(answer.startswith(opening) for opening in openings)


def readings(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The best hit of each part of the site that scores nearly as well as the first hit, in their order.

    Pages of one folder are one reading, because they have one subject. Pages in another language than the first hit are
    none, because a translation says the same. If the first hit hasn't the best score, another reason such as its heading
    put it there, and it is the only reading.
    """
    if not hits or hits[0].score < max(hit.score for hit in hits):
        return tuple(hits[:1])
    best: dict[str, Hit] = {}
    for hit in hits:
        near = bool(hits[0].score) and hit.score >= NEAR * hits[0].score
        near = near and hit.chunk.language == hits[0].chunk.language
        titled = all(hit.chunk.title != other.chunk.title for other in best.values())
        if near and titled and hit.chunk.title:
            best.setdefault(_folder(hit.chunk.url), hit)
    return tuple(best.values())[:MOST_CHOICES]


def _folder(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc + parts.path.rstrip("/").rpartition("/")[0]

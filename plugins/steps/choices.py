"""Chooses among the hits: by a reranker, by the model, or by the reader, who is asked what is meant."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from urllib.parse import urlsplit

from app.core.errors import ModelError, SettingsError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Hit
from app.models import Model
from app.models.postprocessor import OutsideScores, Postprocessor, Scores
from app.pipeline.calls import ask_helper, picked_numbers, retry_once
from app.pipeline.conversation import numbered, standalone
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.postprocess import SCORE_TEST, wide_hits
from app.text.growth import grown
from app.text.language import without_stopwords

log = logging.getLogger("app.pipeline")


@dataclass(frozen=True)
class Rerank(Step):
    """Sends more candidates to the reranker than are kept; if it fails, the order stays."""

    reranker: Postprocessor
    settings: Settings
    name = "rerank"
    reads = ("asked", "search", "generation")
    uses = ("refined",)
    writes = ("hits", "hits.rerank")
    optional = True

    async def __call__(self, turn: Turn) -> Changes:
        """The hits with their scores (0..1), best first; boosts and the preferred language apply as in the ranking.

        Raises `ModelError` for scores outside of 0..1 without `rerank_sigmoid`.
        """
        if turn.search is None:
            return {}
        query = turn.search.query
        if not (hits := await wide_hits(turn, turn.search, self.settings)):
            return {}
        scored = await retry_once(lambda: self._scored(standalone(turn), hits))
        foreign = query.of_another_language
        of_language = {hit.chunk.id: 1.0 if hit.chunk.language == query.language else foreign for hit in scored}
        best = sorted(scored, key=lambda hit: -(hit.rerank or 0.0) * hit.boost * of_language[hit.chunk.id])
        return {"hits": tuple(best[: query.limit])}

    async def check_scores(self) -> None:
        """Rerank two passages. Raises `SettingsError` for scores outside of 0..1; ignores a server that is unavailable."""
        try:
            await self._scored(*SCORE_TEST)
        except OutsideScores as error:
            raise SettingsError(f"The step rerank can't be used: {error}") from error
        except ModelError as error:
            log.warning("reranker not checked, passages keep their order while it is unavailable: %s", error)

    async def _scored(self, question: str, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        tuning = self.settings.tuning
        meaning: Scores = "sigmoid" if tuning.rerank_sigmoid else "0..1"
        return await self.reranker.chosen(question, hits, meaning, tuning.helper_timeout)


UNSURE = 0.30
GOOD = 0.20
FAIR = 0.10
ENOUGH = 3
LONGEST_HEAD = 300
ROOM = 12_000  # characters of passages that the model is shown


@dataclass(frozen=True)
class Helpful(Step):
    """Keeps the passages that help, possibly none."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    name = "helpful"
    reads = ("asked", "hits", "hits.rerank")
    uses = ("refined", "related")
    writes = ("hits", "related")
    optional = True
    helper_calls = 1  # a retry counts as the same call

    async def __call__(self, turn: Turn) -> Changes:
        """The remaining hits; no changes if the hits weren't reranked."""
        scores = [hit.rerank for hit in turn.hits if hit.rerank is not None]
        if not scores or len(scores) < len(turn.hits):
            return {}
        if max(scores) < UNSURE and self.model is not None:
            hits = await self._asked(self.model, turn)
        else:
            hits = by_score(turn.hits)
        return {"hits": hits} if hits else {"hits": (), "related": turn.hits}

    async def _asked(self, model: Model, turn: Turn) -> tuple[Hit, ...]:
        """The hits that the model chooses, and the well scored ones of those that didn't fit into its prompt."""
        lengths = accumulate(len(hit.chunk.text) + LONGEST_HEAD for hit in turn.hits)
        hits = turn.hits[: max(1, sum(length <= ROOM for length in lengths))]
        system = self.prompts.render(turn.asked.language, "helpful", passages=numbered(grown(hits, {}, ROOM)))
        messages = [Message("system", system), Message("user", standalone(turn))]
        answer = await ask_helper(self.name, model, messages, turn, self.settings, insist=True)
        named = tuple(hits[number - 1] for number in picked_numbers(answer, len(hits), self.prompts.vocabulary))
        return named + tuple(hit for hit in by_score(turn.hits) if hit not in hits)


def by_score(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with good scores; if there are too few, those with fair scores as well."""
    good = tuple(hit for hit in hits if (hit.rerank or 0.0) >= GOOD)
    return good if len(good) >= ENOUGH else tuple(hit for hit in hits if (hit.rerank or 0.0) >= FAIR)


MOST_WORDS = 3
NEARLY = 0.85  # the least share of the best score for another reading
MOST_CHOICES = 3


@dataclass(frozen=True)
class Clarify(Step):
    """Finds the readings of a short question that the passages support equally; never asks twice in a row."""

    prompts: Prompts
    settings: Settings
    name = "clarify"
    reads = ("asked", "hits")
    uses = ("dates",)
    writes = ("choices",)
    optional = True

    async def __call__(self, turn: Turn) -> Changes:
        """The best hit of each reading; no changes if there is only one."""
        words = without_stopwords(
            turn.dates.topic or turn.asked.text, self.prompts.language(turn.asked.language)
        ).split()
        if turn.asked.referred or len(words) > MOST_WORDS or self._asked_before(turn):
            return {}
        choices = readings(turn.hits)
        return {"choices": choices} if len(choices) > 1 else {}

    def _asked_before(self, turn: Turn) -> bool:
        """True if the last answer was our question back, in any language."""
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
        near = bool(hits[0].score) and hit.score >= NEARLY * hits[0].score
        near = near and hit.chunk.language == hits[0].chunk.language
        titled = all(hit.chunk.title != other.chunk.title for other in best.values())
        if near and titled and hit.chunk.title:
            best.setdefault(_folder(hit.chunk.url), hit)
    return tuple(best.values())[:MOST_CHOICES]


def _folder(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc + parts.path.rstrip("/").rpartition("/")[0]

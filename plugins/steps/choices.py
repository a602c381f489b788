"""Chooses among the hits: by a reranker or by the model; and among the statements of an answer."""

import logging
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from itertools import accumulate

from app.core.errors import ModelError, SettingsError
from app.core.language import Vocabulary
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Done, Events, Message, Text, Turn, Unsupported
from app.core.types import Hit
from app.models import Model
from app.models.postprocessor import OutsideScores, Postprocessor, Scores
from app.pipeline.calls import ask_helper, replied_numbers, retry_once
from app.pipeline.conversation import Asking, numbered, standalone
from app.pipeline.runner import Changes, Declared
from app.pipeline.steps.cite import as_read, checker_of
from app.pipeline.steps.postprocess import SCORE_TEST, wide_hits
from app.proof.check import CITATION
from app.proof.wording import Wording
from app.text.blocks import blocks, sentences
from app.text.growth import grown

log = logging.getLogger("app.pipeline")


@dataclass(frozen=True)
class Rerank(Declared):
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
class Helpful:
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
        named = tuple(hits[number - 1] for number in parse_helpful(answer, len(hits), self.prompts.vocabulary))
        return named + tuple(hit for hit in by_score(turn.hits) if hit not in hits)


def by_score(hits: Sequence[Hit]) -> tuple[Hit, ...]:
    """The hits with good scores; if there are too few, those with fair scores as well."""
    good = tuple(hit for hit in hits if (hit.rerank or 0.0) >= GOOD)
    return good if len(good) >= ENOUGH else tuple(hit for hit in hits if (hit.rerank or 0.0) >= FAIR)


def parse_helpful(answer: str, count: int, words: Vocabulary | None = None) -> list[int]:
    """The numbers from 1 to `count` in the reply, sorted; none if the reply says so.

    Raises `ModelError` for a reply in sentences, or with other numbers only.
    """
    numbers = replied_numbers(answer, words)
    named = sorted({number for number in numbers or () if 1 <= number <= count})
    if numbers is None or (any(numbers) and not named):
        raise ModelError(f"The reply has no passage numbers: {answer[:200]!r}. All passages are kept.")
    return named


MOST_STATEMENTS = 12  # of an answer that the model is asked about


@dataclass(frozen=True)
class Verify(Asking):
    """Asks the model about the statements of an answer that words neither prove nor disprove, when all of it is written."""

    words: Wording = field(init=False, repr=False, compare=False)
    name = "verify"
    reads = ("asked", "hits", "events")
    uses = ("refined", "search", "passages")
    writes = ("events",)

    def __post_init__(self) -> None:
        """Collect the words by which answers are judged, once."""
        object.__setattr__(self, "words", Wording(self.prompts.languages))

    async def __call__(self, turn: Turn) -> Changes:
        """The events, with what isn't proved in the last one."""
        return {"events": self._verified(as_read(turn, self.prompts))}

    async def _verified(self, turn: Turn) -> Events:
        assert turn.events is not None
        written = list[str]()
        async with aclosing(turn.events) as events:
            async for event in events:
                if isinstance(event, Text) and not (event.quoted or event.own):
                    written.append(event.text)
                if isinstance(event, Done) and turn.hits and not event.extractive:
                    yield replace(event, unsupported=await self._unproved(turn, "".join(written)))
                else:
                    yield event

    async def _unproved(self, turn: Turn, answer: str) -> tuple[Unsupported, ...]:
        """The statements that the model doesn't find in the passages; none if it fails or takes too long."""
        checker = checker_of(turn, self.words)
        lines = (line for code, piece in blocks(answer) if not code for line in piece.splitlines())
        doubts = [doubt for line in lines for one in sentences(line) if (doubt := checker.doubt(one.strip()))]
        if not (doubts := doubts[:MOST_STATEMENTS]):
            return ()
        try:
            numbers = await self._unfounded(turn, doubts)
        except ModelError as error:
            log.warning(LogMessage("no second opinion, what words prove stands", id=turn.request.id, error=error))
            return ()
        return tuple(doubt for n, doubt in enumerate(doubts, start=1) if n in numbers)

    async def _unfounded(self, turn: Turn, doubts: Sequence[Unsupported]) -> tuple[int, ...]:
        system = self.prompts.render(turn.asked.language, "verify", passages=numbered(turn.passages))
        asked = "\n".join(f"{n}. {CITATION.sub('', doubt.text)}" for n, doubt in enumerate(doubts, start=1))
        messages = [Message("system", system), Message("user", asked)]
        reply = await ask_helper(self.name, self.model, messages, turn, self.settings)
        if (numbers := replied_numbers(reply, self.prompts.vocabulary)) is None:
            raise ModelError(f"The reply has no numbers of statements: {reply[:200]!r}.")
        return numbers

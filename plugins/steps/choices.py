"""Chooses: among the hits by a reranker, the model or the reader, of long passages the sentences, and of an answer what is proved."""

import logging
import re
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import accumulate
from urllib.parse import urlsplit

from app.core.errors import ModelError, SettingsError
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Done, Events, Message, Text, Turn, Unsupported
from app.core.types import Hit, Passage
from app.models import Model
from app.models.postprocessor import OutsideScores, Postprocessor, Scores
from app.pipeline.calls import ask_helper, call_helper, picked_numbers, retry_once
from app.pipeline.conversation import (
    CHARACTERS_PER_TOKEN,
    Asking,
    characters_per_token,
    model_for,
    numbered,
    read_passages,
    room_in,
    standalone,
)
from app.pipeline.runner import Changes, Step
from app.pipeline.steps.cite import as_read, checker_of
from app.pipeline.steps.postprocess import SCORE_TEST, wide_hits
from app.proof.check import CITATION
from app.proof.wording import Wording
from app.text.blocks import blocks, sentences
from app.text.growth import grown
from app.text.language import without_stopwords
from app.text.literals import addresses, code_lines, code_spans, occurs, spaced, without_code

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
        scored = await self._scored(standalone(turn), hits)
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


UNSURE, GOOD, FAIR = 0.30, 0.20, 0.10  # scores
ENOUGH = 3
LONGEST_HEAD = 300
ROOM = 12_000  # characters of passages that the model is shown


@dataclass(frozen=True)
class Helpful(Step):
    """Keeps the passages that help, possibly none.

    The model is asked if the best score is below `unsure`. Otherwise hits of at least `good` stay, or of at least `fair` if fewer
    than `enough` are good. Raises `SettingsError` if these aren't scores in that order.
    """

    prompts: Prompts
    settings: Settings
    model: Model | None = None
    unsure: float = UNSURE
    good: float = GOOD
    fair: float = FAIR
    enough: int = ENOUGH
    quoted: frozenset[str] = frozenset()
    name = "helpful"
    reads = ("asked", "hits", "hits.rerank")
    uses = ("refined", "related", "rejected")
    writes = ("hits", "related", "rejected")
    optional = True
    helper_calls = 1  # a retry counts as the same call

    def __post_init__(self) -> None:
        """Check the scores."""
        if not 0 <= self.fair <= self.good <= 1 or not 0 <= self.unsure <= 1:
            raise SettingsError(
                f"step {self.name!r}: unsure = {self.unsure:g}, good = {self.good:g}, fair = {self.fair:g} must be scores from 0 to 1,"
                " and fair at most good."
            )

    async def __call__(self, turn: Turn) -> Changes:
        """The remaining hits; no changes if the hits weren't reranked."""
        scores = [hit.rerank for hit in turn.hits if hit.rerank is not None]
        if not scores or len(scores) < len(turn.hits):
            return {}
        if max(scores) < self.unsure and (model := model_for(self, turn)):
            hits = await self._asked(model, turn)
        else:
            hits = self._by_score(turn.hits)
        rejected = turn.rejected.union(hit.chunk.id for hit in turn.hits if hit not in hits)
        return {"hits": hits, "rejected": rejected} | ({} if hits else {"related": turn.hits})

    async def _asked(self, model: Model, turn: Turn) -> tuple[Hit, ...]:
        """The hits that the model chooses, and the well scored ones of those that didn't fit into its prompt."""
        lengths = accumulate(len(hit.chunk.text) + LONGEST_HEAD for hit in turn.hits)
        hits = turn.hits[: max(1, sum(length <= ROOM for length in lengths))]
        system = self.prompts.render(turn.asked.language, "helpful", passages=numbered(grown(hits, {}, ROOM)))
        messages = [Message("system", system), Message("user", standalone(turn))]
        answer = await call_helper(
            self.name, lambda options: retry_once(lambda: model.complete(messages, options)), turn, self.settings
        )
        named = tuple(hits[number - 1] for number in picked_numbers(answer.text, len(hits), self.prompts.vocabulary))
        return named + tuple(hit for hit in self._by_score(turn.hits) if hit not in hits)

    def _by_score(self, hits: Sequence[Hit]) -> tuple[Hit, ...]:
        """The hits with good scores; if there are too few, those with fair scores as well."""
        good = tuple(hit for hit in hits if (hit.rerank or 0.0) >= self.good)
        return good if len(good) >= self.enough else tuple(hit for hit in hits if (hit.rerank or 0.0) >= self.fair)


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


TOKENS_A_SECOND = 100  # of a model: a longer text would exceed the time limit of helpers
_MARK = re.compile(r"\s*\**\[(\d+)\]\**[:.]?\s*")
_FENCE = re.compile(r"\s*(```|~~~)")
# with the next word, which may be a unit
CONDENSE_OVER = 6000
"""Passages are condensed if they have more characters than this, all together."""
_WITH_DIGIT = re.compile(r"(?<!\S)[^\s\d]*+\d\S*+(?: [^\W\d_]++(?!\d))?")
_AROUND = "`.,;:!?()[]{}\"'„“”*|"


@dataclass(frozen=True)
class Condense(Asking):
    """Asks the model to condense the longest passages; citations still use the passages themselves."""

    name = "condense"
    reads = ("asked", "hits", "generation")
    uses = ("refined", "passages")
    writes = ("passages",)

    async def __call__(self, turn: Turn) -> Changes:
        """The passages, long ones with a shorter text."""
        tokens = min(int(self.settings.tuning.helper_timeout * TOKENS_A_SECOND), self.settings.tuning.llm_max_tokens)
        most = tokens * CHARACTERS_PER_TOKEN
        passages = await read_passages(turn, self.settings, self.prompts)
        long = whole(
            too_long(passages, CONDENSE_OVER, most),
            room_in(self.settings, tokens, characters_per_token(turn, self.prompts)),
        )
        if not long:
            return {"passages": passages}
        system = self.prompts.render(turn.asked.language, "condense", passages=numbered(long), most=str(most))
        messages = [Message("system", system), Message("user", standalone(turn))]
        ask = partial(self.model.complete, messages)
        answer = await call_helper(self.name, ask, turn, self.settings, max_tokens=tokens)
        texts = parse_picked(answer.text, cut=answer.finish_reason == "length")
        if not texts:
            raise ModelError(
                f"The reply has no condensed passages: {answer.text[:200]!r}. The passages are used unchanged."
            )
        condensed = {
            passage.chunk.id: text
            for number, passage in enumerate(long, start=1)
            if faithful(text := texts.get(number, ""), passage.chunk.text)
        }
        return {"passages": tuple(replace(one, condensed=condensed.get(one.chunk.id, "")) for one in passages)}


def too_long(passages: Sequence[Passage], over: int, most: int) -> tuple[Passage, ...]:
    """The fewest of the longest passages that must shrink to `most` characters together to leave `over` characters at most.

    None if the passages aren't longer than that.
    """
    remaining = sum(map(_length, passages))
    chosen: list[Passage] = []
    for passage in sorted(passages, key=_length, reverse=True) if remaining > over else ():
        chosen.append(passage)
        remaining -= _length(passage)
        if remaining + most <= over:
            break
    return tuple(passage for passage in passages if passage in chosen)


def whole(passages: Sequence[Passage], room: int) -> tuple[Passage, ...]:
    """The passages that fit into `room` characters as a whole; the model can't condense one that is cut."""
    chosen = []
    for passage in passages:
        if _length(passage) <= room:
            chosen.append(passage)
            room -= _length(passage)
    return tuple(chosen)


def _length(passage: Passage) -> int:
    return len(numbered((passage,))) + len("[10]\n")


def parse_picked(answer: str, *, cut: bool = False) -> dict[int, str]:
    """The texts after `[1]`, `[2]` at the start of lines outside fenced code, by number.

    Leaves out numbers that occur twice, because either could be right, and texts without an end.
    """
    texts: dict[int, list[str]] = {}
    wrong: set[int] = set()
    number, fence = 0, ""
    for line in answer.splitlines():
        rest = line
        if not fence and (mark := _MARK.match(line)):
            number, rest = int(mark[1]), line[mark.end() :]
            wrong |= {number} & texts.keys()
            texts[number] = []
        if match := _FENCE.match(rest):
            fence = "" if match[1] == fence else fence or match[1]
        if number:
            texts[number].append(rest)
    wrong |= {number} if fence or cut else set()
    return {n: text for n, lines in texts.items() if n not in wrong and (text := "\n".join(lines).strip())}


def faithful(text: str, passage: str) -> bool:
    """True if the text is shorter, and the passage has all its numbers with units, commands, code lines and addresses."""
    if not 0 < len(text) < len(passage):
        return False
    if not set(addresses(text)) <= set(addresses(passage)):
        return False
    source, lines = spaced(passage), set(map(spaced, passage.splitlines()))
    if not all(spaced(line) in lines for line in code_lines(text)):
        return False
    # a part of a command may do something else than the whole
    code, prose = lines | set(map(spaced, code_spans(passage))), spaced(without_code(passage))
    if not all(spaced(span) in code or occurs(spaced(span), prose) for span in code_spans(text)):
        return False
    numbers = (number.strip(_AROUND) for number in _WITH_DIGIT.findall(spaced(text)))
    return all(occurs(number, source) for number in numbers if number)


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

    async def _unfounded(self, turn: Turn, doubts: Sequence[Unsupported]) -> list[int]:
        system = self.prompts.render(turn.asked.language, "verify", passages=numbered(turn.passages))
        asked = "\n".join(f"{n}. {CITATION.sub('', doubt.text)}" for n, doubt in enumerate(doubts, start=1))
        messages = [Message("system", system), Message("user", asked)]
        reply = await ask_helper(self.name, self.model, messages, turn, self.settings)
        return picked_numbers(reply, len(doubts), self.prompts.vocabulary)

"""Writes the answer: the language model streams it; without a model, it quotes the best block and a line of each further passage."""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial

from app.citing.links import escaped, markdown_link, page_title
from app.citing.sections import STEM, asked_stems, offered_links, related_list, related_pages, stems
from app.core.errors import ModelError
from app.core.language import Language, vocabulary
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Done, Event, Events, Failure, Message, Removal, Text, Turn
from app.core.types import Hit
from app.models.protocols import CallOptions, Model
from app.pipeline.calls import recorded
from app.pipeline.conversation import (
    as_found,
    client_texts,
    earlier,
    numbered,
    off_loop,
    read_passages,
    room_for_pages,
    with_answer_language,
)
from app.pipeline.runner import Changes
from app.text.answer_language import AnswerLanguage, Verdict, profiles
from app.text.blocks import Block, blocks_of, joined, shortened, units_of

log = logging.getLogger("app.pipeline")

OTHER_LANGUAGE = "it isn't in the language of the question: the model was asked again"


@dataclass(frozen=True)
class Synthesize:
    """Writes the events of the answer. If the model fails before any text, DOCS_TUNING__ON_MODEL_FAILURE decides what follows."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    name = "synthesize"
    reads = ("question", "language", "hits", "generation")
    uses = (
        "unsure",
        "referred",
        "refined",
        "refined_language",
        "keywords",
        "more_keywords",
        "related",
        "choices",
        "condensed",
        "overview",
        "evidence",
        "evidence_needed",
        "passages",
    )
    writes = ("passages", "events")
    optional = False
    helper_calls = 0

    def __post_init__(self) -> None:
        """Load the letter statistics, so that the first answer doesn't wait for them."""
        if self.model:
            profiles(self.prompts.languages)

    async def __call__(self, turn: Turn) -> Changes:
        """The passages that the model reads, and the events; the model is called when they are read."""
        turn = with_answer_language(turn, self.prompts.languages)
        if self.model is None or turn.choices or not turn.hits:
            return {"events": self._answer(turn)}
        passages = await read_passages(turn, self.settings, self.prompts)
        return {"passages": passages, "events": self._answer(replace(turn, passages=passages))}

    async def _answer(self, turn: Turn) -> Events:
        if turn.choices:
            if turn.citing:
                turn.citing.links += offered_links(turn.choices, "offered: one of several readings of the question")
            choices = "\n".join(
                f"- {markdown_link(page_title(hit.chunk) or hit.chunk.url, hit.chunk.url)}" for hit in turn.choices
            )
            yield Text(self.prompts.render(turn.language, "clarify", choices=choices), quoted=True)
            yield Done()
        elif not turn.hits and not (self.model and turn.request.attached):
            for event in self._nothing(turn):
                yield event
        elif self.model is None:
            for event in await self._extracted(turn):
                yield event
        else:
            async with aclosing(self._written(self.model, turn)) as events:
                async for event in events:
                    yield event

    async def _written(self, model: Model, turn: Turn) -> Events:
        said = False
        try:
            async with aclosing(self._in_language(model, turn)) as events:
                async for event in events:
                    said = said or isinstance(event, Text)
                    yield event
        except ModelError as error:
            if not said and self.settings.tuning.on_model_failure == "error":
                raise
            log.warning(LogMessage("language model failed", id=turn.request.id, in_mid_answer=said, error=error))
            for event in [Failure(error)] if said else await self._extracted(turn, failed=True):
                yield event

    async def _in_language(self, model: Model, turn: Turn) -> Events:
        """The answer of the model. If it is in another language than the question, the model is asked once more."""
        check = AnswerLanguage(turn.language, self.prompts.languages)
        first = check_language(self._generate(model, turn), check)
        refused: tuple[Event, ...] = ()
        try:
            async with aclosing(whole_answer(first) if turn.request.whole else first) as events:
                async for event in events:
                    yield _logged(event, turn)
                return
        except WrongLanguage as wrong:
            refused = wrong.events
            if turn.citing:
                turn.citing.removed.append(Removal("answer", wrong.text, OTHER_LANGUAGE))
        assert check is not None  # only the check raises it
        log.info(LogMessage("answer in another language, asked again", id=turn.request.id, language=turn.language))
        async with aclosing(self._again(model, turn, check, refused)) as events:
            async for event in events:
                yield event

    async def _again(self, model: Model, turn: Turn, check: AnswerLanguage, refused: tuple[Event, ...]) -> Events:
        said: list[str] = []
        second = self._generate(model, turn, self.prompts.render(turn.language, "answer_language"))
        try:
            async with aclosing(whole_answer(second) if turn.request.whole else second) as events:
                async for event in events:
                    if isinstance(event, Text):
                        said.append(event.text)
                    elif isinstance(event, Done):
                        event = replace(event, language=check.outcome("".join(said)))  # noqa: PLW2901
                    yield _logged(event, turn)
        except ModelError as error:
            if said or not refused:
                raise
            log.warning(LogMessage("language model failed on correcting", id=turn.request.id, error=error))
            if turn.citing:
                turn.citing.removed.clear()  # all of it is of the answer that is shown now
            for event in refused:  # better than no answer
                yield event

    def _nothing(self, turn: Turn) -> list[Event]:
        """The reply that nothing was found, with the nearest pages; the model isn't asked."""
        said = [Text(self.prompts.render(turn.language, "nothing_found"))]
        language = self.prompts.language(turn.language)
        if pages := related_pages(turn, turn.related, language):
            said.append(Text(related_list(pages, language), quoted=True))
            if turn.citing:
                turn.citing.links += offered_links(pages, "offered: too weak to answer from")
        return [*said, Done(refused=True)]

    async def _extracted(self, turn: Turn, *, failed: bool = False) -> list[Event]:
        if not turn.hits:
            return self._nothing(turn)
        turn = as_found(turn)  # the numbers of passages are the ones that get links
        read = partial(extract, turn, self.prompts.language(turn.language), failed=failed)
        texts = await off_loop(read, sum(len(hit.chunk.text) for hit in turn.hits))
        return [*texts, Done(extractive=True)]

    async def _generate(self, model: Model, turn: Turn, firmer: str = "") -> Events:
        """Yields what the model writes. `firmer` is an instruction at the end of the prompt, where models follow it best."""
        sampling, settings = turn.request.sampling, self.settings
        options = CallOptions(
            temperature=settings.tuning.temperature if sampling.temperature is None else sampling.temperature,
            max_tokens=min(sampling.max_tokens or settings.tuning.llm_max_tokens, settings.tuning.llm_max_tokens),
            stop=sampling.stop,
            seed=sampling.seed,
            timeout=settings.llm_timeout,
        )
        history = earlier(turn.request.messages, self.prompts)
        system, question = self._system(turn), turn.refined or turn.question
        messages = [
            Message("system", "\n\n".join(part for part in (system, firmer) if part)),
            *history,
            Message("user", "\n\n".join(part for part in (question, firmer) if part)),
        ]
        empty = True
        async with aclosing(recorded(model.stream(messages, options), turn, self.name)) as events:
            async for event in events:
                empty = empty and not (isinstance(event, Text) and event.text.strip())
                if isinstance(event, Done) and empty:
                    raise ModelError(f"The language model {model.name} returned an empty answer.")
                if not (empty and isinstance(event, Text)):  # drops leading blank lines
                    yield event

    def _system(self, turn: Turn) -> str:
        """The system prompt: our rules and passages, then the attachments and style of the client, marked as such."""
        attached, style = client_texts(turn, room_for_pages(turn, self.settings, self.prompts))
        passages = numbered(turn.passages, turn.condensed)
        parts = [self.prompts.render(turn.language, "synthesize", passages=passages)]
        if attached:
            parts.append(self.prompts.render(turn.language, "attached", attached=attached))
        if style:
            parts.append(self.prompts.render(turn.language, "style", style=style))
        if persona := self.prompts.persona(turn.language, turn.request.persona):
            parts.append(persona)
        return "\n\n".join(parts)


def _logged(event: Event, turn: Turn) -> Event:
    if isinstance(event, Done) and event.language:
        log.info(LogMessage("answer language", id=turn.request.id, asked=turn.language, outcome=event.language))
    return event


LONGEST_HELD = 80  # characters


class WrongLanguage(Exception):
    """The answer is in another language. `text` is what was read of it; `events` are all its events if it was read to the end."""

    def __init__(self, text: str, events: tuple[Event, ...] = ()) -> None:
        super().__init__("The answer is in another language.")
        self.text, self.events = text, events


class FirstText:
    """Releases the text of an answer once its language is certain. Raises `WrongLanguage` before it releases any."""

    def __init__(self, check: AnswerLanguage) -> None:
        self._check = check
        self._held = ""
        self._pieces: list[str] = []
        self._holding = True

    def feed(self, text: str) -> str:
        """The text that can be shown now."""
        self._pieces.append(text)
        if not self._holding:
            return text
        self._held += text
        verdict = self._check.early(self._held)
        if verdict == "unsure" and len(self._held) < LONGEST_HELD:
            return ""
        return self._release(verdict)

    def rest(self) -> str:
        """The text that is still held back at the end."""
        return self._release("unsure") if self._holding else ""

    @property
    def switched(self) -> bool:
        """True if a considerable part of the whole text is in another language."""
        return self._check.switched("".join(self._pieces))

    def _release(self, verdict: Verdict) -> str:
        self._holding = False
        if (self._check.beginning(self._held) if verdict == "unsure" else verdict) == "wrong":
            raise WrongLanguage(self._held)
        return self._held


async def check_language(events: Events, check: AnswerLanguage) -> Events:
    """The events; the first text waits until its language is certain, or 80 characters have come.

    Raises `WrongLanguage` before any text; `Done.language` reports a later switch.
    """
    first = FirstText(check)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text):
                if text := first.feed(event.text):
                    yield Text(text)
            elif isinstance(event, Done):
                if text := first.rest():
                    yield Text(text)
                yield replace(event, language="switched") if first.switched else event
            else:
                yield event


async def whole_answer(events: Events) -> Events:
    """The events, after all of them have come. Raises `WrongLanguage` with them if the language switched."""
    async with aclosing(events):
        read = tuple([event async for event in events])
    if any(isinstance(event, Done) and event.language for event in read):
        raise WrongLanguage("".join(event.text for event in read if isinstance(event, Text)), read)
    for event in read:
        yield event


LONGEST_QUOTE = 680
"""Characters; a single sentence, row, item or code block that is longer stays whole."""

LONGEST_LINE = 150  # characters of a further passage
FURTHER = 3  # passages with a line each
RELEVANT = 0.6  # share of the best score; passages with less are seldom about the question
HEADING = 0.5  # weight of a word that only the heading has


def extract(turn: Turn, language: Language, *, failed: bool = False) -> list[Text]:
    """Quotes the first passage after its heading and number, then one line of each further passage, in their ranking.

    `failed` selects the introduction for a model that did not answer. Passages without text to quote are skipped; those
    in another language too, unless none is in the question's.
    """
    intro = language.extractive_failed if failed else language.extractive_intro
    passages = _passages(turn, language)
    own = [passage for passage in passages if passage.hit.chunk.language == turn.language]
    if not (passages := own or passages):
        return [Text(intro)]
    first, *further = passages
    quoted = first.quote()
    said = [
        Text(f"{intro}\n\n**{escaped(first.heading(quoted))}** [{first.number}]\n\n"),
        Text(quoted.text, quoted=True),
    ]
    least = RELEVANT * max(passage.score for passage in passages)
    lines = {quoted.text}
    for passage in [passage for passage in further if passage.score >= least][
        : len(further) if turn.overview else FURTHER
    ]:
        best = passage.line()
        if best.text in lines:
            continue
        lines.add(best.text)
        gap = "\n\n" if len(lines) == 2 else "\n"
        said += [
            Text(f"{gap}- **{escaped(passage.heading(best))}** [{passage.number}]: "),
            Text(best.text, quoted=True),
        ]
    return said


def _passages(turn: Turn, language: Language) -> list[_Passage]:
    # of an overview, every passage is quoted from its beginning
    asked = set[str]() if turn.overview else asked_stems(turn) - {word[:STEM] for word in language.stopwords}
    found = [(number, hit, blocks_of(hit.chunk)) for number, hit in enumerate(turn.hits, start=1)]
    words = [stems(block.text) & asked for _, _, blocks in found for block in blocks]
    counts = Counter(word for in_block in words for word in in_block)
    # a word of all blocks distinguishes none of them
    weights = {word: math.log(1 + len(words) / count) for word, count in counts.items()}
    abbreviations = vocabulary().abbreviations | language.abbreviations
    return [_Passage(number, hit, blocks, weights, abbreviations) for number, hit, blocks in found if blocks]


@dataclass(frozen=True, slots=True)
class _Quote:
    """Text of a passage and the number of its section."""

    text: str
    section: int


@dataclass(frozen=True)
class _Passage:
    """A passage that can be quoted, with its number in the answer."""

    number: int
    hit: Hit
    blocks: Sequence[Block]
    weights: Mapping[str, float]
    abbreviations: frozenset[str]

    @property
    def score(self) -> float:
        """The score of its best block."""
        return max(self._score(block) for block in self.blocks)

    def heading(self, quote: _Quote) -> str:
        """The title of the page and the headings above the quote, without a full stop, which ends a sentence."""
        sections = self.hit.chunk.sections
        path = sections[quote.section].path if sections else ()
        return " > ".join(dict.fromkeys(name for name in (self.hit.chunk.title, *path) if name)).removesuffix(".")

    def quote(self) -> _Quote:
        """The best block, and neighbours in its section that fit."""
        chosen = self._chosen()
        blocks = self.blocks[chosen.start : chosen.stop]
        longest = max(blocks, key=lambda block: len(block.text))
        room = LONGEST_QUOTE - sum(len(block.text) for block in blocks if block is not longest)
        return _Quote(
            joined(self._short(block, room) if block is longest else block for block in blocks), blocks[0].section
        )

    def line(self) -> _Quote:
        """The best sentence, row or item of its best block, as one line; code only if there is nothing else."""
        block = max(self.blocks, key=lambda block: (block.kind != "code", self._score(block)))
        units = units_of(block, self.abbreviations)
        text = " ".join(units.plain(max(units.texts, key=self._weight)).split())
        if len(text) > LONGEST_LINE:
            text = f"{text[:LONGEST_LINE].rsplit(maxsplit=1)[0]} …"
        return _Quote(text, block.section)

    def _weight(self, text: str) -> float:
        found = stems(text)
        return sum(weight for word, weight in self.weights.items() if word in found)

    def _score(self, block: Block) -> float:
        sections = self.hit.chunk.sections
        heading = stems(" ".join(sections[block.section].path)) if sections else set[str]()
        own = stems(block.text)
        return sum(
            weight * (1 if word in own else HEADING) for word, weight in self.weights.items() if word in own | heading
        )

    def _best(self) -> int:
        return max(range(len(self.blocks)), key=lambda i: (self._score(self.blocks[i]), -i))

    def _chosen(self) -> range:
        """The best block, the blocks that it leads to or that lead to it, and what follows in its section and fits."""
        first = last = self._best()
        while first > 0 and self.blocks[first - 1].leads and self._together(first - 1, first):
            first -= 1
        length = sum(self._length(i) for i in range(first, last + 1))
        while last + 1 < len(self.blocks) and self._together(last, last + 1):
            leads = self.blocks[last].leads
            if not leads and length + self._length(last + 1) > LONGEST_QUOTE:
                break
            last += 1
            length += self._length(last)
        while last > first and self.blocks[last].leads:  # nothing follows that it could lead to
            last -= 1
        # blocks after it usually explain it; blocks before it only if no more follow
        while first > 0 and self._together(first - 1, first) and length + self._length(first - 1) <= LONGEST_QUOTE:
            first -= 1
            length += self._length(first)
        return range(first, last + 1)

    def _together(self, one: int, other: int) -> bool:
        return self.blocks[one].section == self.blocks[other].section

    def _length(self, index: int) -> int:
        return min(len(self.blocks[index].text), LONGEST_QUOTE)

    def _short(self, block: Block, longest: int) -> Block:
        if len(block.text) <= longest:
            return block
        return replace(block, text=shortened(units_of(block, self.abbreviations), longest, self._weight))

"""Writes the answer: the language model streams it; without a model, it quotes the best block and a line of each further passage."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from app.citing.asked import weights_of
from app.citing.links import escaped, markdown_link, page_title
from app.citing.sections import (
    extract,
    features_of,
    has_all,
    nearest,
    nearest_list,
    offered_links,
    own_language,
    page_of,
    ranked,
    sure,
)
from app.core.errors import ModelError
from app.core.language import Language
from app.core.log_message import REQUEST_ID, LogMessage
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Call, Done, Event, Events, Failure, Message, Removal, Text, Turn, Usage
from app.core.types import Legs
from app.models import Model
from app.models.protocols import CallOptions
from app.pipeline.bounded import bounded, in_turns
from app.pipeline.conversation import (
    as_found,
    asked_of_pages,
    client_texts,
    earlier,
    is_brief,
    model_for,
    numbered,
    off_loop,
    prompt_of,
    read_passages,
    reads_little,
    room_for_pages,
    with_answer_language,
    within_window,
)
from app.pipeline.rewriting import new_in
from app.pipeline.runner import Changes, Step
from app.text.answer_language import AnswerLanguage, Verdict
from app.text.language import subjects
from app.text.letters import all_letters

log = logging.getLogger("app.pipeline")

LONGEST_ANSWER = 50_000  # characters; then it is cut
OTHER_LANGUAGE = "it isn't in the language of the question: the model was asked again"
STILL_OTHER = "it isn't in the language of the question either: the pages are quoted"
SIGNS_OF_TURNS = ("<|im_", "<|e", "\n### Instruction", "\nUser:")
"""With which weak models go on as somebody else. Only sent with the short prompt: some models that need none refuse a request with `stop`,
and OpenAI takes four."""


@dataclass(frozen=True)
class Synthesize(Step):
    """Writes the events of the answer. If the model fails before any text, DOCS_TUNING__ON_MODEL_FAILURE decides what follows.

    It isn't asked in the languages `quoted`, where its exam says that quotations are better.
    """

    prompts: Prompts
    settings: Settings
    model: Model | None = None
    quoted: frozenset[str] = frozenset()
    name = "synthesize"
    reads = ("asked", "hits", "generation")
    uses = (
        "search",
        "refined",
        "dates",
        "keywords",
        "more_keywords",
        "related",
        "choices",
        "overview",
        "evidence",
        "passages",
    )
    writes = ("passages", "events", "quotation")

    def __post_init__(self) -> None:
        """Load the letter statistics, so that the first answer doesn't wait for them."""
        if self.model:
            all_letters()

    async def __call__(self, turn: Turn) -> Changes:
        """The passages that the model reads, and the events; the model is called when they are read."""
        turn = with_answer_language(turn, self.prompts.languages)
        if not model_for(self, turn) or turn.choices or not turn.hits:
            return {"events": self._answer(turn)}
        passages = await read_passages(turn, self._fitting, self.prompts, self.model)
        read = turn.changed(passages=passages)
        return {
            "passages": passages,
            "events": self._answer(read),
            "quotation": partial(self._extracted, read),
        }

    def _answer(self, turn: Turn) -> Events:
        model = model_for(self, turn)
        if model and not turn.choices and (turn.hits or turn.request.attached):
            return self._written(model, turn)
        return self._unwritten(turn)

    @property
    def _fitting(self) -> Settings:
        """The settings, within the window that the model's server says."""
        return within_window(self.settings, self.model)

    async def _unwritten(self, turn: Turn) -> Events:
        """The answers that no model writes: which reading is meant, that nothing was found, or quotations."""
        if turn.choices:
            if turn.citing:
                turn.citing.links += offered_links(turn.choices, "offered: one of several readings of the question")
            choices = "\n".join(
                f"- {markdown_link(page_title(hit.chunk) or hit.chunk.url, hit.chunk.url)}" for hit in turn.choices
            )
            yield Text(self.prompts.render(turn.asked.language, "clarify", choices=choices), quoted=True)
            yield Done()
            return
        for event in await self._extracted(turn):
            yield event

    async def _written(self, model: Model, turn: Turn) -> Events:
        """The answer of the model. If it is in another language than the question, the model is asked once more, then the pages are
        quoted, as many readers couldn't read a second such answer.
        """
        language, whole, options = turn.asked.language, turn.request.whole, self._options(turn)
        asked = partial(new_in, question=turn.asked.text, language=self.prompts.language(language))
        attempt, firmer = Attempt(AnswerLanguage(language, self.prompts.languages), whole=whole, says=asked), ""
        for _ in range(2):
            try:
                with turn.calls.call(self.name) as call:
                    stream = model.stream(self._messages(turn, firmer), options)
                    async with aclosing(stream), aclosing(bounded(stream, LONGEST_ANSWER)) as events:
                        async for event in events:
                            for shown in attempt.read(event, call):
                                yield shown
            except WrongLanguage as wrong:
                refused = wrong.events
                _note_removal(turn, Removal("answer", wrong.text, STILL_OTHER if firmer else OTHER_LANGUAGE))
            except ModelError as error:
                last = await self._failed(turn, attempt, error)
                break
            else:
                last = attempt.last
                break
            log.info(LogMessage("answer in another language", id=turn.request.id, language=language, told=bool(firmer)))
            attempt = Attempt(attempt.check, whole=whole, refused=refused, has_quotations=bool(turn.hits), says=asked)
            firmer = self.prompts.render(language, "answer_language")
        else:
            *quoted, done = await self._extracted(turn)
            assert isinstance(done, Done)
            last = [*quoted, replace(done, language="wrong")]
        async for shown in in_turns(last):  # after the call is recorded, as its reader looks for that at the end
            yield shown

    async def _failed(self, turn: Turn, attempt: Attempt, error: ModelError) -> Sequence[Event]:
        """What follows the failure of the model. Raises it again if that is configured, and nothing was said."""
        if attempt.refused and not attempt.said:
            log.warning(LogMessage("language model failed on correcting", id=turn.request.id, error=error))
            if turn.citing:
                turn.citing.removed.clear()  # all of it is of the answer that is shown now
            return attempt.refused  # better than no answer
        if not attempt.said and self.settings.tuning.on_model_failure == "error":
            raise error
        log.warning(LogMessage("language model failed", id=turn.request.id, in_mid_answer=attempt.said, error=error))
        if attempt.said:
            return [Failure(error)]
        return await self._extracted(turn, "" if isinstance(error, SaidNothing) else "failed")

    async def _nothing(self, turn: Turn) -> list[Event]:
        """The reply that nothing was found, with the nearest sections; the model isn't asked."""
        language = self.prompts.language(turn.asked.language)
        nothing = self.prompts.render(language.code, "nothing_found")
        said = [Text(f"{nothing} {_unknown(turn, language)}".rstrip(), own=True)]
        if found := await nearest(turn, turn.related, language):
            said.append(Text(nearest_list(found, language), quoted=True))
            if turn.citing:
                turn.citing.links += offered_links((one.hit for one in found), "offered: too weak to answer from")
        return [*said, Done(refused=True)]

    async def _extracted(self, turn: Turn, instead: Literal["", "failed", "meanwhile"] = "") -> list[Event]:
        """The quotation, below a line that says whether it is certain, and first why it stands there `instead` of an answer of the model:
        the model can't be asked, or hasn't said anything yet.
        """
        if not turn.hits:
            return await self._nothing(turn)
        turn = as_found(turn)  # the numbers of passages are the ones that get links
        language = self.prompts.language(turn.asked.language)
        weights, size = await weights_of(turn, language), sum(len(hit.chunk.text) for hit in turn.hits)
        found = own_language(await off_loop(partial(ranked, turn.hits, weights, language), size), turn.asked.language)
        page = await page_of(turn, found)
        texts = language.texts
        legs = turn.search.legs if turn.search else Legs()
        features = features_of(found, weights, legs) if found and weights else {}
        doubtful = bool(features) and not (sure(features) and has_all(found[0], self._subjects(turn)))
        intro = (doubtful and texts.extractive_unsure) or texts.extractive_intro
        reasons = {"failed": texts.extractive_failed, "meanwhile": texts.extractive_meanwhile}
        intro = f"{reasons.get(instead, '')} {intro}".lstrip()
        found = found[:1] if instead == "meanwhile" else found  # the answer of the model follows
        return [
            *await off_loop(partial(extract, turn, found, page, intro, texts.whole_section, texts.related), size),
            Done(extractive=True, doubtful=doubtful, features=features),
        ]

    def _subjects(self, turn: Turn) -> list[str]:
        language, text = self.prompts.language(turn.asked.language), turn.asked.text
        return subjects(text, language) if is_brief(text, language) else []

    def _options(self, turn: Turn) -> CallOptions:
        sampling, settings = turn.request.sampling, self._fitting
        stop = sampling.stop or (SIGNS_OF_TURNS if reads_little(settings) else ())
        return CallOptions(
            temperature=settings.tuning.temperature if sampling.temperature is None else sampling.temperature,
            max_tokens=min(sampling.max_tokens or settings.tuning.llm_max_tokens, settings.tuning.llm_max_tokens),
            stop=stop,
            seed=sampling.seed,
            timeout=settings.llm_timeout,
        )

    def _messages(self, turn: Turn, firmer: str) -> Sequence[Message]:
        """The prompt; `firmer` is an instruction at its end, where models follow it best."""
        history = earlier(turn.request.messages, self.prompts)
        system, question = self._system(turn), asked_of_pages(turn)
        return [
            Message("system", "\n\n".join(part for part in (system, firmer) if part)),
            *history,
            Message("user", "\n\n".join(part for part in (question, firmer) if part)),
        ]

    def _system(self, turn: Turn) -> str:
        """The system prompt: our rules and passages, then the attachments and style of the client, marked as such."""
        settings = self._fitting
        attached, style = client_texts(turn, room_for_pages(turn, settings, self.prompts))
        passages = numbered(turn.passages)
        parts = [self.prompts.render(turn.asked.language, prompt_of(settings), passages=passages)]
        if (dates := turn.dates.boost) and turn.dates.topic:
            period = f"{dates.first or '…'} – {dates.last or '…'}"
            parts.append(self.prompts.render(turn.asked.language, "dated", period=period))
        if attached:
            parts.append(self.prompts.render(turn.asked.language, "attached", attached=attached))
        if style:
            parts.append(self.prompts.render(turn.asked.language, "style", style=style))
        if persona := self.prompts.persona(turn.asked.language, turn.request.persona):
            parts.append(persona)
        return "\n\n".join(parts)


def _unknown(turn: Turn, language: Language) -> str:
    """The sentence that names the words of the question in no page; empty without any."""
    words = turn.evidence.unknown[:MOST_NAMED] if turn.evidence else ()
    if not words:
        return ""
    return language.texts.unknown_words.replace("{words}", ", ".join(f"*{escaped(word)}*" for word in words))


MOST_NAMED = 3  # words that no page has
LONGEST_HELD = 80  # characters
ENOUGH = 2 * LONGEST_HELD  # of a first piece that is longer


class SaidNothing(ModelError):
    """The model answered, but no word of it is of use: the reader is told nothing of the model, as asking again changes nothing."""


class WrongLanguage(Exception):
    """The answer is in another language. `text` is what was read of it; `events` are all its events if it was read to the end."""

    def __init__(self, text: str, events: tuple[Event, ...] = ()) -> None:
        super().__init__("The answer is in another language.")
        self.text, self.events = text, events


def _note_removal(turn: Turn, removal: Removal) -> None:
    if turn.citing:
        turn.citing.removed.append(removal)


class Attempt:
    """What readers see of one answer of the model.

    An attempt is held back until its language is certain and it says something, or `LONGEST_HELD` characters have come. The second,
    which knows what was `refused` of the first, isn't if there are no quotations to show in its place. If the reader gets the `whole`
    answer at once, all of it waits for the end. An answer that `says` nothing, or asks the question again, is as good as none.
    """

    def __init__(
        self,
        check: AnswerLanguage,
        *,
        whole: bool,
        refused: tuple[Event, ...] | None = None,
        has_quotations: bool = True,
        says: Callable[[str], str] = lambda _: "new",
    ) -> None:
        self.check, self.refused = check, refused
        self._whole, self._has_quotations, self._says = whole, has_quotations, says
        self._read = list[Event]()  # all text, and what else waits
        self._holding = has_quotations
        self.last: Sequence[Event] = ()

    @property
    def said(self) -> bool:
        """True if readers have seen text."""
        return bool(self._read) and not self._whole and not self._holding

    @property
    def _text(self) -> str:
        return "".join([event.text for event in self._read if isinstance(event, Text)])

    def read(self, event: Event, call: Call) -> Sequence[Event]:
        """The events that may be shown by now; those that the end shows are `last`. Raises `WrongLanguage` before any text."""
        if isinstance(event, Usage):
            call.usage += event
        if isinstance(event, Done):
            call.error = ""
            self.last = self._ended(event)
            return ()
        if isinstance(event, Text):
            if not event.text.strip() and not any(isinstance(one, Text) for one in self._read):
                return ()  # leading blank lines
            self._read.append(event)
            if self._holding:
                held = self._text
                verdict = self.check.early(held[:ENOUGH])
                if len(held) < LONGEST_HELD and (verdict == "unsure" or self._says(held) != "new"):
                    return ()
                self._require_language(held, verdict)
                self._holding, event = False, Text(held)
        elif self._whole:
            self._read.append(event)
        return () if self._whole else (event,)

    def _ended(self, done: Done) -> Sequence[Event]:
        """The rest, with the last event, whose `language` says a switch or the outcome of the second attempt.

        Raises `SaidNothing` for an empty answer, and `WrongLanguage` for a whole answer that switched.
        """
        text = self._text
        if not text or (not self.said and self._is_nothing(text)):
            raise SaidNothing(f"The language model returned {'nothing that answers' if text else 'an empty answer'}.")
        if self._holding:
            self._require_language(text, "unsure")
        rest = self._read if self._whole else [Text(text)] * self._holding
        if self.refused is not None:
            done = replace(done, language=self.check.outcome(text))
            if done.language == "wrong" and self._whole and self._has_quotations:
                raise WrongLanguage(text)
        elif self.check.switched(text):
            done = replace(done, language="switched")
            if self._whole:
                raise WrongLanguage(text, (*rest, done))
        if done.language:
            log.info(LogMessage("answer language", id=REQUEST_ID.get(), outcome=done.language))
        return (*rest, done)

    def _is_nothing(self, text: str) -> bool:
        says = self._says(text)
        return says == "nothing" or (says == "again" and text.rstrip().endswith("?"))

    def _require_language(self, held: str, verdict: Verdict) -> None:
        """Raises `WrongLanguage` for a text that mustn't be shown."""
        if (self.check.beginning(held) if verdict == "unsure" else verdict) == "wrong":
            raise WrongLanguage(held)

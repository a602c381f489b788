"""Texts that a model reads: the earlier conversation, and the sections of the hits, numbered, within a budget."""

import asyncio
import logging
import math
import re
from collections.abc import Callable, Container, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import islice
from typing import Protocol, TypeVar

from app.core.errors import AnswerTimeout, StoreError
from app.core.language import Language, Traits
from app.core.log_message import LogMessage
from app.core.prompts import Prompts
from app.core.settings import WHOLE_ANSWER, Settings
from app.core.turn import Message, Question, Turn
from app.core.types import Passage, PlainText
from app.index.protocols import Generation
from app.models import Embedder, Model
from app.pipeline.calls import LONGEST_ANSWER, ask_helper
from app.pipeline.runner import Step
from app.text.analysis import fold, words
from app.text.blocks import ITEM, outside_code
from app.text.growth import grown, heading_line
from app.text.language import is_smalltalk

log = logging.getLogger("app.pipeline")

KEPT_MESSAGES = 6
KEPT_CHARACTERS = 1500
MOST_REFERRING = 3  # content words: in a longer question "it" points to the question's own words
MOST_OPENED = 4  # content words after "And ...", and of a brief question
_CITATION = re.compile(r" ?\[\d{1,3}(?:\s*[,;]\s*\d{1,3})*\](?!\()")


def earlier(messages: Sequence[Message], prompts: Prompts) -> tuple[Message, ...]:
    """The last messages before the question, without our source lists, each of at most `KEPT_CHARACTERS`."""
    last_question = max((i for i, m in enumerate(messages) if m.role == "user"), default=0)
    talk = [m for m in messages[:last_question] if m.role in {"user", "assistant"}]
    texts_of = (language.texts for language in prompts.languages.values())
    heading = _heading(tuple(heading for texts in texts_of for heading in (texts.sources, texts.related)))
    texts = ((message.role, _clean(message, heading)) for message in reversed(talk))
    newest = list(islice((Message(role, text[:KEPT_CHARACTERS]) for role, text in texts if text), KEPT_MESSAGES))
    return tuple(reversed(newest))


def _clean(message: Message, heading: re.Pattern[str]) -> str:
    """The message without our lists of links and our citations, whose numbers would point to other passages now."""
    if message.role != "assistant":
        return message.content.strip()
    # array[1] in code is no citation
    return outside_code(_without_lists(message.content, heading), partial(_CITATION.sub, "")).strip()


def _without_lists(text: str, heading: re.Pattern[str]) -> str:
    """The text without our headings that have a list or nothing below them, and without those lists."""
    lines = text.replace("\r\n", "\n").split("\n")
    shown, at = list[str](), 0
    while at < len(lines):
        end = _list_end(lines, at + 1) if heading.fullmatch(lines[at]) else at
        shown.append("" if end > at else lines[at])
        at = max(end, at + 1)
    return "\n".join(shown)


def _list_end(lines: Sequence[str], start: int) -> int:
    """The end of the list that begins at this line, after blank lines; 0 if there is no list."""
    end, items = start, 0
    while end < len(lines) and ((item := ITEM.match(lines[end])) or not lines[end].strip()):
        items += item is not None
        end += 1
    return end if items or end == len(lines) else 0


@lru_cache(maxsize=8)
def _heading(texts: tuple[str, ...]) -> re.Pattern[str]:
    """The line above our lists of links, in whatever form models imitate it."""
    names = "|".join(re.escape(text.rstrip(":")) for text in texts)
    return re.compile(rf"[ \t]*+(?:#{{1,6}}[ \t]*+)?(?:\*\*)?[ \t]*+(?:{names})[ \t]*+:?[ \t]*+(?:\*\*)?:?[ \t]*+")


def referred(messages: Sequence[Message], language: Language) -> str:
    """The earlier question that the last one points back to; empty if the last one stands alone."""
    *_, last = [message.content for message in messages if message.role == "user" and message.content.strip()] or [""]
    return question_before(messages, language) if points_back(last, language) else ""


def question_before(messages: Sequence[Message], language: Language) -> str:
    """The newest question before the last one that isn't small talk; empty if there is none."""
    *before, _ = [m.content.strip() for m in messages if m.role == "user" and m.content.strip()] or [""]
    return next((question for question in reversed(before) if not is_smalltalk(question, language)), "")


def points_back(question: str, language: Language) -> bool:
    """True if a question needs an earlier one: it has few content words and a word that refers ("And ...", "it"), or none but those
    that ask for more of the same ("For how long?", "Give me an example").
    """
    said, content = _said(question, language)
    questions, begins = language.questions, f"{'-'.join(said)}-"
    if any(begins.startswith(f"{opener}-") for opener in questions.openers):
        return len(content) <= MOST_OPENED
    if not questions.references.isdisjoint(said):
        return len(content) <= MOST_REFERRING
    return questions.more.issuperset(content)


def is_brief(question: str, language: Language) -> bool:
    """True if a question has so few content words that it may not say what it is about."""
    return len(_said(question, language)[1]) <= MOST_OPENED


def _said(question: str, language: Language) -> tuple[list[str], list[str]]:
    """The words of a question, and those of them that aren't function words."""
    said = [fold(word) for word in words(question)]
    return said, [word for word in said if word not in language.traits.stopwords]


@dataclass(frozen=True)
class Searching(Step):
    """A step that searches for the question."""

    embedder: Embedder
    prompts: Prompts
    settings: Settings


@dataclass(frozen=True)
class Asking(Step):
    """A step that asks the language model once. If that fails, the turn goes on without its changes.

    The step doesn't apply in the languages `quoted`, in which the model isn't asked.
    """

    model: Model
    prompts: Prompts
    settings: Settings
    quoted: frozenset[str] = field(default=frozenset(), kw_only=True)
    optional = True
    helper_calls = 1

    def applies(self, turn: Turn) -> bool:
        """False if the model isn't asked in the language of the question."""
        return model_for(self, turn) is not None


class _Quoting(Protocol):
    @property
    def model(self) -> Model | None: ...
    @property
    def quoted(self) -> frozenset[str]: ...


def model_for(step: _Quoting, turn: Turn) -> Model | None:
    """The model of the step, None in the languages `quoted`: the model's exam says that readers are better off without it there."""
    return None if turn.asked.language in step.quoted else step.model


def spelled_out(turn: Turn) -> Question:
    """The refined question, in its language, in place of one that refers to an earlier question.

    A question that stands on its own stays unchanged: retrieval is better with the original.
    """
    asked, refined = turn.asked, turn.refined
    if not (refined and asked.referred):
        return asked
    return replace(asked, text=refined.text, language=refined.language or asked.language, referred="")


def searched(turn: Turn) -> Question:
    """The question that is searched: spelled out, or without the time that it names."""
    question = spelled_out(turn)
    if question is turn.asked and turn.dates.topic:
        question = replace(question, text=turn.dates.topic)
    return replace(question, language=turn.search.query.language) if question.unsure and turn.search else question


def asked_of_pages(turn: Turn) -> str:
    """The question that the model answers: refined, and without the time that the search has settled by the dates of pages.

    A time that the passages don't repeat makes models invent dates.
    """
    dates, refined = turn.dates, turn.refined
    if not dates.topic:
        return (refined or turn.asked).text
    if refined and dates.words and dates.words in refined.text:
        left = " ".join(refined.text.replace(dates.words, "").split())
        for sign in "?.!,;:":
            left = left.replace(f" {sign}", sign)
        return left
    return refined.text if refined and turn.asked.referred else dates.topic


def with_answer_language(turn: Turn, configured: Container[str]) -> Turn:
    """The turn with the language of the answer. If it was a guess, it is that of the search, which the pages decide.

    A refined question in another language is dropped, because models answer in the language they are asked in.
    """
    refined, language = turn.refined, turn.asked.language
    if not turn.asked.unsure and (refined is None or refined.language in {"", language}):
        return turn
    if turn.asked.unsure and turn.search and turn.search.query.language in configured:
        language = turn.search.query.language
    if refined and refined.language not in {"", language}:
        refined = None
    return turn.changed(asked=replace(turn.asked, language=language, unsure=False), refined=refined)


def standalone(turn: Turn) -> str:
    """The question, understandable without the conversation: refined, else after the question that it refers to."""
    return spelled_out(turn).in_context


async def ask_about(step: Asking, turn: Turn, prompt: str, *, max_tokens: int = LONGEST_ANSWER, **values: str) -> str:
    """What the model of a step replies to one of its prompts with the question, below the conversation.

    Raises `ModelError` as `ask_helper` does.
    """
    system = step.prompts.render(turn.asked.language, prompt, **values)
    asked = turn.asked
    # of a brief question that stands alone, an earlier one says nothing but another subject
    alone = not asked.referred and is_brief(asked.text, step.prompts.language(asked.language))
    history = () if alone else earlier(turn.request.messages, step.prompts)
    messages = [Message("system", system), Message("user", conversation(asked.text, history))]
    return await ask_helper(step.name, step.model, messages, turn, step.settings, max_tokens=max_tokens)


def conversation(question: str, history: Sequence[Message]) -> str:
    """The question below the earlier conversation, if there is one."""
    if not history:
        return question
    lines = [f"{m.role}: {m.content}" for m in history]
    return "\n".join(["<conversation>", *lines, "</conversation>", "", question])


CHARACTERS_PER_TOKEN = 3
"""Of lengths that are set in tokens. What fits into a window is counted by `characters_per_token`."""
LONGEST_QUESTION_TOKENS = 2000
LONGEST_STYLE = 2000


READING_SECONDS, SLACK = 20.0, 2
"""Seconds that a slow model may read passages before its first text; its readers wait for it. A time-out is so many times the time that
a prompt takes at the measured speed.
"""
SLOW_READS = 3000
"""Characters that the slowest model gets: with less, the answer often isn't there."""


PARTS_OF_WINDOW = 4  # of a small one, the question gets one at most, and so does the answer
SMALL_WINDOW = 8000  # tokens; a model that reads less gets the short prompt
SHORT_PASSAGES = 3


def reads_little(settings: Settings) -> bool:
    """True if the model gets the short prompt: few rules below few passages, because a weak model forgets what it read first."""
    form = settings.tuning.llm_form
    return form == "short" or (form == "auto" and settings.llm_context_window < SMALL_WINDOW)


def length_of_rules(settings: Settings, prompts: Prompts, language: str) -> int:
    """The number of characters of the prompt of answers without its passages."""
    return len(prompts.render(language, prompt_of(settings), passages=""))


def prompt_of(settings: Settings) -> str:
    """The name of the prompt of answers."""
    return "synthesize_short" if reads_little(settings) else "synthesize"


def with_patience(
    settings: Settings, prompts: Prompts, written: Settings, *, characters: float, writes: float
) -> Settings:
    """The settings with a time-out in which a model reads its longest prompt at so many characters a second, and in `WHOLE_ANSWER` of which it
    also writes its longest answer at so many tokens a second; 0 is an unknown speed. A time-out that the operator has `written` stays.
    """
    if not characters or "llm_timeout" in written.model_fields_set:
        return settings
    rules = max(length_of_rules(settings, prompts, code) for code in prompts.languages)
    reading = max(SLOW_READS / characters, READING_SECONDS) + rules / characters
    writing = settings.tuning.llm_max_tokens / writes if writes else 0.0
    timeout = max(settings.llm_timeout, SLACK * reading, SLACK * (reading + writing) / WHOLE_ANSWER)
    return settings.model_copy(update={"llm_timeout": math.ceil(timeout)})


def within_window(settings: Settings, model: Model | None) -> Settings:
    """The settings with the window that the model's server says, if it is smaller than the one that is set."""
    said = getattr(model, "window", 0)
    if not said or said >= settings.llm_context_window:
        return settings
    most = min(settings.tuning.llm_max_tokens, said // PARTS_OF_WINDOW)
    return settings.model_copy(update={"llm_context_window": said, "llm_max_tokens": most})


async def read_passages(
    turn: Turn, settings: Settings, prompts: Prompts, model: Model | None = None
) -> tuple[Passage, ...]:
    """The passages for the model, grown from the hits; those of an earlier step if there are any. A `model` that was measured to
    read slowly gets what it reads in `READING_SECONDS`, one with the short prompt a few short ones.

    If the texts of the pages can't be read, the passages are the chunks.
    """
    budget: float = _budget(turn, settings, prompts)
    if speed := getattr(model, "reading", None):
        budget = min(budget, max(SLOW_READS, speed.characters_in(READING_SECONDS)))
        in_time = speed.characters_in(settings.llm_timeout / SLACK)
        if in_time < budget + LONGEST_STYLE:  # what else is read counts only for a slow model
            rest = in_time - length_of_rules(settings, prompts, turn.asked.language)
            budget = min(budget, max(SLOW_READS / SLACK, rest))
    hits = turn.hits
    if reads_little(settings):
        hits, budget = hits[:SHORT_PASSAGES], min(budget, SLOW_READS)
    return turn.passages or tuple(grown(hits, await _plain_texts(turn), int(budget)))


def as_found(turn: Turn) -> Turn:
    """The turn with the best hit of each passage in the place of the hits, so that both have the same numbers."""
    return turn.changed(hits=tuple(passage.hits[0] for passage in turn.passages)) if turn.passages else turn


async def _plain_texts(turn: Turn) -> Mapping[str, PlainText]:
    generation: Generation | None = turn.generation
    try:
        urls = list(dict.fromkeys(hit.chunk.url for hit in turn.hits))
        return await generation.plain_texts(urls) if generation else {}
    except StoreError as error:
        log.warning(LogMessage("pages not read, passages are only chunks", id=turn.request.id, error=error))
        return {}


def _budget(turn: Turn, settings: Settings, prompts: Prompts) -> int:
    """Returns the number of characters that the passages may have."""
    room = room_for_pages(turn, settings, prompts)
    attached, style = client_texts(turn, room)
    return min(settings.tuning.passage_tokens * CHARACTERS_PER_TOKEN, room - len(attached) - len(style))


def room_for_pages(turn: Turn, settings: Settings, prompts: Prompts) -> int:
    """Returns the number of characters in the context window for passages and for what the client attached."""
    history = earlier(turn.request.messages, prompts) if len(turn.request.messages) > 1 else ()
    room = room_in(settings, settings.tuning.llm_max_tokens, characters_per_token(turn, prompts))
    return room - sum(len(message.content) for message in history)


def client_texts(turn: Turn, room: int) -> tuple[str, str]:
    """Returns what the client attached, at most half of the room, and its wishes for the style of the answer."""
    return "\n\n".join(turn.request.attached)[: max(room // 2, 0)], turn.request.style[:LONGEST_STYLE]


def room_in(settings: Settings, answer: int, per_token: float) -> int:
    """Returns the characters of passages that fit into the context window, beside a question and an answer of so many tokens; a token has
    so many characters.
    """
    window = settings.llm_context_window
    return int((window - answer - min(LONGEST_QUESTION_TOKENS, window // PARTS_OF_WINDOW)) * per_token)


def characters_per_token(turn: Turn, prompts: Prompts) -> float:
    """The fewest characters that a token has in the languages of the question and of what was found. A language without prompts has
    few: its letters may be anything.
    """
    known = {code: language.traits.characters_per_token for code, language in prompts.languages.items()}
    few = float(Traits.model_fields["characters_per_token"].default)
    return min(known.get(code, few) for code in {turn.asked.language, *(hit.chunk.language for hit in turn.hits)})


def numbered(passages: Sequence[Passage], first: int = 1) -> str:
    """The passages as the model reads them, with their numbers from `first` on, each below its site, page and headings."""
    texts = list[str]()
    for number, passage in enumerate(passages, start=first):
        chunk = passage.chunk
        below_title = chunk.text.removeprefix(f"# {chunk.title}\n").lstrip("\n")  # the line above has it
        texts.append(f"[{number}] {heading_line(chunk)}\n{passage.condensed or below_title}")
    return "\n\n".join(texts)


LONG = 20_000  # characters; shorter texts take too little time to matter
LONGEST = 10.0  # seconds

_threads = ThreadPoolExecutor(2, "reading")  # separate, so that searches of the store don't wait for them
T = TypeVar("T")


async def off_loop(read: Callable[[], T], length: int) -> T:
    """The result of `read`, which runs in a thread if its texts have over `LONG` characters.

    Raises `AnswerTimeout` if it takes over `LONGEST` seconds.
    """
    if length <= LONG:
        return read()
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_threads, read), LONGEST)
    except TimeoutError as error:
        raise AnswerTimeout(
            f"Reading {length} characters of passages took over {LONGEST:.0f} s. Try again, or index shorter passages (DOCS_SPLITTER)."
        ) from error

"""A request, the events of its answer, the turn with what the pipeline knows of the question, and the record of the answer."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from app.core.errors import ModelError, Overloaded, RequestError
from app.core.types import Boost, Filters, Hit, Legs, Passage, Query, Recency, Section

if TYPE_CHECKING:
    from app.core.trace import Trace


# ---- a conversation --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """A message of a chat; `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters that the client requested; None means the setting."""

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """A question with its conversation; `id` identifies the answer in logs and in the response.

    `whole`: the client gets nothing before the end of the answer, so that all of it can still be corrected. `trace`: the
    client gets a trace. `attached` are texts that the user sent along with the question. `links`: the text ends with a
    list of links. `first_number` is the number of the first source, for clients that have numbered other sources before.
    `limit` is the number of passages; 0 means the setting. `language` is what the client says of its user's language, for
    questions that show none. `page` is the address of the page that the reader looks at. `as_you_type`: the last word may
    be incomplete. `early`: the client shows the found sections while the model is working.
    """

    messages: tuple[Message, ...]
    assistant: str = ""
    id: str = ""
    sampling: Sampling = Sampling()
    filters: Filters = field(default_factory=Filters)
    persona: str = ""
    whole: bool = False
    trace: bool = False
    attached: tuple[str, ...] = ()
    links: bool = True
    first_number: int = 1
    limit: int = 0
    language: str = ""
    page: str = ""
    as_you_type: bool = False
    early: bool = False

    @property
    def question(self) -> str:
        """The last message of the user, stripped; empty if there is none."""
        return next((m.content.strip() for m in reversed(self.messages) if m.role == "user"), "")

    @property
    def style(self) -> str:
        """The client's system messages; empty if there are none."""
        return "\n\n".join(m.content.strip() for m in self.messages if m.role == "system")


# ---- what the pipeline yields ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Proof:
    """The sentence of a passage that answers best, as one line, and its section."""

    passage: int
    section: Section | None
    sentence: str


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer. `quoted`: it is copied from a page, so nothing in it is a citation of the answer; `proof` is
    what it was chosen for, and it is a `block` if it stands apart from the text around it. `own`: no model wrote it.
    """

    text: str
    quoted: bool = False
    block: bool = False
    own: bool = False
    proof: Proof | None = None


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the model's reasoning; never parsed, cited or shown as the answer."""

    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A section that the answer cites. /openapi.json has these descriptions."""

    number: Annotated[int, Field(description="The [n] in the text.")]
    title: Annotated[str, Field(description="Title of the page.")]
    url: Annotated[str, Field(description="Address of the section if its anchor is known, else of the page.")]
    section: Annotated[str, Field(description="The section's heading; empty at the start of a page.")]
    language: str
    snippet: Annotated[str, Field(description="Beginning of the section, about 300 characters.")]
    score: Annotated[float, Field(description="0 to 1, relative to the other passages of this answer.")]
    translated_from: Annotated[
        str, Field(description="Language of the page if the answer uses a translation of it; else empty.")
    ] = ""
    chunk: Annotated[str, Field(description="The id of its passage, for /v1/passages/{id}.")] = ""
    sentence: Annotated[
        str, Field(description="The sentence that answers best, if no language model wrote the answer; else empty.")
    ] = ""

    @property
    def name(self) -> str:
        """The name for readers: titles of page and section, or the address of a page without a title."""
        return " – ".join(part for part in (self.title, self.section) if part) or self.url


@dataclass(frozen=True, slots=True)
class Status:
    """A status line for clients that can show one, with the `sections` that were found so far."""

    text: str
    done: bool = False
    sections: tuple[Source, ...] = ()


UnsupportedKind = Literal["number", "name", "code", "statement"]


@dataclass(frozen=True, slots=True)
class Unsupported:
    """A part of the answer that no passage proves. /openapi.json has these descriptions."""

    text: Annotated[str, Field(description="The sentence, item, row or line of code.")]
    kind: Annotated[UnsupportedKind, Field(description="What isn't proved of it.")]
    passage: Annotated[int, Field(description="The number of the nearest passage in the prompt; 0 if there is none.")]
    score: Annotated[float, Field(description="The share of the words that this passage has, 0 to 1.")]


@dataclass(frozen=True, slots=True)
class Verbatim:
    """How much of an answer is copied. /openapi.json has these descriptions."""

    statements: Annotated[int, Field(description="The sentences, items, rows and lines of code of the answer.")]
    found: Annotated[int, Field(description="Those of them that stand word for word in a cited page.")]


@dataclass(frozen=True, slots=True)
class Usage:
    """Numbers of tokens, counted by the model's server."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    @property
    def total(self) -> int:
        """Both together."""
        return self.prompt_tokens + self.completion_tokens

    def __add__(self, other: Usage) -> Usage:
        """The sum of two calls."""
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


@dataclass(frozen=True, slots=True)
class Failure:
    """An error after the first text was sent; `trace` as in `Done`."""

    error: Exception
    trace: Trace | None = None


FinishReason = Literal["stop", "length"]
LanguageCheck = Literal["", "corrected", "switched", "wrong"]
Ending = Literal["", "recited", "unproven", "looped", "turned"]


@dataclass(frozen=True, slots=True)
class Done:
    """The end; `finish_reason` as in the OpenAI API: stop or length. `extractive`: no model wrote the answer. `refused`:
    the answer only says that the documentation has none. `doubtful`: the quotation may be about something else.

    `language` is empty if the answer was in the right language, `corrected` if it was requested a second time, `wrong`
    if that didn't help, and `switched` if the language changed after the beginning had been sent. `trace` says how it was made, if the
    request asked for that. `cut`: the model wrote more than an answer may have, and the rest wasn't read.

    `unsupported` are the parts that no passage proves. `ending` says why the rest of the answer was left out: it recited its
    instructions, more than half of it was unproven, it repeated itself, or went on in somebody else's place.

    `verbatim` says how many of its statements are word for word in the pages; None of a refusal and of an answer without any.

    `follow_ups` are questions that the documentation answers, too. `features` are the numbers by which a quotation was found `doubtful`.
    """

    finish_reason: FinishReason = "stop"
    extractive: bool = False
    refused: bool = False
    doubtful: bool = False
    features: Mapping[str, float] = field(default_factory=dict, compare=False)
    language: LanguageCheck = ""
    cut: bool = False
    unsupported: tuple[Unsupported, ...] = ()
    ending: Ending = ""
    verbatim: Verbatim | None = None
    follow_ups: tuple[str, ...] = ()
    trace: Trace | None = None


Event = Status | Text | Reasoning | Source | Usage | Failure | Done
Events = AsyncGenerator[Event, None]


@dataclass(frozen=True, slots=True)
class Completion:
    """The whole answer of a model, without its reasoning."""

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"


@dataclass(slots=True)
class Call:
    """One call to a language model; filled while it runs."""

    step: str
    ms: float
    usage: Usage = Usage()
    error: str = ""


@dataclass(slots=True)
class Calls:
    """The calls to language models for one question: the number of begun calls by step, and the ended calls."""

    begun: dict[str, int] = field(default_factory=dict)
    ended: list[Call] = field(default_factory=list)

    @contextmanager
    def call(self, step: str) -> Iterator[Call]:
        """A call from its beginning to its end, for its tokens to be noted in; one that neither ended nor failed was cancelled."""
        began, call = time.perf_counter(), Call(step, 0.0, error="cancelled")
        self.begun[step] = self.begun.get(step, 0) + 1
        try:
            yield call
            call.error = ""
        except ModelError as error:
            call.error = str(error)
            raise
        finally:
            call.ms = (time.perf_counter() - began) * 1000
            self.ended.append(call)

    @property
    def usage(self) -> Usage:
        """The tokens of all ended calls."""
        return sum((call.usage for call in self.ended), Usage())


@dataclass(frozen=True, slots=True)
class StepRecord:
    """The changes that one step made to a turn; a trace is a tuple of these. `error` is empty if the step succeeded.

    `began` is a time of `time.perf_counter`.
    """

    step: str
    ms: float
    changes: Mapping[str, Any]
    error: str = ""
    began: float = 0.0


@dataclass(frozen=True, slots=True)
class EarlyRun:
    """A step that ran before its turn, the values of the fields that it declares, and its changes, which it would make again."""

    step: Any
    given: tuple[Any, ...]
    changes: Mapping[str, Any]


RemovalKind = Literal["address", "image", "html", "citation", "source list", "table cell", "markup", "answer"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A part of the model's text that was removed or changed, with the reason. `markup` is Markdown or HTML that is shown
    as plain text; `answer` is the beginning of an answer that was cancelled and requested again.
    """

    kind: RemovalKind
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """Explains a link of the answer: `passage` is the number of the passage in the prompt, `chunk` its id, and `reason`
    says why the link leads to this section. `number` is the number of the source in the answer. Both numbers are None for
    a page that the answer only suggests.
    """

    number: int | None
    passage: int | None
    chunk: str
    url: str
    section: str
    reason: str
    score: float


@dataclass(slots=True)
class CitingTrace:
    """The links of an answer, and what was removed from the model's text."""

    links: list[Link] = field(default_factory=list)
    removed: list[Removal] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class OwnReply:
    """A reply for which nothing is retrieved and no model is asked, as readers get it: to small talk, or one that an editor wrote."""

    kind: Literal["smalltalk", "curated"]
    events: tuple[Event, ...]


# ---- what the pipeline knows of a question -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class Question:
    """A question as the pipeline understands it.

    `unsure`: the language is a guess, because neither words nor the client identify it; the found pages decide then.
    `referred` is an earlier question that is needed to understand this one. `synonyms` are the site's for phrases of both.
    """

    text: str = ""
    language: str = ""
    unsure: bool = False
    referred: str = ""
    synonyms: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @property
    def in_context(self) -> str:
        """The text after the question that it refers to."""
        return f"{self.referred} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class WantedDates:
    """The dates of pages that a question asks for.

    `topic` is the question without the time that it names, which is searched and answered; empty if it names none. `words` are that
    time as it is written; empty if only a model understood it. `boost` lifts the pages of that time; `recency` is the preference for
    newer pages, if the question names no time.
    """

    topic: str = ""
    words: str = ""
    boost: Boost | None = None
    recency: Recency | None = None


@dataclass(frozen=True, slots=True)
class Search:
    """A query, and the candidates that both searches found for it."""

    query: Query
    legs: Legs


@dataclass(frozen=True, slots=True)
class Evidence:
    """The share of the question (0..1) that the best passage contains, and the needed one.

    `unknown` are the words of the question in no page. It is `near` if a page has another word of it, or is near in meaning.
    """

    share: float
    needed: float
    unknown: tuple[str, ...] = ()
    near: bool = False


@dataclass(frozen=True)
class Turn:
    """Everything that the pipeline knows of one question: values, each by one step or by steps that replace each other.

    Steps return changes; the runner merges them. `generation` is the index (`app.index.protocols.Generation`), the same
    from start to end.

    Of the question:

    - `asked`: the question, by `detect`; `reply`: an answer that a step has at once, which ends the run
    - `refined`: the question on its own, by `refine` or `analyze`; its language is empty if it shows none
    - `dates`, `keywords`, `sections` (a boost for parts of the site): by `period`, `keywords` and `associate`

    Of its search:

    - `probe`: the search for the question alone; `sure`: it found what the question asks for, so that helper calls
      aren't needed; `first_hits`: its hits, which readers see while these calls run; `early`: the steps that found this out
    - `variants`, `hypothetical`: legs for other wordings of the question, and for a hypothetical answer
    - `search`: the search with all of these, by `retrieve`, and `hits`, which later steps reorder and remove
    - `pool`: further hits that the next postprocessor may choose from

    Of what is answered:

    - `evidence`: by `relevance`; `related`: hits that are too weak to answer from
    - `rejected`: the ids of chunks that don't help, by `helpful`; a later search doesn't bring them back
    - `more_keywords`: those of a second search
    - `overview`: the question is about the documentation as a whole, and the hits are its top pages
    - `choices`: hits for different readings of the question, by `clarify`
    - `passages`: what the model reads of the hits; `events`: the answer

    `trace` has the changes of each step. `calls` and `citing` are filled while models are called and while the events are
    read; `citing` is None without a trace.
    """

    request: Request
    generation: Any = None
    asked: Question = Question()
    reply: OwnReply | None = None
    refined: Question | None = None
    dates: WantedDates = WantedDates()
    keywords: Mapping[str, str] = field(default_factory=dict)
    sections: Boost | None = None
    probe: Search | None = None
    sure: bool = False
    first_hits: tuple[Hit, ...] = ()
    early: tuple[EarlyRun, ...] = ()
    variants: Legs | None = None
    hypothetical: Legs | None = None
    search: Search | None = None
    hits: tuple[Hit, ...] = ()
    pool: tuple[Hit, ...] = ()
    evidence: Evidence | None = None
    related: tuple[Hit, ...] = ()
    rejected: frozenset[str] = frozenset()
    more_keywords: Mapping[str, str] = field(default_factory=dict)
    overview: bool = False
    choices: tuple[Hit, ...] = ()
    passages: tuple[Passage, ...] = ()
    events: Events | None = None
    quotation: Callable[[Literal["", "meanwhile"]], Awaitable[Sequence[Event]]] | None = None
    trace: tuple[StepRecord, ...] = ()
    calls: Calls = field(default_factory=Calls)
    citing: CitingTrace | None = None

    def changed(self, **changes: Any) -> Turn:
        """The turn with these values. `dataclasses.replace` takes ten times as long for so many fields."""
        if unknown := changes.keys() - self.__dict__.keys():
            raise TypeError(f"A turn has no {', '.join(sorted(unknown))}.")
        turn = object.__new__(type(self))
        turn.__dict__.update(self.__dict__, **changes)
        return turn


Outcome = Literal[
    "", "written", "marked", "looped", "turned", "extractive", "perhaps", "refused", "recited", "unproven", "smalltalk", "clarified", "curated",
    "failed", "cancelled",
]  # fmt: skip
WRITER = "synthesize"  # the step whose work is done while its events are read


@dataclass(slots=True)
class AnswerRecord:
    """One answer, from the request to the last event; times are those of `time.perf_counter`, in seconds.

    - `task`: the task of Open WebUI that this is a reply to; empty for an answer to a question
    - `turn`: the turn after the last group of steps that ended; None before that, and for a task
    - `language`: that of the answer; empty until all steps have ended
    - `writing`: the time at which all steps had ended, and the events were read
    - `texts`, `sources`, `usage`: what was sent so far; none of it is logged
    - `calls`: the same object as in the turn
    - `cache`: whether the answer is a stored one; empty if none could be. `age`: that of a stored one, in seconds
    """

    assistant: str = ""
    stream: bool = False
    task: str = ""
    began: float = field(default_factory=time.perf_counter)
    turn: Turn | None = None
    language: str = ""
    writing: float | None = None
    first_text: float | None = None
    ended: float | None = None
    texts: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    usage: Usage = Usage()
    calls: Calls = field(default_factory=Calls)
    done: Done | None = None
    error: Exception | None = None
    cache: Literal["", "hit", "miss"] = ""
    age: float | None = None

    def steps_ended(self, language: str) -> None:
        """Record that all steps have ended; the answer is in this language."""
        self.language, self.writing = language, time.perf_counter()

    def add(self, event: Event) -> None:
        """Take over what an event of the answer says; the last one ends the record."""
        if isinstance(event, Text):
            if self.first_text is None:
                self.first_text = time.perf_counter()
            self.texts.append(event.text)
        elif isinstance(event, Source):
            self.sources.append(event)
        elif isinstance(event, Usage):
            self.usage += event
        elif isinstance(event, Done | Failure):
            self.ended = time.perf_counter()
            if isinstance(event, Done):
                self.done = event
            else:
                self.error = event.error

    @property
    def outcome(self) -> Outcome:
        """The outcome of the question; empty if it was rejected before any work, because of the client or of overload."""
        if self.error is not None:
            return "" if isinstance(self.error, RequestError | Overloaded) else "failed"
        if self.done is None:
            return "cancelled"
        if self.turn is not None and (self.turn.reply or self.turn.choices):
            return self.turn.reply.kind if self.turn.reply else "clarified"
        if self.done.ending:
            return self.done.ending
        if self.done.refused or self.done.extractive:
            return "refused" if self.done.refused else "perhaps" if self.done.doubtful else "extractive"
        return "marked" if self.done.unsupported else "written"

    @property
    def steps(self) -> Sequence[tuple[StepRecord, float]]:
        """The steps with their durations in milliseconds; that of the writer includes the whole answer."""
        if self.turn is None:
            return ()
        written = (self.ended - self.writing) * 1000 if self.ended and self.writing else 0.0
        return [(one, one.ms + (written if one.step == WRITER else 0.0)) for one in self.turn.trace]

    @property
    def failed_step(self) -> str:
        """The step that ended the answer with an error; empty if none did."""
        if self.error is None or self.outcome != "failed":
            return ""
        return getattr(self.error, "step", "") or (WRITER if self.writing else "")

    def fields(self) -> dict[str, Any]:
        """Returns the fields of a log line: no text of the question, and nothing that isn't known."""
        generation = getattr(self.turn, "generation", None)
        usage = self.calls.usage
        found = {
            "assistant": self.assistant,
            "task": self.task,
            "language": self.language,
            "outcome": "" if self.task else self.outcome,
            "extractive": bool(self.done and self.done.extractive),
            "refused": bool(self.done and self.done.refused),
            "unsupported": len(self.done.unsupported) if self.done and self.done.unsupported else "",
            "first_text_ms": None if self.first_text is None else round((self.first_text - self.began) * 1000, 1),
            "prompt_tokens": usage.prompt_tokens,
            "completion_tokens": usage.completion_tokens,
            "sources": len(self.sources),
            "evidence": self.evidence,
            "cache": self.cache,
            "generation": generation.info.id if generation else "",
            "step": self.failed_step,
        }
        return {name: value for name, value in found.items() if value not in ("", None)}

    @property
    def evidence(self) -> float | None:
        """The share of the question (0..1) that the best passage contains; None if no step has checked it."""
        evidence = self.turn.evidence if self.turn else None
        return evidence.share if evidence else None

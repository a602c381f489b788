"""A conversation and the answer to its last question: what comes in, what the pipeline yields, what is known on the way."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from pydantic import Field

from app.core.filters import Filters
from app.core.types import Boost, Hit, Legs, Query, Recency, Vector

# ---- a conversation --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Message:
    """One line of a chat; `role` is system, user or assistant."""

    role: str
    content: str


@dataclass(frozen=True, slots=True)
class Sampling:
    """What the client asked of the answering model; None leaves our setting."""

    temperature: float | None = None
    max_tokens: int | None = None
    stop: tuple[str, ...] = ()
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Request:
    """What a client asked; `id` names the answer in logs and in the response.

    `whole`: nothing is shown before the answer's end, so that all of it can still be corrected. `trace`: tell how
    the answer came about.
    `attached` is material that the user sent along with the question. `links` asks for the list of links at the end of
    the text, `first_number` is the number of the first source, where the client has numbered others before.
    `limit` is how many passages are wanted; 0 leaves our setting.
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

    @property
    def question(self) -> str:
        """The last message of the user, stripped; empty when there is none."""
        return next((m.content.strip() for m in reversed(self.messages) if m.role == "user"), "")

    @property
    def style(self) -> str:
        """What the client's system messages wish; empty when there is none."""
        return "\n\n".join(m.content.strip() for m in self.messages if m.role == "system")


# ---- what the pipeline yields ----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Status:
    """A line about what is going on, for clients that can show one."""

    text: str
    done: bool = False


@dataclass(frozen=True, slots=True)
class Text:
    """A piece of the answer. `quoted`: word for word from a page, so that nothing in it is a citation of ours."""

    text: str
    quoted: bool = False


@dataclass(frozen=True, slots=True)
class Reasoning:
    """A piece of the model's thinking; never parsed, cited or shown as the answer."""

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

    @property
    def name(self) -> str:
        """What readers are shown of it: page and section, or the address of a page without a title."""
        return " – ".join(part for part in (self.title, self.section) if part) or self.url


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens as the model counted them."""

    prompt_tokens: int = 0
    completion_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        """The sum of two calls."""
        return Usage(self.prompt_tokens + other.prompt_tokens, self.completion_tokens + other.completion_tokens)


Trace = tuple[Mapping[str, Any], ...]
"""One mapping for each step, ready for JSON."""


@dataclass(frozen=True, slots=True)
class Failure:
    """Something broke after the first text was sent; `trace` as in `Done`."""

    error: Exception
    trace: Trace = ()


FinishReason = Literal["stop", "length"]
LanguageCheck = Literal["", "corrected", "switched", "wrong"]


@dataclass(frozen=True, slots=True)
class Done:
    """The end; `finish_reason` as in the OpenAI API: stop or length. `extractive`: no model wrote the answer.

    `language` is empty where nothing was wrong with the answer's: `corrected` when it was asked for a second time,
    `wrong` when that didn't help, `switched` when it changed after the beginning had been sent. `trace` tells how
    the answer came about, step by step, where that was asked for.
    """

    finish_reason: FinishReason = "stop"
    extractive: bool = False
    language: LanguageCheck = ""
    trace: Trace = ()


Event = Status | Text | Reasoning | Source | Usage | Failure | Done
Events = AsyncGenerator[Event, None]


@dataclass(frozen=True, slots=True)
class Completion:
    """A whole answer of a model, thinking removed."""

    text: str
    usage: Usage = Usage()
    finish_reason: str = "stop"


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a language model."""

    step: str
    ms: float
    usage: Usage = Usage()
    error: str = ""


@dataclass(slots=True)
class Calls:
    """The calls to language models that one question took: those that were begun, and what is known of the ended ones."""

    begun: dict[str, int] = field(default_factory=dict)
    ended: list[Call] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class StepRecord:
    """What one step did to a turn: the trace is a tuple of these. `error` is empty when it went well."""

    step: str
    ms: float
    changes: Mapping[str, Any]
    error: str = ""


RemovalKind = Literal["address", "image", "html", "citation", "source list", "table cell", "markup", "answer"]


@dataclass(frozen=True, slots=True)
class Removal:
    """A part of the model's text that readers don't get as it was written, and why. `markup` is a part whose signs are
    shown as they are, `answer` what was read of an answer before the model was asked again.
    """

    kind: RemovalKind
    text: str
    reason: str


@dataclass(frozen=True, slots=True)
class Link:
    """Why the answer links there: `passage` is the passage's number in the prompt, `chunk` its id, `reason` says why this
    section of it. `number` is the source's number in the answer. Both numbers are None for a page that is only offered.
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
    """The answer's links and what was removed from the model's text, block by block."""

    links: list[Link] = field(default_factory=list)
    removed: list[Removal] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Turn:
    """All that is known of one question on its way to an answer. Steps return changes; the runner merges them.

    `unsure`: no word of the user tells the language, so that it is a guess.
    `generation` is the pinned index (`app.index.protocols.Generation`), the same from start to end. `referred` is
    an earlier question that this one needs to be understood, `smalltalk` the reply where nothing was asked, which ends
    the run. `period` lifts pages of the time that was asked about, `recency` the newer ones where none was, `sections` those of the parts of the site that fit. `variants` and
    `hypothetical` are what other wordings and a made-up answer found, `more_keywords` the keywords of a second search.
    `evidence` (0..1) is how much of what the question says the best passage has, `evidence_needed` what it must have;
    `related` are hits too weak to answer from, `choices` hits of different readings of the question, `condensed`
    shorter texts of the hits by the ids of their chunks, where not their own stay.
    Two things are shared and grow: `calls`, written by whoever calls a language model, and `citing`, written while the
    events are read; it is None where no trace was asked for.
    """

    request: Request
    generation: Any = None
    question: str = ""
    language: str = ""
    unsure: bool = False
    referred: str = ""
    smalltalk: str = ""
    period: Boost | None = None
    recency: Recency | None = None
    sections: Boost | None = None
    refined: str = ""
    keywords: Mapping[str, str] = field(default_factory=dict)
    vector: Vector | None = None
    legs: Legs | None = None
    variants: Legs | None = None
    hypothetical: Legs | None = None
    search: Query | None = None
    hits: tuple[Hit, ...] = ()
    choices: tuple[Hit, ...] = ()
    condensed: Mapping[str, str] = field(default_factory=dict)
    evidence: float | None = None
    evidence_needed: float = 0.0
    more_keywords: Mapping[str, str] = field(default_factory=dict)
    related: tuple[Hit, ...] = ()
    events: Events | None = None
    trace: tuple[StepRecord, ...] = ()
    calls: Calls = field(default_factory=Calls)
    citing: CitingTrace | None = None

"""The trace of an answer, which an engineer reads to see how it was made. /openapi.json has these descriptions.

Times are in milliseconds from the beginning of the request.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar, Literal

from pydantic import ConfigDict, Field

from app.core.turn import Link, Message, Removal, Unsupported, Usage, Verbatim

DropReason = Literal[
    "filters", "version", "translation", "language", "per_page", "top_k", "rerank", "weak", "evidence", "overview",
    "step", "duplicate", "passage_budget",
]  # fmt: skip

COMPLETE = ConfigDict(json_schema_serialization_defaults_required=True)
"""The values are filled one after the other, so fields have defaults; responses have them all."""


@dataclass(slots=True)
class TraceCall:
    """A call to a model; filled while it runs."""

    __pydantic_config__: ClassVar[ConfigDict] = COMPLETE

    kind: Literal["chat", "embedding", "rerank"]
    model: str
    start: float = 0.0
    end: float = 0.0
    first_text: Annotated[
        float | None, Field(description="When the first text arrived; null if it wasn't streamed.")
    ] = None
    prompt_tokens: int = 0
    completion_tokens: int = 0
    error: str = ""
    temperature: float | None = None
    max_tokens: int | None = None
    messages: Annotated[Sequence[Message], Field(description="The prompt as it was sent; empty for other kinds.")] = ()
    texts: Annotated[
        Sequence[str], Field(description="What was embedded, or the question and passages to rerank.")
    ] = ()
    reply: Annotated[str, Field(description="The reply as it came, before anything was removed from it.")] = ""

    def add(self, usage: Usage) -> None:
        """Count these tokens, too."""
        self.prompt_tokens += usage.prompt_tokens
        self.completion_tokens += usage.completion_tokens


@dataclass(frozen=True, slots=True)
class TraceStep:
    """A step of the pipeline. `synthesize` and `cite` end with the last event, because they work while the answer is read."""

    step: str
    group: Annotated[int, Field(description="Steps of the same group run at the same time.")]
    start: float
    end: float
    input: Annotated[Mapping[str, Any], Field(description="The fields that it reads; long texts and lists are cut.")]
    output: Annotated[Mapping[str, Any], Field(description="The fields that it changes; long texts and lists are cut.")]
    calls: Sequence[TraceCall]
    error: str


@dataclass(frozen=True, slots=True)
class LegPlace:
    """The place of a chunk in one leg of a search."""

    chunk: str
    rank: Annotated[int, Field(description="From 1.")]
    score: Annotated[float, Field(description="Raw: BM25 of the words, or cosine of the vectors.")]


@dataclass(frozen=True, slots=True)
class TraceSearch:
    """One search in the index: for the question, its keywords, other wordings, or a hypothetical answer."""

    step: str
    start: float
    end: float
    texts: Annotated[Sequence[Mapping[str, Any]], Field(description="What the words were searched for, by language.")]
    vector: Annotated[bool, Field(description="Whether vectors were searched, too.")]
    words: Annotated[Sequence[LegPlace], Field(description="The candidates of the search by words, best first.")]
    vectors: Annotated[Sequence[LegPlace], Field(description="The candidates of the search by vectors, best first.")]


@dataclass(frozen=True, slots=True)
class TraceFusion:
    """Merging of both legs into one ranking."""

    fusion: str
    words_weight: Annotated[float, Field(description="As configured.")]
    vector_weight: Annotated[float, Field(description="As configured.")]
    words_weight_used: Annotated[float, Field(description="Moved towards the leg that decides more clearly.")]
    vector_weight_used: float
    other_language: Annotated[float, Field(description="Factor for chunks in another language than the question.")]
    language_offsets: Annotated[
        Mapping[str, float], Field(description="Subtracted from the cosines of chunks in these languages.")
    ]
    depth: Annotated[int, Field(description="Most candidates of each leg.")]
    top_k: int
    per_page: int
    filters: Annotated[Mapping[str, Sequence[str]], Field(description="Limits of the assistant, key and request.")]


@dataclass(frozen=True, slots=True)
class Dropped:
    """Reason why a candidate isn't in the answer's passages."""

    step: str
    reason: DropReason
    detail: Annotated[str, Field(description="The reason in words, with its numbers.")]


@dataclass(slots=True)
class TraceCandidate:
    """A chunk that a search found, with all that decided on it; filled while the steps are gone through."""

    __pydantic_config__: ClassVar[ConfigDict] = COMPLETE

    chunk: str
    url: str
    language: str
    title: str = ""
    section: str = ""
    found_by: Annotated[Sequence[str], Field(description="The steps whose searches found it.")] = ()
    words: Annotated[LegPlace | None, Field(description="Its place in the merged leg of the words.")] = None
    vectors: Annotated[LegPlace | None, Field(description="Its place in the merged leg of the vectors.")] = None
    words_share: Annotated[float, Field(description="What the words add to `fused`, with all factors.")] = 0.0
    vectors_share: Annotated[float, Field(description="What the vectors add to `fused`, with all factors.")] = 0.0
    language_factor: float = 1.0
    boost: Annotated[float, Field(description="Factor by date, address and collection.")] = 1.0
    fused: float | None = None
    rerank: float | None = None
    found_in: Annotated[
        str, Field(description="Language of the translation that the score comes from; else empty.")
    ] = ""
    place: Annotated[int | None, Field(description="Place among the hits at the end; null if it isn't one.")] = None
    passage: Annotated[int | None, Field(description="Number of the passage that has it; null if none has.")] = None
    dropped: Dropped | None = None


@dataclass(frozen=True, slots=True)
class TraceEvidence:
    """Share of the question that the best passage has, and the needed one (0 to 1)."""

    found: float
    needed: float
    enough: bool


@dataclass(frozen=True, slots=True)
class TracePassage:
    """A passage as the model read it. `text` begins with its number and headings."""

    number: int
    url: str
    title: str
    language: str
    chunks: Sequence[str]
    text: str


@dataclass(frozen=True, slots=True)
class TraceEnd:
    """End of the answer; `failure` is empty if it is complete."""

    finish_reason: str = ""
    extractive: bool = False
    refused: bool = False
    language: Annotated[str, Field(description="corrected, switched or wrong, if the language wasn't right.")] = ""
    failure: str = ""
    unsupported: Sequence[Unsupported] = ()
    ending: Annotated[str, Field(description="recited, unproven, looped or turned, if the rest was left out.")] = ""
    verbatim: Verbatim | None = None


@dataclass(frozen=True, slots=True)
class Trace:
    """Record of how an answer was made."""

    question: str
    language: str
    generation: int | None
    ms: float
    first_text: float | None
    steps: Sequence[TraceStep]
    searches: Sequence[TraceSearch]
    fusion: TraceFusion | None
    candidates: Annotated[Sequence[TraceCandidate], Field(description="All chunks that were found, best first.")]
    evidence: TraceEvidence | None
    passages: Sequence[TracePassage]
    links: Annotated[Sequence[Link], Field(description="Where each link of the answer leads, and why there.")]
    removed: Annotated[Sequence[Removal], Field(description="What was removed from the model's text, and why.")]
    end: TraceEnd
    problem: Annotated[str, Field(description="Why a part of the trace is missing; else empty.")] = ""

"""Bodies of responses. The routes build these dictionaries, mypy checks them, and they are the response models of FastAPI."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired

from pydantic import Field
from typing_extensions import TypedDict  # pydantic needs this one before Python 3.12

from app.assistants.health import PartState
from app.core.trace import Trace
from app.core.turn import FinishReason, Source, Unsupported, Verbatim
from app.text.query_highlight import Piece


class UsageObject(TypedDict):
    """Tokens of all language model calls for this answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(TypedDict):
    """The answer: Markdown with a list of links to the sections that it uses."""

    role: Literal["assistant"]
    content: str


class Choice(TypedDict):
    """The only answer."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: FinishReason


Sources = Annotated[Sequence[Source], Field(description="The sections that the text links to; may be empty.")]


class OwnFields(TypedDict, total=False):
    """Fields of an answer that OpenAI's API doesn't have, as far as they say something."""

    extractive: Annotated[Literal[True], Field(description="Only if no language model wrote the answer.")]
    refused: Annotated[Literal[True], Field(description="Only if the answer says that the documentation has none.")]
    unsupported: Annotated[
        Sequence[Unsupported], Field(description="What no passage proves of the text; only if there is something.")
    ]
    verbatim: Annotated[Verbatim, Field(description="How much of it is copied from its pages; not of a refusal.")]
    follow_ups: Annotated[
        Sequence[str], Field(description="Up to three questions that the index answers, too; only if there is one.")
    ]
    trace: Annotated[Trace, Field(description="How the answer was made; only if requested with an admin key.")]


class ChatCompletion(OwnFields):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: UsageObject
    sources: Sources


class Delta(TypedDict):
    """The new part of the answer in a chunk."""

    role: NotRequired[Literal["assistant"]]
    content: NotRequired[str]


class ChunkChoice(TypedDict):
    """A piece of the only answer."""

    index: Literal[0]
    delta: Delta
    finish_reason: FinishReason | None


class ChatCompletionChunk(OwnFields):
    """One `data:` line of a stream. The last line is `data: [DONE]`; lines beginning with a colon are comments.

    `sources` and what OpenAI's API doesn't have are in the chunk with the finish_reason.
    """

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: Annotated[list[ChunkChoice], Field(description="Empty in the chunk that has the usage.")]
    usage: NotRequired[
        Annotated[UsageObject | None, Field(description="Only if requested; null except in the last chunk.")]
    ]
    sources: NotRequired[Sources]
    event: NotRequired[Annotated[Mapping[str, Any], Field(description="Only for Open WebUI.")]]


class Scores(TypedDict):
    """Scores of a passage in each search; null if that search didn't find it."""

    lexical: Annotated[float | None, Field(description="BM25.")]
    vector: Annotated[float | None, Field(description="Cosine, -1 to 1.")]
    fused: Annotated[float, Field(description="0 to 1, relative to the other passages; higher if boosted.")]
    rerank: Annotated[float | None, Field(description="0 to 1; decides the order. Null without a reranker.")]


class Highlights(TypedDict):
    """Plain text with the words of the query marked."""

    breadcrumbs: Annotated[Sequence[Sequence[Piece]], Field(description="Each of the breadcrumbs in pieces.")]
    excerpt: Annotated[Sequence[Piece], Field(description="About 200 characters of the section, around the words.")]


class Facets(TypedDict):
    """Values of `filters` that find something in this index."""

    collections: list[str]
    languages: list[str]


class Passage(TypedDict):
    """A passage of a page. `number`, `title`, `url`, `section`, `language` and `score` are as in the sources of an answer."""

    object: Literal["passage"]
    id: str
    number: int
    title: str
    url: str
    section: str
    breadcrumbs: Annotated[Sequence[str], Field(description="Title of the page and headings down to the section.")]
    language: str
    versions: Annotated[Sequence[str], Field(description="Versions that the page states, else the one in its address.")]
    score: float
    translated_from: str
    headings: Annotated[Sequence[str], Field(description="Headings of its first section, outermost first.")]
    collection: str
    published: Annotated[str, Field(description="ISO 8601, or empty.")]
    modified: Annotated[str, Field(description="ISO 8601, or empty.")]
    text: Annotated[str, Field(description="Markdown.")]
    highlights: Highlights
    scores: Scores


class SearchResult(TypedDict):
    """Passages, best first."""

    object: Literal["list"]
    model: str
    query: Annotated[str, Field(description="The query as it was searched, with mistyped words corrected.")]
    language: Annotated[str, Field(description="Detected language of the query.")]
    generation: Annotated[int, Field(description="Generation of the index that was searched.")]
    facets: Facets
    data: list[Passage]


class SuggestionObject(TypedDict):
    """A suggested question; `title` is its two-line form in Open WebUI."""

    title: list[str]
    content: str


class ModelMeta(TypedDict):
    """Metadata and capabilities of a model for Open WebUI."""

    description: str
    suggestion_prompts: list[SuggestionObject]
    capabilities: Mapping[str, bool]


class ModelInfo(TypedDict):
    """Details of a model for Open WebUI."""

    meta: ModelMeta


class ModelObject(TypedDict):
    """An assistant as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    name: Annotated[str, Field(description="Friendly name.")]
    description: str
    info: ModelInfo


class ModelList(TypedDict):
    """All listed assistants."""

    object: Literal["list"]
    data: list[ModelObject]


class IndexState(TypedDict):
    """The live generation of the index."""

    generation: int
    built_at: str
    age_seconds: int | None
    pages: int
    chunks: int
    languages: Sequence[str]
    embedder: str


class LiveBody(TypedDict):
    """The process answers."""

    status: Literal["ok"]


class ReadyBody(TypedDict):
    """Readiness for questions. Without a valid API key, the body contains the status only."""

    status: Literal["ok", "unavailable"]
    problem: NotRequired[Annotated[str, Field(description="What is missing; empty if nothing is.")]]


class HealthBody(TypedDict):
    """Ability to answer questions. Without a valid API key, the body contains the status only."""

    status: Annotated[
        Literal["ok", "degraded", "unavailable"],
        Field(description="`degraded` if a part fails, so that answers are extractive or worse."),
    ]
    store: NotRequired[str]
    index: NotRequired[IndexState | None]
    model: NotRequired[str]
    embedder: NotRequired[str]
    parts: NotRequired[
        Annotated[
            Mapping[str, PartState | None],
            Field(
                description="By kind: model, embedder, reranker and store, null if none is configured; limits with Redis."
            ),
        ]
    ]
    details: NotRequired[Mapping[str, Any]]


class IngestRun(TypedDict):
    """An ingestion run. `done` means that the index was published, even if some pages failed."""

    object: Literal["ingest.run"]
    id: str
    state: Literal["queued", "running", "done", "failed"]
    sites: list[str]
    by: Annotated[str, Field(description="Who started it: the admin key, and the address.")]
    queued_at: str
    started_at: str | None
    finished_at: str | None
    exit_code: Annotated[int | None, Field(description="0, or 2 if the index was published but pages failed.")]
    progress: Annotated[str, Field(description="The last line of output of the run.")]
    stage: Annotated[str, Field(description="What the run does now; empty before it begins.")]
    done: Annotated[int | None, Field(description="How much of the stage is done, such as pages; null if unknown.")]
    total: Annotated[int | None, Field(description="How much there is in the stage; null if unknown.")]
    error: Annotated[str, Field(description="The reason of a failure; else empty.")]
    counts: Annotated[Mapping[str, int] | None, Field(description="Number of pages by outcome; null until the end.")]
    report: NotRequired[Annotated[Mapping[str, Any] | None, Field(description="As of `ingest --json`; not in lists.")]]


class IngestRunList(TypedDict):
    """The last runs, newest first."""

    object: Literal["list"]
    data: list[IngestRun]

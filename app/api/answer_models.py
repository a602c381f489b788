"""Models of response bodies, only for /openapi.json; the routes write the bodies directly."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class ErrorObject(BaseModel):
    """The error, for people (`message`) and for programs (`code`)."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None = Field(description="The invalid field of the request, for example messages[0].content.")
    code: str | None


class ErrorBody(BaseModel):
    """An error in the form of the OpenAI API."""

    error: ErrorObject


class UsageObject(BaseModel):
    """Tokens of all language model calls for this answer."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(BaseModel):
    """The answer: Markdown with a list of links to the sections that it uses."""

    role: Literal["assistant"]
    content: str


class Choice(BaseModel):
    """The only answer."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: Literal["stop", "length"]


class SourceObject(BaseModel):
    """A section that the answer cites; `number` is the [n] in the text."""

    number: int
    title: str = Field(description="Title of the page.")
    url: str = Field(description="Address of the section if its anchor is known, else of the page.")
    section: str = Field(description="The section's heading; empty at the start of a page.")
    language: str
    snippet: str = Field(description="Beginning of the section, about 300 characters.")
    score: float = Field(description="0 to 1, relative to the other passages of this answer.")
    translated_from: str = Field(description="Language of the page if the answer uses a translation of it; else empty.")


class ChatCompletion(BaseModel):
    """A complete answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: UsageObject
    sources: list[SourceObject] = Field(description="The sections that the text links to; may be empty.")
    extractive: bool | None = Field(
        None, description="True if the answer was written without a language model; else absent."
    )
    trace: list[dict[str, Any]] | None = Field(None, description="Step-by-step trace if requested; else absent.")


class Delta(BaseModel):
    """The new part of the answer in a chunk."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(BaseModel):
    """A piece of the only answer."""

    index: Literal[0]
    delta: Delta
    finish_reason: Literal["stop", "length"] | None


class ChatCompletionChunk(BaseModel):
    """One `data:` line of a stream. The last line is `data: [DONE]`; lines beginning with a colon are comments."""

    id: str
    object: Literal["chat.completion.chunk"]
    created: int
    model: str
    choices: list[ChunkChoice] = Field(description="Empty in the chunk that has the usage.")
    usage: UsageObject | None = Field(
        None, description="Only with stream_options.include_usage; null except in the last chunk."
    )
    sources: list[SourceObject] | None = Field(
        None, description="As in a whole answer; in the chunk with the finish_reason."
    )
    extractive: bool | None = Field(None, description="As in a whole answer; in the chunk with the finish_reason.")
    event: dict[str, Any] | None = Field(None, description="A source or a status line; only for Open WebUI.")
    trace: list[dict[str, Any]] | None = Field(
        None, description="As in a whole answer; in the chunk with the finish_reason."
    )


class Scores(BaseModel):
    """Scores of a passage in each search; null if that search didn't find it."""

    lexical: float | None = Field(description="BM25.")
    vector: float | None = Field(description="Cosine, -1 to 1.")
    fused: float = Field(
        description="0 to 1, relative to the other passages of this search; may be higher if a step boosts pages."
    )
    rerank: float | None = Field(
        description="0 to 1 if the assistant reranks, which then determines the order; else null."
    )


class Passage(BaseModel):
    """A passage of a page. `number`, `title`, `url`, `section`, `language` and `score` are as in the sources of an answer."""

    object: Literal["passage"]
    id: str
    number: int
    title: str
    url: str
    section: str
    language: str
    score: float
    translated_from: str
    headings: list[str] = Field(description="Headings of the first section of the passage, outermost first.")
    collection: str
    published: str = Field(description="ISO 8601, or empty.")
    modified: str = Field(description="ISO 8601, or empty.")
    text: str = Field(description="Markdown.")
    scores: Scores


class SearchResult(BaseModel):
    """Passages, best first."""

    object: Literal["list"]
    model: str
    language: str = Field(description="Detected language of the query.")
    generation: int = Field(description="Generation of the index that was searched.")
    data: list[Passage]


class SuggestionObject(BaseModel):
    """A suggested question; `title` is its two-line form in Open WebUI."""

    title: list[str]
    content: str


class ModelMeta(BaseModel):
    """Metadata and capabilities of a model for Open WebUI."""

    description: str
    suggestion_prompts: list[SuggestionObject]
    capabilities: dict[str, bool]


class ModelInfo(BaseModel):
    """Details of a model for Open WebUI."""

    meta: ModelMeta


class ModelObject(BaseModel):
    """An assistant as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str
    name: str = Field(description="Friendly name.")
    description: str
    info: ModelInfo


class ModelList(BaseModel):
    """All listed assistants."""

    object: Literal["list"]
    data: list[ModelObject]


class IndexState(BaseModel):
    """The live generation of the index."""

    generation: int
    built_at: str
    age_seconds: int | None
    pages: int
    chunks: int
    languages: list[str]
    embedder: str


class HealthBody(BaseModel):
    """Whether questions can be answered. Without a valid API key, the body contains the status only."""

    status: Literal["ok", "unavailable"]
    store: str = ""
    index: IndexState | None = None
    model: str = ""
    embedder: str = ""
    details: dict[str, object] = {}


class IngestRun(BaseModel):
    """An ingestion run. `done` means that the index was published, even if some pages failed."""

    object: Literal["ingest.run"]
    id: str
    state: Literal["queued", "running", "done", "failed"]
    sites: list[str]
    by: str = Field(description="Who started it: number of the admin key, and address.")
    queued_at: str
    started_at: str | None
    finished_at: str | None
    exit_code: int | None = Field(
        description="Exit code of the command: 0, or 2 if the index was published but pages failed."
    )
    progress: str = Field(description="The last line of output of the run.")
    error: str = Field(description="The reason of a failure; else empty.")
    counts: dict[str, int] | None = Field(description="Number of pages by outcome; null until there is a report.")


class IngestRunReport(IngestRun):
    """A run with its report."""

    report: dict[str, Any] | None = Field(
        description="The report in the form of `docs-assistant ingest --json`; null until the run ends."
    )


class IngestRunList(BaseModel):
    """The last runs, newest first."""

    object: Literal["list"]
    data: list[IngestRun]

"""What clients get, as models: they describe the API in /openapi.json; answers themselves are written by hand."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, Field


class ErrorObject(BaseModel):
    """What went wrong, for people (`message`) and for programs (`code`)."""

    message: str
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None = Field(description="The field of the request that is wrong, as messages[0].content.")
    code: str | None


class ErrorBody(BaseModel):
    """An error as the OpenAI API writes it."""

    error: ErrorObject


class UsageObject(BaseModel):
    """Tokens of all calls to language models that the answer took."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class AnswerMessage(BaseModel):
    """The answer, Markdown with a list of links to the sections it was made from."""

    role: Literal["assistant"]
    content: str


class Choice(BaseModel):
    """The one answer."""

    index: Literal[0]
    message: AnswerMessage
    finish_reason: Literal["stop", "length"]


class SourceObject(BaseModel):
    """A section that the answer used; `number` is the [n] of the text."""

    number: int
    title: str = Field(description="Of the page.")
    url: str = Field(description="Of the section, where its anchor is known.")
    section: str = Field(description="The section's heading; empty at the start of a page.")
    language: str
    snippet: str = Field(description="How the section in the passage begins, about 300 characters.")
    score: float = Field(description="0 to 1, relative to the other passages of this answer.")
    translated_from: str = Field(description="Language of the page where the answer read a translation; else empty.")


class ChatCompletion(BaseModel):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Choice]
    usage: UsageObject
    sources: list[SourceObject] = Field(description="The sections that the text links to; empty when it links to none.")
    extractive: bool | None = Field(None, description="True where no language model wrote the answer; else absent.")
    trace: list[dict[str, Any]] | None = Field(None, description="Step by step, where it was asked for; else absent.")


class Delta(BaseModel):
    """What a chunk adds."""

    role: Literal["assistant"] | None = None
    content: str | None = None


class ChunkChoice(BaseModel):
    """A piece of the one answer."""

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
    usage: UsageObject | None = Field(None, description="Only with stream_options.include_usage; null but in the last.")
    sources: list[SourceObject] | None = Field(
        None, description="As in a whole answer; in the chunk with the finish_reason."
    )
    extractive: bool | None = Field(None, description="As in a whole answer; in the chunk with the finish_reason.")
    event: dict[str, Any] | None = Field(None, description="A source or a status line, for Open WebUI only.")
    trace: list[dict[str, Any]] | None = Field(
        None, description="As in a whole answer; in the chunk with the finish_reason."
    )


class Scores(BaseModel):
    """Of a passage, as each search gave them; null where one didn't bring it."""

    lexical: float | None = Field(description="BM25.")
    vector: float | None = Field(description="Cosine, -1 to 1.")
    fused: float = Field(
        description="0 to 1, relative to the other passages of this search; more where a step lifts pages."
    )
    rerank: float | None = Field(description="0 to 1, where the assistant's steps rerank: then it is the order.")


class Passage(BaseModel):
    """A found piece of a page. `number`, `title`, `url`, `section`, `language`, `score` as in the sources of an answer."""

    object: Literal["passage"]
    id: str
    number: int
    title: str
    url: str
    section: str
    language: str
    score: float
    translated_from: str
    headings: list[str] = Field(description="Of the passage's first section, outermost first.")
    collection: str
    published: str = Field(description="ISO 8601, or empty.")
    modified: str = Field(description="ISO 8601, or empty.")
    text: str = Field(description="Markdown.")
    scores: Scores


class SearchResult(BaseModel):
    """Passages, best first."""

    object: Literal["list"]
    model: str
    language: str = Field(description="Of the query, as it was recognised.")
    generation: int = Field(description="State of the index that was searched.")
    data: list[Passage]


class SuggestionObject(BaseModel):
    """A first question; the title is how Open WebUI shows it, in two lines."""

    title: list[str]
    content: str


class ModelMeta(BaseModel):
    """What Open WebUI shows of a model and offers with it."""

    description: str
    suggestion_prompts: list[SuggestionObject]
    capabilities: dict[str, bool]


class ModelInfo(BaseModel):
    """What Open WebUI reads of a model."""

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
    """All assistants that are shown."""

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
    """Whether questions can be answered; all but the status is for those who may ask them."""

    status: Literal["ok", "unavailable"]
    store: str = ""
    index: IndexState | None = None
    model: str = ""
    embedder: str = ""
    details: dict[str, object] = {}


class IngestRun(BaseModel):
    """A run of ingestion. `done` means that the index was published, even where single pages failed."""

    object: Literal["ingest.run"]
    id: str
    state: Literal["queued", "running", "done", "failed"]
    sites: list[str]
    by: str = Field(description="Who asked for it: number of the admin key, and address.")
    queued_at: str
    started_at: str | None
    finished_at: str | None
    exit_code: int | None = Field(description="Of the command: 0, or 2 where the index was published but pages failed.")
    progress: str = Field(description="The last line that the run wrote.")
    error: str = Field(description="Why it failed; else empty.")
    counts: dict[str, int] | None = Field(description="Pages by what became of them, once there is a report.")


class IngestRunReport(IngestRun):
    """A run with its report."""

    report: dict[str, Any] | None = Field(description="As `docs-assistant ingest --json` prints it; null until then.")


class IngestRunList(BaseModel):
    """The last runs, newest first."""

    object: Literal["list"]
    data: list[IngestRun]

"""Bodies of the responses of /v1/admin."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field
from typing_extensions import TypedDict

from app.assistants.health import PartState
from app.core.generation import Recipe
from app.core.types import Section
from app.routes.admin.queries import PageAge, PageState
from app.routes.answer_models import IngestRun

Time = Annotated[str, Field(description="ISO 8601 in UTC, or empty.")]
IndexName = Annotated[str, Field(description="Empty for that of DOCS_STORE.")]
Counts = Mapping[str, int]


class SourceBody(TypedDict):
    """A source that the generation was made from."""

    url: str
    collection: str
    options: Annotated[Mapping[str, Any], Field(description="Its settings that aren't the default, without secrets.")]
    roots: Annotated[Sequence[str], Field(description="Values of `source` of its pages.")]
    unreadable: Annotated[str, Field(description="Why a run can't read it again from this record; else empty.")]
    demo: Annotated[bool, Field(description="True for the documentation of this product.")]


class GenerationBody(TypedDict):
    """A kept state of the index."""

    id: int
    live: bool
    built_at: str
    age_s: float | None
    languages: Sequence[str]
    pages: int
    chunks: int
    recipe: Recipe
    sources: list[SourceBody]


class OfIndex(TypedDict):
    """The generation of the index that was looked at."""

    index: IndexName
    generation: int


class GenerationList(TypedDict):
    """The kept generations, newest first."""

    object: Literal["list"]
    index: IndexName
    data: list[GenerationBody]


class RollbackBody(TypedDict):
    """The generation that is live now."""

    object: Literal["rollback"]
    index: IndexName
    live: GenerationBody
    dropped: Annotated[int, Field(description="The generation that was live before.")]


class ProblemBody(TypedDict):
    """Something that an operator should look at."""

    code: str
    severity: Annotated[
        Literal["error", "warning", "info"], Field(description="`error` if questions can't be answered.")
    ]
    index: Annotated[str | None, Field(description="Name of the index that it is about; null for the whole service.")]
    message: str
    to_do: str


class RunHistoryBody(TypedDict):
    """The runs that wrote to this index, in any process."""

    counts: Annotated[Counts, Field(description="Number of runs by result: published, partial, unpublished, failed.")]
    ended: Annotated[Mapping[str, str], Field(description="When the last run with this result ended.")]
    last: Annotated[str, Field(description="Result of the last run; empty without any.")]
    seconds: Annotated[float, Field(description="Duration of the last run.")]


class EndedRunBody(TypedDict):
    """A run that wrote to this index, in any process, or tried to."""

    id: Annotated[
        str, Field(description="Of `/v1/ingest/ID`, if this service started it and still knows it; else empty.")
    ]
    trigger: Annotated[
        str, Field(description="What started it: command, nightly, http, start, or a word of --trigger.")
    ]
    by: str
    began_at: str
    seconds: float
    result: str
    counts: Annotated[Counts, Field(description="Number of pages by outcome; empty if the run didn't get so far.")]
    generation: Annotated[int | None, Field(description="What it published; null if nothing changed.")]
    errors: Annotated[Sequence[str], Field(description="The first of them.")]
    failed_sources: Annotated[
        Sequence[str], Field(description="Sites that it couldn't read, each with the reason; `errors` has them, too.")
    ]


class ReadingRun(TypedDict):
    """A run of another process that is reading pages now."""

    trigger: str
    began_at: str
    done: int
    total: int
    minutes: Annotated[int, Field(description="About how many are left.")]


class RunList(TypedDict):
    """The last runs of an index, the newest first, and the one under way."""

    object: Literal["list"]
    index: IndexName
    current: Annotated[IngestRun | None, Field(description="The one that this service has started.")]
    reading: Annotated[ReadingRun | None, Field(description="Known for an index in a directory.")]
    data: list[EndedRunBody]


class IndexBody(TypedDict):
    """An index that assistants answer from."""

    name: IndexName
    ok: bool
    embedder: str
    generation: GenerationBody | None
    pages_by_language: Counts
    pages_by_collection: Counts
    pages_by_source: Counts
    pages_by_state: Counts
    runs: RunHistoryBody


class SitesBody(TypedDict):
    """Sites that `POST /v1/ingest` may read, with passwords masked."""

    configured: Annotated[list[str], Field(description="Of DOCS_SITES and DOCS_SOURCES.")]
    indexed: Annotated[list[str], Field(description="Recorded with the live generation, and not configured.")]


class AdminIndexBody(TypedDict):
    """The state of the service and its indexes."""

    object: Literal["admin.index"]
    state: Literal["ok", "attention", "broken"]
    problems: list[ProblemBody]
    version: str
    model: str | None
    parts: Mapping[str, PartState | None]
    sites: SitesBody
    indexes: list[IndexBody]


class PageRow(TypedDict):
    """A page in a list."""

    url: str
    title: str
    language: str
    collection: str
    source: str
    state: PageState
    age: PageAge
    chunks: int
    status: Annotated[int, Field(description="HTTP status of the last fetch.")]
    published: Time
    modified: Time
    last_ok: Time
    stale_since: Time


class PageList(OfIndex):
    """Pages of the live generation."""

    object: Literal["list"]
    pages: Annotated[int, Field(description="Number of all pages.")]
    total: Annotated[int, Field(description="Number of pages that match.")]
    counts: Annotated[
        Mapping[str, Counts],
        Field(
            description="For source, collection, language, state and age: pages by value that match all other filters."
        ),
    ]
    data: list[PageRow]
    next: Annotated[str | None, Field(description="Address of the next pages; null at the end.")]


class ChunkBody(TypedDict):
    """A chunk of a page. `start` is where its text begins in the page's Markdown, null if that isn't known."""

    id: str
    position: Annotated[int, Field(description="In its page, from 0.")]
    language: str
    translated_from: str
    link: str
    text: str
    sections: Sequence[Section]
    questions: Annotated[Sequence[Sequence[str]], Field(description="Pairs of a language and questions.")]
    start: int | None


class PageBody(OfIndex):
    """A page with its Markdown and chunks."""

    object: Literal["page"]
    page: PageRow
    record: Annotated[Mapping[str, Any], Field(description="All that is known about the page, without its Markdown.")]
    markdown: str
    chunks: list[ChunkBody]


class OneChunkBody(OfIndex):
    """A chunk as it is searched."""

    object: Literal["chunk"]
    chunk: ChunkBody
    embedded_text: Annotated[str, Field(description="The context and the text, which are embedded in stretches.")]
    tokens: Annotated[Sequence[str], Field(description="What the lexical search finds it by.")]
    page: PageRow
    chunks_of_page: Sequence[str]


class Neighbour(TypedDict):
    """A chunk that is near to another one."""

    id: str
    url: str
    title: str
    path: Sequence[str]
    language: str
    collection: str
    begins: str
    cosine: float
    overlap: Annotated[float, Field(description="Share of the words of both that both have, 0 to 1.")]
    near_duplicate: bool


class NeighbourList(OfIndex):
    """The nearest chunks by the vectors of their texts, nearest first; none if the chunk has no vector."""

    object: Literal["list"]
    chunk: str
    data: list[Neighbour]


SettingBody = TypedDict(
    "SettingBody", {"name": str, "key": str, "value": Any, "from": str, "default": Any, "description": str}
)
"""A setting; secrets are shown as (set)."""


class SettingList(TypedDict):
    """All settings in force."""

    object: Literal["list"]
    data: list[SettingBody]


@dataclass(slots=True)
class RecentProblem:
    """A message of the log. `count` says how often it came, up to its numbers; the other fields are of the last time.

    Of an unexpected error, only its kind and place are kept: its text may hold what a reader wrote.
    """

    level: str
    logger: str
    message: str
    exception: Annotated[str, Field(description="Kind and place of an unexpected error; else empty.")]
    request_id: str
    first_at: str
    last_at: str
    count: int = 1


class ErrorList(TypedDict):
    """The last warnings and errors of this process, the latest first."""

    object: Literal["list"]
    data: Sequence[RecentProblem]


class QuestionObject(TypedDict):
    """A question that was added to the question set."""

    object: Literal["question"]
    file: Annotated[str, Field(description="The file in the directory `question-sets`.")]
    row: Annotated[Mapping[str, Any], Field(description="The line of the file, as docs-assistant eval reads it.")]


class PromptObject(TypedDict):
    """A prompt in one language."""

    object: Literal["prompt"]
    file: Annotated[str, Field(description="Such as en/synthesize.md.")]
    text: str
    changed: Annotated[bool, Field(description="Whether it differs from that of the package.")]


class PromptList(TypedDict):
    """All prompts in force."""

    object: Literal["list"]
    data: list[PromptObject]


class ViewBody(TypedDict):
    """A view of /admin that a plugin has."""

    path: str
    titles: Annotated[Mapping[str, str], Field(description="By language.")]
    script: Annotated[str, Field(description="Address of its script; empty for a view of the pages themselves.")]


class ViewList(TypedDict):
    """The views of plugins."""

    object: Literal["list"]
    data: list[ViewBody]

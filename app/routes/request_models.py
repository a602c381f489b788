"""Bodies of requests: what clients may send to ask, search, index and roll back."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from app.core.types import Filters
from app.http.bodies import MAX_INT, ExactModel, Name, Names, Place, Places, RequestModel
from app.pipeline.recording import Overrides

MAX_QUESTION = 20_000
"""Characters of a question."""

LANGUAGE_SAID = "Language of the user, for questions that show none; takes precedence over Accept-Language."
Language = Annotated[Name | None, Field(description=LANGUAGE_SAID, examples=["cs"])]
PageAddress = Annotated[
    str | None,
    Field(
        max_length=2000,
        pattern=r"^(https?://[^\s/]+(/\S*)?)?$",
        description="Address of the page that the reader looks at: pages near it rank a little higher.",
        examples=["https://docs.example.org/guide/volumes"],
    ),
]


def _token_count(value: object) -> object:
    if isinstance(value, float) and value.is_integer():  # of clients whose language has one kind of number
        value = int(value)
    return None if value == -1 else value  # llama.cpp's word for no limit


TokenCount = Annotated[Annotated[int, Field(ge=1, le=MAX_INT)] | None, BeforeValidator(_token_count)]
"""The length of an answer; -1 is none, 256.0 is 256."""


class MessagePart(RequestModel):
    """A part of a message. Images, audio and files are an error in the question and replaced by a placeholder before it."""

    type: str
    text: str | None = None
    refusal: str | None = None


class ContentPart(MessagePart):
    """A part of a message of the chat API."""

    type: Literal["text", "refusal", "image_url", "input_audio", "file"]


class ChatMessage(RequestModel):
    """One message of the conversation. `developer` means `system`; messages of tools are skipped."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(RequestModel):
    """Options of a stream."""

    include_usage: bool | None = Field(None, description="Send the token counts in a chunk of their own at the end.")


class ResponseFormat(RequestModel):
    """Answers are Markdown with links; JSON is not supported."""

    type: Literal["text"]


class SearchFilters(ExactModel):
    """Restricts which pages may be found. A missing or empty field doesn't restrict; an unknown field is an error."""

    collections: Names = Field(default=[], description="Collections that pages are indexed in.")
    languages: Names = Field(default=[], description="Languages of pages.", examples=[["en"]])
    url_prefixes: Places = Field(default=[], description="Prefixes of addresses, for example the address of a site.")
    sections: Places = Field(
        default=[], description="Paths on any site, including everything below them.", examples=[["/docs/storage"]]
    )
    versions: Names = Field(
        default=[], description="Versions found in addresses or stated by pages.", examples=[["1.2"]]
    )

    @property
    def filters(self) -> Filters:
        """The filters in the form that the index uses."""
        return Filters(**{name: tuple(values) for name, values in self})


class OverridesBody(ExactModel):
    """Other settings and prompts for this answer alone; an unknown field is an error."""

    top_k: int | None = Field(None, ge=1, le=50, description="As DOCS_TOP_K.")
    per_page: int | None = Field(None, ge=1, le=50, description="As DOCS_TUNING__PER_PAGE.")
    vector_weight: float | None = Field(
        None, ge=0, le=1, description="As DOCS_TUNING__VECTOR_WEIGHT, for every language."
    )
    fusion: Literal["weighted", "rrf"] | None = Field(None, description="As DOCS_TUNING__FUSION.")
    min_evidence: float | None = Field(None, ge=0, le=1, description="As DOCS_MIN_EVIDENCE.")
    temperature: float | None = Field(None, ge=0, le=2, description="As DOCS_TUNING__TEMPERATURE.")
    prompts: dict[Name, Annotated[str, Field(max_length=100_000)]] | Name = Field(
        default_factory=dict,
        description="Texts by file, for every language or one; or `shipped`, for the prompts of the package.",
        examples=[{"en/synthesize.md": "Answer from these passages:\n\n$passages"}],
    )

    @property
    def overrides(self) -> Overrides:
        """The overrides in the form that assistants use."""
        given = {name: value for name, value in self if value is not None and name != "prompts"}
        if self.vector_weight is not None:
            given["vector_weight"] = {"*": self.vector_weight}
        return Overrides(given, self.prompts)


class ConversationReference(RequestModel):
    """A conversation, as OpenAI's API also writes it."""

    id: Name


class AnswerRequest(RequestModel):
    """The fields of a question that all APIs have."""

    model: Name = Field(description="Name of an assistant, as /v1/models lists them.", examples=["docs-assistant"])
    stream: bool | None = Field(default=False, description="Send the answer as it is written.")
    temperature: float | None = Field(None, ge=0, le=2)
    filters: SearchFilters = Field(default_factory=SearchFilters, description="The answer is from these pages only.")
    language: Language = None
    persona: Name | None = Field(
        None,
        description="Name of a persona, which sets the tone of the answer; takes precedence over one in `model`.",
        examples=["kids"],
    )
    page: PageAddress = None
    conversation: Name | ConversationReference | None = Field(
        None, description="Id of a conversation of /v1/conversations, which this question and its answer join."
    )
    store: bool | None = Field(None, description="With false, the question and the answer aren't kept.")

    @property
    def conversation_id(self) -> str:
        """The id of its conversation; empty without one."""
        given = self.conversation
        return given.id if isinstance(given, ConversationReference) else given or ""


class ChatRequest(AnswerRequest):
    """A chat request. The last message of the user is the question; unknown fields are ignored."""

    messages: list[ChatMessage] = Field(
        min_length=1, examples=[[{"role": "user", "content": "How do I create a volume?"}]]
    )
    stream_options: StreamOptions | None = None
    n: int | None = Field(None, ge=1, le=1, description="Only 1 is supported.")
    max_tokens: TokenCount = Field(None, description="Longest answer, in tokens; -1 is no limit.")
    max_completion_tokens: TokenCount = Field(None, description="Newer name of `max_tokens`; takes precedence over it.")
    stop: Name | list[Name] | None = Field(None, description="Texts that end the answer; at most four.")
    seed: int | None = Field(None, ge=-(2**63), le=2**63 - 1)
    response_format: ResponseFormat | None = None
    modalities: list[Literal["text"]] | None = Field(None, description="Answers are text.")
    tools: Any = Field(None, description="Accepted and ignored, like every unknown field.")
    events: bool | None = Field(
        None,
        description="Stream status lines as events, as Open WebUI gets them. Sources are in the last chunk; the text has no list of them.",
    )
    trace: bool | None = Field(None, description="Include a trace of the answer; requires an admin key.")
    overrides: OverridesBody | None = Field(
        None, description="Other settings and prompts for this answer alone; requires an admin key."
    )

    @property
    def include_usage(self) -> bool:
        """True if the stream must end with a chunk of token counts."""
        return bool(self.stream_options and self.stream_options.include_usage)


class SearchRequest(ExactModel):
    """A search request. Unknown fields are an error, because ignoring one would return unwanted passages."""

    query: str = Field(examples=["How do I create a volume?"])
    model: Name = Field(default="", description="Assistant whose pages are searched; the first assistant by default.")
    limit: int | None = Field(None, ge=1, le=50, description="Number of passages; DOCS_TOP_K by default.")
    filters: SearchFilters = Field(default_factory=SearchFilters)
    language: Language = None
    page: PageAddress = None
    as_you_type: bool = Field(
        default=False,
        description="The query is being typed: its last word may be incomplete, rows are sections, and the client's language decides.",
    )


class QuestionRequest(ExactModel):
    """A question for the question set; an unknown field is an error."""

    question: str = Field(min_length=1, max_length=2000, examples=["How do I create a volume?"])
    language: Name = Field(min_length=1, description="Language of the question.", examples=["en"])
    answerable: bool = Field(default=True, description="False if the documentation has no answer; then without pages.")
    pages: list[Place] = Field(
        [], max_length=20, description="Addresses of pages or sections that answer it, best first."
    )
    evidence: str | None = Field(None, max_length=2000, description="The sentence of the first page that proves it.")
    answer: str | None = Field(None, max_length=2000, description="The right answer in short.")
    model: Name = Field(default="", description="Assistant whose index has the pages; the first one by default.")


class IngestRequest(ExactModel):
    """Sites to index again. Unknown fields are an error, because ignoring one would index everything."""

    sites: list[str] | None = Field(
        None,
        min_length=1,
        description="Sites to index, as written in DOCS_SITES and DOCS_SOURCES or recorded with the index; by default all of "
        "the settings, or without any those of the index.",
        examples=[["https://docs.example.org/sitemap.xml"]],
    )
    collections: list[Annotated[Name, Field(min_length=1)]] | None = Field(
        None, min_length=1, description="Only the sources of these collections.", examples=[["handbook"]]
    )
    force: bool = Field(
        default=False, description="Publish even if so much of a site is missing that the site seems to be broken."
    )


class RollbackRequest(ExactModel):
    """Generation that becomes live again. Unknown fields are an error."""

    index: Name | None = Field(
        None, description="Name of an [[index]], empty for that of DOCS_STORE; the first assistant's by default."
    )
    generation: int = Field(
        description="The generation before the live one. Another number is an error, so that a request sent twice goes back once."
    )

"""All settings in one frozen object, read from the environment, `.env` and docs-assistant.toml."""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from ipaddress import ip_address
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from app.core.errors import SettingsError
from app.core.settings_sources import Names, Origin, collect, problem
from app.core.settings_types import (
    EMPTY,
    Deliveries,
    Filled,
    Hosts,
    Keys,
    LimitsStore,
    Object,
    Origins,
    Proxies,
    Rates,
    SecretUrl,
    SomeWords,
    SourceForms,
    Splitter,
    Unproven,
    Url,
    Weights,
    Words,
)

VECTOR_WEIGHT = 0.6
KEYWORDS_VECTOR_WEIGHT = 0.2  # if the words of a question have keywords beside them
WHOLE_ANSWER = 10
"""Time limit for a whole answer, in timeouts of the language model: 1,500 tokens of a slow one."""
SECRET = ("_key", "_keys", "_extra_body", "_args", "briefing")


class Index(BaseModel):
    """The place of the index."""

    store: Filled = Field("data/", description="A directory, or opensearch(s)://user:password@host:9200/index.")
    store_ca: str = Field("", description="File with the certificate authority of the store's TLS certificate.")
    generations: int = Field(2, ge=1, description="Number of published generations to keep, including the live one.")


class Crawl(BaseModel):
    """The pages to read, and how."""

    sites: Words = Field((), description="Addresses of sitemaps or sites to index when the command line names none.")
    sources: str = Field("", description="TOML file of sources with settings of their own, in addition to sites.")
    user_agent: Filled = Field(
        "docs-assistant (+https://github.com/docs-assistant/docs-assistant)", description="Name that the crawler sends."
    )
    crawl_allow: Words = Field((), description="More hosts (also *.example.org) and internal networks to reach.")
    render: Literal["off", "auto"] = Field("off", description="auto renders pages that need JavaScript.")
    max_lost: int = Field(30, ge=0, le=100, description="Percentage of a site's pages that a published run may lose.")


class Pages(BaseModel):
    """The splitting, translation and summaries of pages, and questions about them."""

    splitter: Splitter = Field(
        "markdown",
        description="How pages are split: markdown, semantic, fixed, page, or a LlamaIndex NodeParser as module:Class.",
    )
    splitter_args: Object = Field({}, description="JSON arguments of that class.")
    summaries: bool = Field(default=False, description="Let the language model summarise each page.")
    questions: bool = Field(default=False, description="Let the language model write questions of each chunk.")
    translate: Words = Field((), description="Languages into which the language model translates pages.")
    glossary: str = Field("", description="TOML or CSV file with fixed translations of terms.")
    translations: Filled = Field("translations", description="Directory that keeps translations and questions.")


class Embedding(BaseModel):
    """The embedding model."""

    embedding_url: Url = Field("", description="OpenAI-compatible address. Empty: vectors of the package, no server.")
    embedding_model: str = Field("", description="Name of the embedding model; local:NAME is one in this process.")
    embedding_key: SecretStr = Field(SecretStr(""), description="Key for it.")
    embedding_class: str = Field("", description="LlamaIndex embedding class to use instead, as module:Class.")
    embedding_args: Object = Field({}, description="JSON arguments of that class.")


class LanguageModel(BaseModel):
    """The language model."""

    llm_url: Url = Field("", description="OpenAI-compatible address, as http://host/v1. Empty: extractive answers.")
    llm_model: str = Field("", description="Name of the language model.")
    llm_key: SecretStr = Field(SecretStr(""), description="Key for it.")
    llm_extra_body: Object = Field({}, description="JSON merged into each request body.")
    llm_timeout: float = Field(60.0, gt=0, description="Timeout for each piece of text of an answer.")
    llm_context_window: int = Field(16000, ge=1000, description="Size of the context window in tokens.")
    llm_class: str = Field("", description="LlamaIndex LLM class to use instead, as module:Class.")
    llm_args: Object = Field({}, description="JSON arguments of that class.")


class Rerank(BaseModel):
    """The reranker, for the step `rerank`."""

    rerank_url: Url = Field("", description="Address of a server with /rerank, for the step rerank.")
    rerank_model: str = Field("", description="Name of the reranking model; local:NAME is one in this process.")
    rerank_key: SecretStr = Field(SecretStr(""), description="Its key.")


class Retrieval(BaseModel):
    """The search and ranking of passages."""

    top_k: int = Field(5, ge=1, le=50, description="Number of passages that an answer is made from.")
    min_evidence: float = Field(0.32, ge=0, le=1, description="Share of the question that the best passage has.")


class Answers(BaseModel):
    """Languages, prompts and assistants."""

    languages: SomeWords = Field(("cs", "en"), description="Languages of readers and pages.")
    default_language: Filled = Field("en", description="Used if the language of a question or page can't be detected.")
    prompts: str = Field("", description="Directory whose files replace the shipped prompts of the same name.")
    assistants: str = Field("", description="Your own assistants.toml instead of the shipped one.")
    answer_cache: int = Field(0, ge=0, le=604_800, description="Seconds for which answers are repeated. 0: not at all.")


class Conversations(BaseModel):
    """The questions and answers that are kept."""

    database: str = Field("", description="sqlite:///FILE or postgresql://… Empty: conversations.db beside the index.")
    retention_days: int = Field(30, ge=0, le=36_500, description="Days for which answers are kept. 0: nothing is.")
    keep_user: Literal["none", "id", "name", "email"] = Field("none", description="What is kept of Open WebUI's user.")
    question_log: Literal["off", "hashed", "text"] = Field("text", description="What reports of gaps are made from.")


class Server(BaseModel):
    """The HTTP service."""

    host: Filled = Field("127.0.0.1", description="Address to listen on.")
    port: int = Field(8000, ge=1, le=65535, description="Port to listen on.")
    allowed_hosts: Hosts = Field((), description="More host names that requests may use, such as *.example.org.")
    origins: Origins = Field((), description="Origins whose pages may ask, such as https://docs.example.org.")
    trusted_proxies: Proxies = Field((), description="Proxies whose X-Forwarded-For, -Proto and -Prefix are trusted.")
    api_keys: Keys = Field((), description="Keys that clients must send. Unset: only this machine may ask.")
    open: bool = Field(default=False, description="Let other machines ask without a key, too.")
    admin_keys: Keys = Field((), description="Keys of operators, who start runs and read traces.")
    keys: str = Field("", description="TOML file of keys with roles and limits; docs-assistant key new writes one.")
    admin_open: bool = Field(default=False, description="Let this machine use admin routes without a key.")
    rate_limit: Rates = Field("300/minute", description="Questions of one address or key. Empty: no limit.")
    concurrency_limit: int = Field(100, ge=0, description="Answers at a time for one address or key. 0: no limit.")
    limits_store: LimitsStore = Field("memory", description="memory, or redis://host:6379 for several instances.")
    max_index_age: float = Field(0.0, ge=0, description="Hours without a run until the index is too old. 0: never.")


class Log(BaseModel):
    """The log."""

    log_level: Literal["debug", "info", "warning", "error"] = Field("info", description="debug also logs questions.")
    log_client: Literal["full", "cut", "none"] = Field("cut", description="How much of a client's address is logged.")
    log_json: bool = Field(default=False, description="Write log lines as JSON.")


class Tuning(BaseModel):
    """Settings that few need: measure before and after a change. DOCS_TUNING__NAME is the environment variable of a name."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    store_timeout: float = Field(10.0, gt=0, description="Timeout of one call to the store.")
    collection: Filled = Field("docs", description="Collection of pages whose source names none.")
    unproven: Unproven = Field("mark", description="Statements that no passage proves: mark, remove, or off.")
    share_days: int = Field(-1, ge=-1, le=3650, description="Days of links to answers. 0: none. -1: 30 without keys.")
    figures: bool = Field(default=False, description="Show figures of the service to everybody at /figures.")
    follow_ups: bool = Field(default=True, description="End answers with questions that the index answers, too.")
    crawl_parallel: int = Field(4, ge=1, le=64, description="Simultaneous requests to one host.")
    crawl_timeout: float = Field(20.0, gt=0, description="Timeout for one page; also in the browser.")
    crawl_max_bytes: int = Field(10_000_000, ge=1000, description="Maximum size of a page in bytes.")
    page_seconds: float = Field(
        30.0, gt=0, description="CPU time for one page, over all steps; a file may take 5 times as long."
    )
    page_chunks: int = Field(5_000, ge=1, description="Maximum number of chunks of one page.")
    browser: str = Field("", description="Path of a Chromium browser. Empty: the installed one.")
    chunk_size: int = Field(1500, ge=200, le=20000, description="Maximum length of a markdown chunk in characters.")
    chunk_neighbours: int = Field(
        0, ge=0, le=2000, description="Characters of its neighbours that a chunk is found by."
    )
    translate_from: Words = Field((), description="Languages to translate. Empty: all others than DOCS_LANGUAGES.")
    embedding_extra_body: Object = Field({}, description="JSON merged into each request to the embedding model.")
    embedding_timeout: float = Field(30.0, gt=0, description="Timeout of one call to the embedding model.")
    embedding_batch: int = Field(100, ge=1, description="Texts in one call to the embedding model.")
    embedding_parallel: int = Field(4, ge=1, description="Simultaneous calls to the embedding model during indexing.")
    embedding_max_chars: int = Field(8000, ge=100, description="Texts are cut to this length before they are embedded.")
    embedding_query_prefix: str = Field("auto", description="Prefix of a question. auto: what a known model needs.")
    embedding_passage_prefix: str = Field("auto", description="Prefix of a passage. auto: what a known model needs.")
    llm_max_tokens: int = Field(1500, ge=16, description="Maximum length of an answer in tokens.")
    llm_form: Literal["auto", "full", "short"] = Field(
        "auto", description="Prompt of answers. auto: short for a small window."
    )
    heed_exam: bool = Field(
        default=True, description="Do what the exam of the model says (docs-assistant check --exam)."
    )
    rerank_form: Literal["cohere", "tei", "voyage"] = Field("cohere", description="Form of requests to the reranker.")
    rerank_candidates: int = Field(20, ge=1, description="Number of passages to rerank.")
    rerank_sigmoid: bool = Field(default=False, description="Convert scores of the reranker that aren't 0..1.")
    passage_tokens: int = Field(3700, ge=200, description="Maximum length of all passages in a prompt, in tokens.")
    per_page: int = Field(2, ge=1, description="Maximum number of passages from one page.")
    fusion: Literal["weighted", "fixed", "rrf"] = Field("weighted", description="How the two rankings are merged.")
    vector_weight: Weights = Field({}, description='Weight of vectors by language of the question; "*": all others.')
    exact: bool = Field(default=False, description="Use exact instead of approximate nearest neighbours.")
    clusters: int = Field(500, ge=1, description="Clusters of the step of this name; fewer in a small index.")
    cluster_chunks: int = Field(30, ge=1, description="Chunks that this step takes from the nearest clusters.")
    other_language: float = Field(0.8, ge=0, le=1, description="Factor for passages in another language. 0: none are.")
    keyword_weight: float = Field(
        1.0, ge=0, le=10, description="Weight of a model's keywords; the question's words: 1."
    )
    temperature: float = Field(0.1, ge=0, le=2, description="Temperature of the answer.")
    images: Literal["site", "none"] = Field("site", description="Images in answers: from the pages' hosts, or none.")
    on_model_failure: Literal["extractive", "error"] = Field(
        "extractive", description="What to return if the language model fails."
    )
    helper_timeout: float = Field(6.0, gt=0, description="Timeout of each helper step; after it, the step is skipped.")
    helper_calls: int = Field(4, ge=0, description="Maximum number of helper calls to the language model per question.")
    openwebui_tasks: bool = Field(default=False, description="Send tasks without a task header to the model, too.")
    key_sources: SourceForms = Field({}, description="Form of the sources by position or name of the client's key.")
    run_webhook: SecretUrl = Field(SecretStr(""), description="Address that is told when a run failed or none came.")
    run_hours: float = Field(0.0, ge=0, description="Hours without a successful run that are a problem. 0: none.")
    briefing: Deliveries = Field(SecretStr(""), description="Mail servers and web hooks that get a morning's briefing.")
    briefing_hour: int = Field(5, ge=0, le=23, description="Hour of the day in UTC from which on it is sent.")
    max_answers: int = Field(500, ge=1, description="Maximum number of answers in progress; more requests get 503.")


TABLES: Mapping[str, type[BaseModel]] = {
    "index": Index,
    "crawl": Crawl,
    "pages": Pages,
    "embedding": Embedding,
    "llm": LanguageModel,
    "rerank": Rerank,
    "retrieval": Retrieval,
    "answers": Answers,
    "conversations": Conversations,
    "server": Server,
    "log": Log,
    "tuning": Tuning,
}
"""The tables of docs-assistant.toml."""
FIELDS: Mapping[str, FieldInfo] = MappingProxyType(
    {name: field for group in TABLES.values() for name, field in group.model_fields.items()}
)
"""All settings, and those of `Settings.tuning`, under the names that `Settings.load` takes."""
FILE_KEYS: Mapping[str, str] = {
    name: f"{table}.{name.removeprefix(f'{table}_')}" for table, group in TABLES.items() for name in group.model_fields
}
"""The key of each setting in docs-assistant.toml: `llm_url` is `llm.url`, `top_k` is `retrieval.top_k`."""


SECRETS = ("store", "database", "limits_store")
NAMES = Names(FILE_KEYS, frozenset({*SECRETS, *(name for name in FILE_KEYS if name.endswith(SECRET))}))


# pydantic collects the fields of the bases from the last to the first
class Settings(Log, Server, Conversations, Answers, Retrieval, Rerank, LanguageModel, Embedding, Pages, Crawl, Index):
    """Configuration of the service, the command line and ingestion. Times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    tuning: Tuning = Tuning.model_validate({})

    def value(self, name: str) -> Any:
        """The value of a setting, or of one of `tuning`."""
        return getattr(self.tuning if name in Tuning.model_fields else self, name)

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """A copy with other values; those of `tuning` under their own names, too."""
        own = _nested(update or {})
        if tuning := own.pop("tuning"):
            own["tuning"] = self.tuning.model_copy(update=tuning)
        return super().model_copy(update=own, deep=deep)

    def vector_share(self, language: str, *, keywords: bool = False) -> float:
        """The weight of the vector search for a question in this language, 0..1.

        The search by words has the rest, and more of it where a language model wrote `keywords`.
        """
        default = KEYWORDS_VECTOR_WEIGHT if keywords else VECTOR_WEIGHT
        weights = self.tuning.vector_weight
        return weights.get(language, weights.get("*", default))

    def check_open(self) -> None:
        """Raise `SettingsError` if other machines could ask or administer without a key, and the settings don't say that
        they may.
        """
        if is_loopback(self.host):
            return
        if self.admin_open:
            raise SettingsError(
                f"DOCS_ADMIN_OPEN=true is for this machine only, but DOCS_HOST={self.host} lets other machines reach the"
                " service. Remove one of them, or give operators a key: docs-assistant key new NAME --role admin."
            )
        if not (self.api_keys or self.keys or self.open):
            raise SettingsError(
                f"DOCS_HOST={self.host} lets other machines ask, and no key is needed. Set DOCS_API_KEYS to the keys of your"
                " clients, or DOCS_OPEN=true if everybody who reaches the service may ask."
            )

    @classmethod
    def load(cls, env_file: str | Path | None = ".env", **values: Any) -> Self:
        """Read the settings. `values` override the environment, `env_file`, and the docs-assistant.toml beside it.

        With `env_file=None`, no file is read. Values of `tuning` are given like the others: `Settings.load(per_page=3)`.
        Raises `SettingsError`, which names each unknown and each invalid setting.
        """
        return cls.load_with_origins(env_file, **values)[0]

    @classmethod
    def load_with_origins(
        cls, env_file: str | Path | None = ".env", **values: Any
    ) -> tuple[Self, Mapping[str, Origin]]:
        """The settings, as `load` returns them, and where each one that isn't in `values` or a default was written."""
        values |= dict(values.pop("tuning", {})) | values
        collected = collect(NAMES, Path(env_file) if env_file else None, values)
        settings, problems = None, collected.problems
        try:
            settings = cls.model_validate(_nested({**collected.values, **values}))
        except ValidationError as error:
            problems += [_problem(details, collected.origins) for details in error.errors()]
        problems += _without_address({**collected.values, **values}, collected.origins)
        if "keys" in collected.origins and not str(collected.values.get("keys", "")).strip():
            problems.append(f"{collected.origins['keys']} is empty: {EMPTY}")
        if settings is None or problems:
            lines = list(dict.fromkeys(problems))
            head = [f"{len(lines)} settings are wrong:"] if len(lines) > 1 else []
            raise SettingsError("\n  ".join([*head, *lines]))
        return settings, collected.origins


def _nested(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values with those of `tuning` in a mapping of their own."""
    tuning = {name: value for name, value in values.items() if name in Tuning.model_fields}
    return {name: value for name, value in values.items() if name not in tuning} | {"tuning": tuning}


def _problem(details: ErrorDetails, origins: Mapping[str, Origin]) -> str:
    if details["loc"][0] == "tuning":
        details["loc"] = details["loc"][1:]
    name = str(details["loc"][0])
    place = str(origins.get(name, NAMES.variable(name)))
    # the body and the arguments of a model may hold secrets, too
    return problem(details, FIELDS, place, secret=name.endswith(SECRET))


def _without_address(values: Mapping[str, Any], origins: Mapping[str, Origin]) -> Iterator[str]:
    """Models and keys that nothing would use, because the address was forgotten. An empty address turns a model off."""
    for kind in ("llm", "embedding", "rerank"):
        if {f"{kind}_url", f"{kind}_class"} & values.keys() or str(values.get(f"{kind}_model", "")).startswith(
            "local:"
        ):
            continue
        for name in (f"{kind}_model", f"{kind}_key"):
            if values.get(name) and name in origins and name != "embedding_model":  # `open_embedder` says more
                yield f"{origins[name]} is set, but DOCS_{kind.upper()}_URL isn't: set the address of the server, or remove it."


@lru_cache(maxsize=256)  # each request asks several times
def is_loopback(host: str) -> bool:
    """True if only this machine reaches a service that listens on this address or name."""
    try:
        return host.lower() == "localhost" or ip_address(host.strip("[]")).is_loopback
    except ValueError:  # another name
        return False

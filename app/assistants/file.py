"""Reads and validates assistants.toml, without opening stores or models."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.resources import files
from typing import Annotated, Any, Literal, TypeVar

from pydantic import AfterValidator, Field

from app.core.brand import COLOR
from app.core.errors import SettingsError, did_you_mean
from app.core.settings import FIELDS, NAMES, Settings
from app.core.tables import Name, Table, parsed, read_file
from app.core.types import Filters
from app.index import Store, open_store
from app.models import Embedder, Model, open_embedder, open_model
from app.models.postprocessor import Scores
from app.pipeline.registry import OwnStep, StepFactory, flat, known_steps, steps


def _once(names: list[str]) -> list[str]:
    if doubled := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
        raise ValueError(f"it names {doubled[0]!r} twice")
    return names


# an empty list would mean no limit
Limit = Annotated[list[Name], AfterValidator(_once), Field(min_length=1)]
Group = Annotated[list[Name], Field(min_length=1)]
TEXT = "a text"
LISTED_NAMES = 'a list of names, as ["docs", "blog"]; leave it out to answer from all'
TEXTS = 'texts by language, as { en = "Docs" }'
YES_NO = "true or false"
NUMBER = "a whole number"
TABLE = "a table, as { key = 1 }"


class TableWithID(Table):
    """A table of an array of tables, with a unique id."""

    id: Name = Field(description='a name of its own, as "docs"')


T = TypeVar("T", bound=TableWithID)


def _own_ids(tables: list[T]) -> list[T]:
    try:
        _once([table.id for table in tables])
    except ValueError as error:
        raise ValueError(f"each needs an id of its own, but {error}") from error
    return tables


OWN_IDS = AfterValidator(_own_ids)


class Persona(TableWithID):
    """A persona of an assistant that is available as a model."""

    names: dict[str, str] = Field({}, description=TEXTS)
    listed: bool = Field(default=False, description=YES_NO)


class AssistantTable(TableWithID):
    """One assistant."""

    steps: list[Name | Group] = Field(
        min_length=1,
        description='a list of steps, those of an inner list run together, as ["detect", ["keywords", "probe"], "retrieve"]',
    )
    names: dict[str, str] = Field({}, description=TEXTS)
    descriptions: dict[str, str] = Field({}, description=TEXTS)
    suggestions: dict[str, list[Name]] = Field(
        {}, description='lists of questions by language, as { en = ["How do I start?"] }'
    )
    sources: Literal["", "events", "links", "both"] = Field(
        "", description='"events", "links" or "both"; leave it out to let it depend on the client'
    )
    unproven: Literal["", "mark", "remove", "off"] = Field(
        "", description='"mark", "remove" or "off"; leave it out for DOCS_TUNING__UNPROVEN'
    )
    listed: bool = Field(default=True, description=YES_NO)
    model: str = Field("", description="the id of a [[model]]")
    models: dict[str, str] = Field({}, description='ids of models by step, as { keywords = "small" }')
    index: str = Field("", description="the id of an [[index]]")
    collections: Limit = Field([], description=LISTED_NAMES)
    languages: Limit = Field([], description=LISTED_NAMES)
    sites: Limit = Field([], description=LISTED_NAMES)
    sections: Limit = Field([], description=LISTED_NAMES)
    versions: Limit = Field([], description=LISTED_NAMES)
    persona: Annotated[list[Persona], OWN_IDS] = Field([], description="written as [[assistant.persona]]")

    @property
    def limits(self) -> Filters:
        """The pages that it answers from."""
        limits = (self.collections, self.languages, self.sites, self.sections, self.versions)
        return Filters(*map(tuple, limits))


class ModelTable(TableWithID):
    """An additional language model. Missing keys have the values of the settings."""

    key_env: str = Field("", description="the name of an environment variable")
    url: str = Field("", description="an address")
    model: str = Field("", description=TEXT)
    extra_body: dict[str, Any] = Field({}, description=TABLE)
    timeout: float = Field(0, description="a number of seconds")
    context_window: int = Field(0, description=NUMBER)
    max_tokens: int = Field(0, description=NUMBER)
    form: Literal["auto", "full", "short"] = Field("auto", description='"auto", "full" or "short"')
    class_: str = Field("", alias="class", description='a class, as "module:Class"')
    args: dict[str, Any] = Field({}, description=TABLE)


class IndexTable(TableWithID):
    """An additional index: a store with its embedder. Missing keys have the defaults of the settings."""

    key_env: str = Field("", description="the name of an environment variable")
    store: Name = Field(description="a directory or an address, as DOCS_STORE")
    embedding_url: str = Field("", description="an address")
    embedding_model: str = Field("", description=TEXT)
    embedding_extra_body: dict[str, Any] = Field({}, description=TABLE)
    embedding_timeout: float = Field(0, description="a number of seconds")
    embedding_batch: int = Field(0, description=NUMBER)
    embedding_parallel: int = Field(0, description=NUMBER)
    embedding_max_chars: int = Field(0, description=NUMBER)
    embedding_query_prefix: str = Field("", description=TEXT)
    embedding_passage_prefix: str = Field("", description=TEXT)
    embedding_class: str = Field("", description='a class, as "module:Class"')
    embedding_args: dict[str, Any] = Field({}, description=TABLE)


class StepTable(TableWithID):
    """A step of a project, or a postprocessor of LlamaIndex, with its arguments; or a shipped step with its settings."""

    class_: Name = Field("", alias="class", description='a class, as "module:Class", or the name of a shipped step')
    args: dict[str, Any] = Field({}, description=TABLE)
    timeout: float = Field(0, gt=0, description="a number of seconds above 0")
    scores: Scores | None = Field(None, description='"relative", "0..1" or "sigmoid"')


class BrandTable(Table):
    """The name and look of the documentation, where they aren't those that its site has."""

    name: str = Field("", description="the name on the page and the widget")
    icon: str = Field("", description="the file of an image for the page and the browser's tab")
    color: str = Field(
        "", pattern=rf"^(?:{COLOR.pattern})?$", description="the colour of links and buttons, as #2558c5"
    )
    welcome: str = Field("", description="a line above the first question")
    contact: str = Field(
        "",
        pattern=r"^(?:https?://\S+|[^\s@:/?]+@[^\s@:/?]+)?$",
        description="an address of the web or of mail, as https://example.org/help or help@example.org",
    )
    llms_txt: bool = Field(default=True, description="true or false")


class AssistantsFile(Table):
    """The whole file: assistants, additional language models, additional indices, steps from outside."""

    assistants: Annotated[list[AssistantTable], OWN_IDS] = Field(
        alias="assistant", min_length=1, description="written as [[assistant]]"
    )
    models: Annotated[list[ModelTable], OWN_IDS] = Field([], alias="model", description="written as [[model]]")
    indices: Annotated[list[IndexTable], OWN_IDS] = Field([], alias="index", description="written as [[index]]")
    steps: Annotated[list[StepTable], OWN_IDS] = Field([], alias="step", description="written as [[step]]")
    brand: BrandTable | None = Field(None, description="written as [brand]")

    def known_steps(self) -> Mapping[str, StepFactory]:
        """All steps that assistants may name; loads the classes of those from outside. Raises `SettingsError`."""
        tables = {table.id: OwnStep(table.class_, table.args, table.timeout, table.scores) for table in self.steps}
        return known_steps(tables, (name for table in self.assistants for name in flat(table.steps)))


def assistant_names(settings: Settings) -> list[str]:
    """The ids of the assistants in the file. Raises `SettingsError` as `read_assistants` does."""
    return [assistant.id for assistant in read_assistants(settings).assistants]


@contextmanager
def naming_file(settings: Settings) -> Iterator[str]:
    """Context in which a `SettingsError` is prefixed with the name of the file; yields that name."""
    name = settings.assistants or "the shipped assistants.toml"
    try:
        yield name
    except SettingsError as error:
        raise SettingsError(f"{name}: {error}") from error


def index_settings(settings: Settings, id_: str) -> Settings:
    """The settings for the `[[index]]` with this id. Raises `SettingsError` if there is none."""
    tables = {table.id: table for table in read_assistants(settings).indices}
    with naming_file(settings):
        if id_ not in tables:
            raise SettingsError(
                f"there is no [[index]] {id_!r}.{did_you_mean(id_, tables)} Available: {', '.join(tables) or 'none'}."
            )
        return settings_of_index(tables[id_], settings)


def read_assistants(settings: Settings) -> AssistantsFile:
    """The configured file, else the shipped one without steps of plugins that aren't loaded. Raises `SettingsError` that lists the errors in it."""
    if settings.assistants:
        text = read_file("DOCS_ASSISTANTS", settings.assistants)
        return parsed(AssistantsFile, text, settings.assistants)
    text = files("app").joinpath("assistants.toml").read_text(encoding="utf-8")
    shipped, known = parsed(AssistantsFile, text, "the shipped assistants.toml"), steps()
    assistants = [
        one.model_copy(update={"steps": [name for name in one.steps if not isinstance(name, str) or name in known]})
        for one in shipped.assistants
    ]
    return shipped.model_copy(update={"assistants": assistants})


MODEL_KEYS = {
    "url": "llm_url", "model": "llm_model", "extra_body": "llm_extra_body", "timeout": "llm_timeout",
    "context_window": "llm_context_window", "max_tokens": "llm_max_tokens", "form": "llm_form", "class": "llm_class", "args": "llm_args",
}  # fmt: skip
EMBEDDING_KEYS = tuple(name for name in FIELDS if name.startswith("embedding_") and "key" not in name)
INDEX_KEYS = {name: name for name in ("store", *EMBEDDING_KEYS)}


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A language model and the settings with its limits."""

    model: Model
    settings: Settings


@dataclass(frozen=True, slots=True)
class NamedIndex:
    """A store, its embedder, and the settings of both. The name is empty for the configured ones."""

    name: str
    store: Store
    embedder: Embedder
    settings: Settings


def open_models(tables: Sequence[ModelTable], settings: Settings) -> dict[str, NamedModel]:
    """The models by id. Raises `SettingsError` for an invalid value, or if an API key isn't in the environment."""
    models = {}
    for table in tables:
        with _naming_table("model", table, MODEL_KEYS):
            own = _settings(table, MODEL_KEYS, ("llm_key", {"llm_url": "", "llm_class": ""}), settings)
            if (model := open_model(own)) is None:
                raise SettingsError("it needs a url, or a class of LlamaIndex.")
            models[table.id] = NamedModel(model, own)
    return models


def open_indices(tables: Sequence[IndexTable], settings: Settings) -> dict[str, NamedIndex]:
    """The indices by id. Raises `SettingsError` for an invalid value, or if an API key isn't in the environment."""
    indices = {}
    for table in tables:
        own = settings_of_index(table, settings)
        with _naming_table("index", table, INDEX_KEYS):
            indices[table.id] = NamedIndex(table.id, open_store(own), open_embedder(own), own)
    return indices


def settings_of_index(table: IndexTable, settings: Settings) -> Settings:
    """The settings with the store and embedder of this index. Raises `SettingsError`."""
    none = {name: FIELDS[name].get_default(call_default_factory=True) for name in EMBEDDING_KEYS}
    with _naming_table("index", table, INDEX_KEYS):
        return _settings(table, INDEX_KEYS, ("embedding_key", none), settings)


def _settings(
    table: TableWithID, names: Mapping[str, str], key: tuple[str, Mapping[str, Any]], settings: Settings
) -> Settings:
    """The settings overridden by the table. The variable that `key_env` names contains the API key."""
    secret, cleared = key
    written = table.written()
    variable = written.get("key_env", "")
    if variable and variable not in os.environ:
        raise SettingsError(f"it has its key in {variable}, which isn't set.")
    own = {names[name]: value for name, value in written.items() if name in names}
    values = {**settings.model_dump(exclude_unset=True), **cleared, secret: os.environ.get(variable, ""), **own}
    return type(settings).load(None, **values)


@contextmanager
def _naming_table(kind: str, table: TableWithID, names: Mapping[str, str]) -> Iterator[None]:
    """Context in which a `SettingsError` names the table, and its keys instead of settings."""
    keys = {NAMES.variable(setting): key for key, setting in names.items()}
    try:
        yield
    except SettingsError as error:
        message = re.sub(r"DOCS_\w+", lambda found: keys.get(found[0], found[0]), str(error))
        raise SettingsError(f"{kind} {table.id!r}: {message}") from error

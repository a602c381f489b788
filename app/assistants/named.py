"""Opens the additional language models and indices: `[[model]]` and `[[index]]` of assistants.toml."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.index import Store, open_store
from app.models import Embedder, Model, open_embedder, open_model

MODEL_KEYS = {
    "url": "llm_url", "model": "llm_model", "extra_body": "llm_extra_body", "timeout": "llm_timeout",
    "context_window": "llm_context_window", "max_tokens": "llm_max_tokens", "class": "llm_class", "args": "llm_args",
}  # fmt: skip
EMBEDDING_KEYS = tuple(name for name in Settings.model_fields if name.startswith("embedding_") and "key" not in name)
INDEX_KEYS = {name: name for name in ("store", *EMBEDDING_KEYS)}
Tables = Sequence[Mapping[str, Any]]
"""Validated tables: unique ids, no unknown keys."""


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A language model and the settings with its limits."""

    model: Model
    settings: Settings


@dataclass(frozen=True, slots=True)
class NamedIndex:
    """A store, its embedder, and the settings of both."""

    store: Store
    embedder: Embedder
    settings: Settings


def open_models(tables: Tables, settings: Settings) -> dict[str, NamedModel]:
    """The models by id. Raises `SettingsError` for an invalid value, or if an API key isn't in the environment."""
    found = {}
    for table in tables:
        with _naming_table("model", table, MODEL_KEYS):
            own = _settings(table, MODEL_KEYS, ("llm_key", {"llm_url": "", "llm_class": ""}), settings)
            if (model := open_model(own)) is None:
                raise SettingsError("it needs a url, or a class of LlamaIndex.")
            found[table["id"]] = NamedModel(model, own)
    return found


def open_indices(
    tables: Tables, settings: Settings, opener: Callable[[Settings], Store] = open_store
) -> dict[str, NamedIndex]:
    """The indices by id. Raises `SettingsError` for an invalid value, or if an API key isn't in the environment."""
    found = {}
    for table in tables:
        own = settings_of_index(table, settings)
        with _naming_table("index", table, INDEX_KEYS):
            found[table["id"]] = NamedIndex(opener(own), open_embedder(own), own)
    return found


def settings_of_index(table: Mapping[str, Any], settings: Settings) -> Settings:
    """The settings with the store and embedder of this index. Raises `SettingsError`."""
    none = {name: Settings.model_fields[name].get_default(call_default_factory=True) for name in EMBEDDING_KEYS}
    with _naming_table("index", table, INDEX_KEYS):
        return _settings(table, INDEX_KEYS, ("embedding_key", none), settings)


def _settings(
    table: Mapping[str, Any], names: Mapping[str, str], key: tuple[str, Mapping[str, Any]], settings: Settings
) -> Settings:
    """The settings overridden by the table. The variable that `key_env` names contains the API key."""
    secret, cleared = key
    variable = table.get("key_env", "")
    if variable and variable not in os.environ:
        raise SettingsError(f"it has its key in {variable}, which isn't set.")
    own = {names[name]: value for name, value in table.items() if name in names}
    values = {**settings.model_dump(), **cleared, secret: os.environ.get(variable, ""), **own}
    return type(settings).load(None, **values)


@contextmanager
def _naming_table(kind: str, table: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[None]:
    """Context in which a `SettingsError` names the table, and its keys instead of settings."""
    keys = {f"DOCS_{setting.upper()}": key for key, setting in names.items()}
    try:
        yield
    except SettingsError as error:
        message = re.sub(r"DOCS_\w+", lambda found: keys.get(found[0], found[0]), str(error))
        raise SettingsError(f"{kind} {table['id']!r}: {message}") from error

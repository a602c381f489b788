"""Language models and indices besides the configured ones, as `[[model]]` and `[[index]]` of assistants.toml name them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.core.errors import SettingsError
from app.core.models import Embedder, Model, open_embedder, open_model
from app.core.settings import Settings
from app.core.store import Store, open_store

MODEL_KEYS = {
    "url": "llm_url", "model": "llm_model", "extra_body": "llm_extra_body", "timeout": "llm_timeout",
    "context_window": "llm_context_window", "max_tokens": "llm_max_tokens", "class": "llm_class", "args": "llm_args",
}  # fmt: skip
EMBEDDING_KEYS = {name: name for name in Settings.model_fields if name.startswith("embedding_") and "key" not in name}
INDEX_KEYS = {"store": "store", **EMBEDDING_KEYS}
Tables = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class NamedModel:
    """A language model, and the settings with its own limits."""

    model: Model
    settings: Settings


@dataclass(frozen=True, slots=True)
class NamedIndex:
    """A store with the embedder that it was indexed with, and the settings of both."""

    store: Store
    embedder: Embedder
    settings: Settings


def open_models(tables: Tables, settings: Settings) -> dict[str, NamedModel]:
    """The models by id. Raises `SettingsError` for a wrong table, or a key that isn't in the environment."""
    found = {}
    for id_, table in _by_id(tables, "model").items():
        own = _settings("model", id_, table, MODEL_KEYS, ("llm_key", {"llm_url": "", "llm_class": ""}), settings)
        if (model := open_model(own)) is None:
            raise SettingsError(f"assistants.toml: the model {id_!r} needs a url, or a class of LlamaIndex.")
        found[id_] = NamedModel(model, own)
    return found


def open_indices(tables: Tables, settings: Settings) -> dict[str, NamedIndex]:
    """The indices by id. Raises `SettingsError` for a wrong table, or a key that isn't in the environment."""
    none = {name: Settings.model_fields[name].get_default(call_default_factory=True) for name in EMBEDDING_KEYS}
    found = {}
    for id_, table in _by_id(tables, "index").items():
        if not table.get("store"):
            raise SettingsError(f"assistants.toml: the index {id_!r} needs a store of its own.")
        own = _settings("index", id_, table, INDEX_KEYS, ("embedding_key", none), settings)
        found[id_] = NamedIndex(open_store(own), open_embedder(own), own)
    return found


def _by_id(tables: Tables, kind: str) -> dict[str, Mapping[str, Any]]:
    found: dict[str, Mapping[str, Any]] = {}
    for table in tables:
        id_ = table.get("id")
        if not isinstance(id_, str) or not id_ or id_ in found:
            raise SettingsError(f"assistants.toml: each [[{kind}]] needs an id of its own.")
        found[id_] = table
    return found


def _settings(
    kind: str,
    id_: str,
    table: Mapping[str, Any],
    known: Mapping[str, str],
    key: tuple[str, Mapping[str, Any]],
    settings: Settings,
) -> Settings:
    """The settings with what the table says instead; its key stands in the environment, where `key_env` says."""
    if unknown := set(table) - {"id", "key_env", *known}:
        raise SettingsError(
            f"assistants.toml: unknown {', '.join(sorted(unknown))} in the {kind} {id_!r}. Known: id, key_env, {', '.join(known)}."
        )
    secret, cleared = key
    variable = str(table.get("key_env", ""))
    if variable and variable not in os.environ:
        raise SettingsError(f"assistants.toml: the {kind} {id_!r} has its key in {variable}, which isn't set.")
    own = {known[name]: value for name, value in table.items() if name in known}
    values = {**settings.model_dump(), **cleared, secret: os.environ.get(variable, ""), **own}
    try:
        return type(settings).load(None, **values)
    except SettingsError as error:
        raise SettingsError(f"assistants.toml, {kind} {id_!r}: {error}") from error

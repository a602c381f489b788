"""What stands in assistants.toml, read and checked; nothing is opened here."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from app.core.errors import SettingsError
from app.core.settings import Settings

LIMITS = {"languages": "languages", "sites": "url_prefixes", "sections": "sections", "versions": "versions"}
SHOWN = {"names", "descriptions", "suggestions", "sources", "listed", "persona"}
USED = {"model", "models", "index"}
KEYS = {"id", "steps", "collections", *SHOWN, *USED, *LIMITS}
SOURCES = ("events", "links", "both")


@dataclass(frozen=True, slots=True)
class AssistantsFile:
    """Its tables: assistants, and what they may be made of besides what is configured."""

    assistants: Sequence[Mapping[str, Any]]
    models: Sequence[Mapping[str, Any]] = ()
    indices: Sequence[Mapping[str, Any]] = ()


def read_assistants(settings: Settings) -> AssistantsFile:
    """The file that is configured, or the shipped one. Raises `SettingsError` where it can't be read."""
    name = settings.assistants or "the shipped assistants.toml"
    try:
        if settings.assistants:
            text = Path(settings.assistants).read_text(encoding="utf-8")
        else:
            text = files("app").joinpath("assistants.toml").read_text(encoding="utf-8")
        document = tomllib.loads(text)
    except OSError as error:
        raise SettingsError(f"DOCS_ASSISTANTS={name} can't be read: {error.strerror}.") from error
    except tomllib.TOMLDecodeError as error:
        raise SettingsError(f"{name} is no valid TOML: {error}") from error
    tables = {kind: document.pop(kind, []) for kind in ("assistant", "model", "index")}
    for kind, found in tables.items():
        if not isinstance(found, list) or not all(isinstance(table, dict) for table in found):
            raise SettingsError(f"{name}: write each {kind} as [[{kind}]].")
    if document:
        raise SettingsError(f"{name}: unknown {', '.join(sorted(document))}. Known: assistant, model, index.")
    if not tables["assistant"]:
        raise SettingsError(f"{name} has no [[assistant]] in it.")
    return AssistantsFile(tables["assistant"], tables["model"], tables["index"])


def suggestions(entry: Mapping[str, Any]) -> Mapping[str, Sequence[str]]:
    """First questions by language."""
    found = entry.get("suggestions", {})
    if not isinstance(found, dict) or not all(
        isinstance(texts, list) and all(isinstance(text, str) and text.strip() for text in texts)
        for texts in found.values()
    ):
        raise SettingsError(
            f"assistants.toml: {entry['id']} has suggestions = {found!r}. Write lists of questions by language, as "
            '{ en = ["How do I start?"] }.'
        )
    return found


def shown_sources(entry: Mapping[str, Any]) -> str:
    """How sources are sent; empty where that depends on the client."""
    sources = entry.get("sources", "")
    if sources not in ("", *SOURCES):
        raise SettingsError(
            f"assistants.toml: {entry['id']} has sources = {sources!r}. Write one of {', '.join(SOURCES)}, or leave it "
            "out to let it depend on the client."
        )
    return str(sources)


def names(entry: Mapping[str, Any], key: str) -> tuple[str, ...]:
    """The names under a key; none where the assistant isn't limited by it."""
    found = entry.get(key)
    if found is None:
        return ()
    # a lone string would pass for a list of letters, and an empty list for no limit
    if not isinstance(found, list) or not found or not all(isinstance(name, str) and name.strip() for name in found):
        raise SettingsError(
            f'assistants.toml: {entry["id"]} has {key} = {found!r}. Write a list of names, as ["docs", "blog"], '
            "or leave it out to answer from all."
        )
    if doubled := [name for name in dict.fromkeys(found) if found.count(name) > 1]:
        raise SettingsError(f"assistants.toml: {entry['id']} names {doubled[0]!r} twice in {key}.")
    return tuple(found)

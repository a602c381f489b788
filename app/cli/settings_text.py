"""The text of docs-assistant.toml, generated from the settings and their descriptions."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app.core.settings import FILE_KEYS, TABLES, Settings
from app.core.settings_sources import IN_FILE

HEAD = """\
# Settings of docs-assistant, written by docs-assistant init. Lines that begin with #name show the default: remove the # to
# change it. Environment variables and .env override this file; docs-assistant check shows what is in effect.
{rest}"""
EXAMPLE_KEYS = ("long-random-key",)
COMMON = frozenset(
    [
        "store",
        "sites",
        "sources",
        "crawl_allow",
        "user_agent",
        "max_lost",
        "embedding_model",
        "embedding_url",
        "llm_url",
        "llm_model",
        "llm_key",
        "llm_context_window",
        "top_k",
        "min_evidence",
        "languages",
        "default_language",
        "prompts",
        "assistants",
        "host",
        "port",
        "allowed_hosts",
        "trusted_proxies",
        "api_keys",
        "admin_keys",
        "log_level",
        "log_json",
    ]
)
"""Settings that many operators change; the others are in the file only on request."""


def settings_text(
    values: Mapping[str, Any], in_env: Collection[str] = (), *, every: bool = False, only: Collection[str] = COMMON
) -> str:
    """The file with these values by field, and all other settings as comments; those `in_env` say where they are."""
    shown = set(Settings.model_fields) if every else {*only, *in_env, *(name.removesuffix(IN_FILE) for name in values)}
    rest = "" if every else "# All settings: docs-assistant init --print\n"
    blocks = [HEAD.format(rest=rest)]
    for table, group in TABLES.items():
        lines = [f"# ---- {group.__doc__}", f"[{table}]"]
        for name, field in group.model_fields.items():
            if name in shown:
                lines += [f"# {field.description}", _line(name, field, values, in_env)]
        if len(lines) > 2:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _line(name: str, field: FieldInfo, values: Mapping[str, Any], in_env: Collection[str]) -> str:
    key = FILE_KEYS[name].partition(".")[2]
    if name in in_env:
        return f"# {key} is in .env: DOCS_{name.upper()}"
    if written := [one for one in (name, name + IN_FILE) if one in values]:
        return "\n".join(f"{key}{one.removeprefix(name)} = {_toml(values[one])}" for one in written)
    # an empty list of keys would be an error
    default = EXAMPLE_KEYS if name.endswith("_keys") else field.get_default(call_default_factory=True)
    if get_origin(field.annotation) is Literal:
        others = ", ".join(_toml(one) for one in get_args(field.annotation) if one != default)
        return f"#{key} = {_toml(default)}   # or {others}"
    return f"#{key} = {_toml(default)}"


def _toml(value: Any) -> str:
    match value:
        case SecretStr():
            return _toml(value.get_secret_value())
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            return (
                "{ " + ", ".join(f"{_toml(key)} = {_toml(one)}" for key, one in value.items()) + " }" if value else "{}"
            )
        case tuple() | list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return json.dumps(value)

"""The settings as operators see them: values without secrets, and where each is written."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from app.core.log_message import masked
from app.core.settings import FIELDS, FILE_KEYS, NAMES, Settings
from app.core.settings_sources import ENVIRONMENT, Origin

SET = "(set)"
DEFAULT = "default"
COMMAND_LINE = "command line"
_SECRET = re.compile(r"(key|token|secret|password|authorization|credential)s?$", re.IGNORECASE)


def shown_settings(settings: Settings, origins: Mapping[str, Origin], *, all_: bool) -> dict[str, dict[str, Any]]:
    """For each setting that isn't the default, or for all, its `value`, and where it comes `from`."""
    values = {name: settings.value(name) for name in FIELDS}
    changed = {name for name, value in values.items() if value != _default(name)}
    return {
        NAMES.variable(name): {
            "value": _shown(name, value),
            "from": _place(origins.get(name), COMMAND_LINE if name in changed else DEFAULT),
        }
        for name, value in values.items()
        if all_ or name in changed
    }


def setting_lines(shown: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One line for each setting: its name, its value as an environment variable has it, and where it comes from."""
    rows = [(name, _as_written(setting["value"]), setting["from"]) for name, setting in shown.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)] if rows else []
    for name, value, place in rows:
        yield f"{name:{widths[0]}}  {value:{min(widths[1], 60)}}  {place}".rstrip()


def described_settings(settings: Settings, origins: Mapping[str, Origin]) -> list[dict[str, Any]]:
    """All settings as `shown_settings` has them, each with its `name`, its `key` in docs-assistant.toml, `default` and `description`."""
    shown = shown_settings(settings, origins, all_=True)
    return [
        {
            "name": variable, "key": FILE_KEYS[name], **setting,
            "default": _shown(name, _default(name)), "description": field.description or "",
        }
        for (variable, setting), (name, field) in zip(shown.items(), FIELDS.items(), strict=True)
    ]  # fmt: skip


def _default(name: str) -> Any:
    return FIELDS[name].get_default(call_default_factory=True)


def _place(origin: Origin | None, without: str) -> str:
    if origin is None:
        return without
    return origin.place if origin.place == ENVIRONMENT else str(origin)


def _shown(name: str, value: Any) -> Any:
    match value:
        case SecretStr():
            return SET if value.get_secret_value() else ""
        case str() if _SECRET.search(name) and value:
            return SET
        case str():
            return masked(value)
        case dict():
            return {key: _shown(key, inner) for key, inner in value.items()}
        case tuple() | list():
            return [_shown(name, inner) for inner in value]
        case _:
            return value


def _as_written(value: Any) -> str:
    if isinstance(value, list):
        return " ".join(map(str, value))
    if isinstance(value, float):
        return f"{value:g}"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) if value != {} else ""

"""The settings as `docs-assistant check` shows them: values without secrets, and where each is written."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import SecretStr

from app.core.masking import masked
from app.core.settings import Settings
from app.core.settings_sources import ENVIRONMENT, PREFIX, Origin

SET = "(set)"
DEFAULT = "default"
_SECRET = re.compile(r"(key|token|secret|password|authorization|credential)s?$", re.IGNORECASE)


def shown_settings(settings: Settings, origins: Mapping[str, Origin], *, all_: bool) -> dict[str, dict[str, Any]]:
    """For each setting that isn't the default, or for all, its `value`, and where it comes `from`."""
    return {
        f"{PREFIX}{name.upper()}": {"value": _shown(name, getattr(settings, name)), "from": _place(origins.get(name))}
        for name, field in type(settings).model_fields.items()
        if all_ or getattr(settings, name) != field.get_default(call_default_factory=True)
    }


def setting_lines(shown: Mapping[str, Mapping[str, Any]]) -> Iterator[str]:
    """One line for each setting: its name, its value as an environment variable has it, and where it comes from."""
    rows = [(name, _as_written(one["value"]), one["from"]) for name, one in shown.items()]
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)] if rows else []
    for name, value, place in rows:
        yield f"{name:{widths[0]}}  {value:{min(widths[1], 60)}}  {place}".rstrip()


def _place(origin: Origin | None) -> str:
    if origin is None:
        return DEFAULT
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

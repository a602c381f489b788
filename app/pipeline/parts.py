"""A step with other parts (model, prompts, settings) for one request; the step that other requests use stays as it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any

from app.pipeline.runner import Step

Change = Callable[[Any], Any]
"""What becomes of a part; the same part if nothing changes."""


def with_parts(step: Step, changes: Mapping[str, Change]) -> Step:
    """The step in which each part of these names is changed, also in the steps inside it.

    A step of a project that is no dataclass keeps its parts.
    """
    if not is_dataclass(step):
        return step
    changed: dict[str, Any] = {}
    for part in (one for one in fields(step) if one.init):
        value = getattr(step, part.name)
        if part.name in changes:
            new = changes[part.name](value)
        else:
            new = with_parts(value, changes) if _is_step(value) else value
        if new is not value:
            changed[part.name] = new
    return replace(step, **changed) if changed else step


def _is_step(value: object) -> bool:
    return is_dataclass(value) and not isinstance(value, type) and callable(value) and hasattr(value, "writes")

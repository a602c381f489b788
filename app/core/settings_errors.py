"""What is wrong with a setting, in words: where it was written, its value, and what the value must be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from app.core.errors import quoted
from app.core.masking import masked
from app.core.nearest import did_you_mean

JSON = 'a JSON object such as {"name": "value"}, or a table in docs-assistant.toml'


def problem(details: ErrorDetails, fields: Mapping[str, FieldInfo], place: str, *, secret: bool) -> str:
    """The sentence for one error of pydantic. The value is left out where it may hold a secret."""
    name, *inner = details["loc"]
    if name not in fields:
        return f"there is no setting {name}.{did_you_mean(str(name), fields)}"
    within = "".join(f"[{part}]" for part in inner)
    return f"{place}{within}{_shown(details['input'], secret=secret)}: {_wanted(details, fields[str(name)], inner)}"


def _shown(value: Any, *, secret: bool) -> str:
    if isinstance(value, str | list | tuple) and not "".join(map(str, value)).strip(" ,"):
        return " is empty"
    if secret or not isinstance(value, str | int | float):
        return ""
    return f" has value {masked(quoted(value)) if isinstance(value, str) else value}"


def _wanted(details: ErrorDetails, field: FieldInfo, inner: list[int | str]) -> str:
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    annotation, metadata = field.annotation, field.metadata
    for _ in inner:
        annotation, metadata = _inside(annotation)
    return f"it must be {must_be(annotation, metadata)}."


def _inside(annotation: Any) -> tuple[Any, list[Any]]:
    """The type of the values of a dictionary or tuple, with its limits."""
    values = [one for one in get_args(annotation) if one is not ...]
    last = values[-1] if values else Any
    if get_origin(last) is Annotated:
        plain, *metadata = get_args(last)
        limits = [limit for one in metadata for limit in (one.metadata if isinstance(one, FieldInfo) else [one])]
        return plain, limits
    return last, []


def must_be(annotation: Any, metadata: list[Any]) -> str:
    """What a value of this type with these limits must be, as the end of a sentence."""
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        *most, last = map(str, get_args(annotation))
        return f"{', '.join(most)} or {last}" if most else last
    names = {
        bool: "true or false", int: "a whole number", float: "a number", dict: JSON, str: "a text", SecretStr: "a text",
        tuple: "words separated by spaces or commas, or a list of texts in docs-assistant.toml",
    }  # fmt: skip
    return names.get(kind, "of another type") + (_limits(metadata) if kind in {int, float} else "")


def _limits(metadata: list[Any]) -> str:
    found = {
        name: f"{getattr(one, name):g}" if isinstance(getattr(one, name), float) else getattr(one, name)
        for one in metadata
        for name in ("ge", "gt", "le", "lt")
        if getattr(one, name, None) is not None
    }
    if {"ge", "le"} <= found.keys():
        return f" from {found['ge']} to {found['le']}"
    words = {"ge": ", at least", "gt": " above", "le": ", at most", "lt": " below"}
    return "".join(f"{words[name]} {limit}" for name, limit in found.items())

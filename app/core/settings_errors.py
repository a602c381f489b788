"""What is wrong with a setting, in words: where it was written, its value, and what the value must be."""

from __future__ import annotations

from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from app.core.errors import quoted
from app.core.masking import masked
from app.core.nearest import did_you_mean

LISTS = "words separated by spaces or commas, or a list of texts in docs-assistant.toml"
OBJECT = 'a JSON object such as {"name": "value"}, or a table in docs-assistant.toml'


def problem(details: ErrorDetails, fields: Mapping[str, FieldInfo], place: str, *, secret: bool) -> str:
    """The sentence for one error of pydantic. The value is left out where it may hold a secret."""
    name, *inner = details["loc"]
    if name not in fields:
        return f"there is no setting {name}.{did_you_mean(str(name), fields)}"
    within = "".join(f"[{part}]" for part in inner)
    return f"{place}{within}{_shown(details['input'], secret=secret)}: {wanted(details, fields)}"


def _shown(value: Any, *, secret: bool) -> str:
    if isinstance(value, str | list | tuple) and not "".join(map(str, value)).strip(" ,"):
        return " is empty"
    if secret or not isinstance(value, str | int | float):
        return ""
    return f" has value {masked(quoted(value)) if isinstance(value, str) else value}"


def wanted(details: ErrorDetails, fields: Mapping[str, FieldInfo], lists: str = LISTS) -> str:
    """What a value must be, as a sentence, from the field that has it; `lists` says how a list of texts is written."""
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    name, *inner = details["loc"]
    annotation, limits = fields[str(name)].annotation, fields[str(name)].metadata
    for _ in inner:
        values = [one for one in get_args(annotation) if one is not ...]
        annotation, limits = values[-1] if values else Any, []
    return f"it must be {_must_be(annotation, limits, lists)}."


def _must_be(annotation: Any, limits: list[Any], lists: str) -> str:
    while get_origin(annotation) in {Annotated, UnionType, Union}:
        annotation, *more = get_args(annotation)
        limits = [one for given in more for one in getattr(given, "metadata", [given])]
    kind = get_origin(annotation) or annotation
    if kind is Literal:
        *most, last = map(_quoted, get_args(annotation))
        return f"{', '.join(most)} or {last}" if most else last
    names = {bool: "true or false", int: "a whole number", float: "a number", dict: OBJECT, tuple: lists}
    return names.get(kind, "a text") + (_limits(limits) if kind in {int, float} else "")


def _quoted(value: object) -> str:
    return str(value) or "empty"


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

"""The text of an OpenAPI document -> values, within limits that no document for readers reaches."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import orjson
import yaml  # type: ignore[import-untyped]

from ingestion.errors import ConversionError

DEEPEST = 100
MOST_MERGED = 200_000
"""Keys that `<<` may copy: a few lines of YAML can ask for more than there is memory."""

_Base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _Loader(_Base):  # type: ignore[misc]
    """Scalars as JSON has them: `1.10` stays a version, `on` a word and a date a text."""

    yaml_implicit_resolvers: Mapping[str, Any] = {}
    _merged = 0

    def flatten_mapping(self, node: Any) -> None:
        super().flatten_mapping(node)
        self._merged += len(node.value)
        if self._merged > MOST_MERGED:
            raise ConversionError(f"merges more than {MOST_MERGED:,} keys of YAML (<<)")


for _tag, _written, _starts in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"0|-?[1-9][0-9]{0,17}", "-0123456789"),
    ("merge", r"<<", "<"),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(rf"^(?:{_written})$"), list(_starts))


def parse(text: str, url: str) -> Mapping[str, Any]:
    """The document. Raises `ConversionError` naming what is wrong with it."""
    text = text.lstrip("\ufeff")
    try:
        made = orjson.loads(text) if text.lstrip().startswith("{") else _from_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConversionError(f"{url} isn't readable as OpenAPI: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(made, dict) or not {"openapi", "swagger"} & made.keys():
        raise ConversionError(f"{url} isn't an OpenAPI document: it has no key `openapi` or `swagger`")
    return made


def _from_yaml(text: str) -> Any:
    depth = 0
    for event in yaml.parse(text, Loader=_Base):  # a loader needs the stack of the system for each level
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ConversionError(f"has more than {DEEPEST} levels of YAML")
    return yaml.load(text, Loader=_Loader)  # noqa: S506  # a safe one

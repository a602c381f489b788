"""A schema as the lines of a list: each property with its name, type, limits and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ingestion.convert.openapi.api import Api, listed, mapping, text

DEEPEST_NAMED = 3
"""Named schemas in each other that an operation shows; those below have sections of their own."""
DEEPEST = 12
MOST_SHOWN = 30
MOST_NODES = 400
LONGEST_TEXT = 5_000
LONGEST_EXAMPLE = 3_000
_LIMITS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "minLength": "minimum length",
    "maxLength": "maximum length",
    "minItems": "minimum items",
    "maxItems": "maximum items",
    "pattern": "pattern",
}
_FLAGS = {"readOnly": "read-only", "writeOnly": "write-only", "deprecated": "deprecated"}
_CHOICES = {"oneOf": "one of", "anyOf": "any of"}


@dataclass
class Shape:
    """What the parts of a schema (`allOf`) say together: its properties, and between which it is a choice."""

    properties: dict[str, Any] = field(default_factory=dict)
    required: set[str] = field(default_factory=set)
    choices: list[tuple[str, list[Any]]] = field(default_factory=list)
    others: Any = None


@dataclass
class Schemas:
    """Writes schemas of a document. `told` are the names of those that are written in full, so far.

    `room` is how many more lines may be written; those of a schema that doesn't fit are missing. `shown` are the types
    whose properties the operation lists already.
    """

    api: Api
    told: set[str] = field(default_factory=set)
    room: int = 0
    shown: set[str] = field(default_factory=set)

    def kind(self, schema: Any, depth: int = 0) -> str:
        """The type in words: `string date-time`, `array of Pet`, `one of Cat, Dog`."""
        name, found = self.api.resolved(schema)
        if depth > DEEPEST:
            return name or "object"
        options = next(((word, listed(found[key])) for key, word in _CHOICES.items() if listed(found.get(key))), None)
        if name and (options or not _is_simple(found)):
            return name
        if options:
            return (
                f"{options[0]} {', '.join(dict.fromkeys(self.kind(one, depth + 1) for one in options[1][:MOST_SHOWN]))}"
            )
        parts = listed(found.get("allOf"))
        if len(parts) == 1 and not found.get("properties"):
            return self.kind(parts[0], depth + 1)
        types = [text(one) for one in (listed(found.get("type")) or [found.get("type")]) if text(one)]
        if "array" in types or "items" in found:
            types = [one for one in types if one != "array"]
            return " or ".join([f"array of {self.kind(found.get('items'), depth + 1)}", *types])
        made = " or ".join(types) or ("object" if parts or found.get("properties") else "any")
        made += f" {text(found['format'])}" if text(found.get("format")) else ""
        return made + (" or null" if found.get("nullable") is True else "")

    def lines(self, schema: Any, indent: str = "", deepest: int = DEEPEST_NAMED) -> list[str]:
        """The properties as the items of a list, with those of the schemas in it."""
        return list(self._lines(schema, indent, deepest, ()))

    def _lines(self, schema: Any, indent: str, deepest: int, around: tuple[str, ...]) -> Iterator[str]:
        name, found = self.api.resolved(schema)
        if (name and name in around) or len(around) > DEEPEST or sum(map(bool, around)) >= deepest or self.room <= 0:
            return
        around = (*around, name)
        if "items" in found:
            yield from self._lines(found["items"], indent, deepest + bool(name), around)
            self._tell(name)
            return
        shape = Shape()
        self._collect(found, shape, 0)
        for key, one in shape.properties.items():
            yield from self._property(f"`{key}`", one, key in shape.required, indent, (deepest, around))
        if isinstance(shape.others, dict) and shape.others:
            yield from self._property("any other name", shape.others, False, indent, (deepest, around))
        for word, options in shape.choices:
            for option in options[:MOST_SHOWN]:
                inner = list(self._lines(option, f"{indent}  ", deepest, around))
                if inner:
                    yield from [f"{indent}- {word}: {self.kind(option)}", *inner]
        self._tell(name)

    def _tell(self, name: str) -> None:
        if name and self.room > 0:
            self.told.add(name)

    def _property(
        self, shown: str, schema: Any, required: bool, indent: str, within: tuple[int, tuple[str, ...]]
    ) -> Iterator[str]:
        if self.room <= 0:
            return
        self.room -= 1
        _, found = self.api.resolved(schema)
        facts = ", ".join([self.kind(schema), *(["required"] if required else []), *flags(found)])
        yield item(f"{shown} ({facts})", about(found), indent)
        yield from self._lines(schema, f"{indent}  ", *within)

    def _collect(self, found: Mapping[str, Any], shape: Shape, depth: int) -> None:
        for part in listed(found.get("allOf"))[:MOST_SHOWN] if depth < DEEPEST else ():
            name, inner = self.api.resolved(part)
            self._tell(name)
            self._collect(inner, shape, depth + 1)
        shape.properties.update(mapping(found.get("properties")))
        shape.required.update(text(one) for one in listed(found.get("required")))
        shape.choices += [(word, listed(found[key])) for key, word in _CHOICES.items() if listed(found.get(key))]
        shape.others = found.get("additionalProperties", shape.others)


def _is_simple(found: Mapping[str, Any]) -> bool:
    """True for a value without a shape of its own: its type says more than its name."""
    return not any(key in found for key in ("properties", "allOf", "additionalProperties")) and bool(found)


def flags(found: Mapping[str, Any]) -> list[str]:
    """What is said of reading and writing."""
    return [word for key, word in _FLAGS.items() if found.get(key) is True]


def about(found: Mapping[str, Any], *described: Any) -> str:
    """The description (the first of those given, else the schema's own), with default, values, limits and example."""
    told = next((one for one in (*map(text, described), text(found.get("description"))) if one), "")[:LONGEST_TEXT]
    facts: list[str] = []
    inner = mapping(found.get("items"))
    for owner in (found, inner):
        if values := listed(owner.get("enum")):
            more = f" and {len(values) - MOST_SHOWN} more" if len(values) > MOST_SHOWN else ""
            facts.append(f"One of: {', '.join(map(code, values[:MOST_SHOWN]))}{more}.")
    if "const" in found:
        facts.append(f"Always {code(found['const'])}.")
    if "default" in found:
        facts.append(f"Default: {code(found['default'])}.")
    limits = [f"{word} {code(found[key])}" for key, word in _LIMITS.items() if text(found.get(key))]
    if limits:
        facts.append(f"{', '.join(limits).capitalize() if limits[0][0].islower() else ', '.join(limits)}.")
    example = found.get("example", next(iter(listed(found.get("examples"))), None))
    if example is not None and not isinstance(example, dict | list):
        facts.append(f"Example: {code(example)}.")
    if told and facts and told.rstrip("_*")[-1:] not in ".!?:|`>\n":
        told += "."
    return (
        f"{told} {' '.join(facts)}".strip()
        if "\n\n" not in told
        else "\n\n".join([told, *([" ".join(facts)] * bool(facts))])
    )


def item(head: str, told: str, indent: str = "") -> str:
    """An item of a list; what is said of it in several paragraphs stays in it."""
    lines = told.splitlines()
    if len(lines) > 1 and not any(
        not line.strip() or line.lstrip().startswith(("-", "*", "|", "```")) for line in lines
    ):
        lines = [" ".join(line.strip() for line in lines)]
    first, rest = (lines[0], lines[1:]) if lines else ("", [])
    starts_block = first.lstrip().startswith(("- ", "* ", "|", "```"))
    if starts_block:
        first, rest = "", ["", *lines]
    made = f"{indent}- {head}" + (f" - {first}" if first else "")
    return "\n".join([made, *(f"{indent}  {line}" if line.strip() else "" for line in rest)])


def code(value: Any) -> str:
    """The value as inline code, as JSON writes it except for texts; cut where it is long."""
    shown = value if isinstance(value, str) else (shown_json(value, indent=None) or "...")
    shown = " ".join(shown.split())[:200]
    if not shown:
        return '`""`'
    return f"`` {shown} ``" if "`" in shown else f"`{shown}`"


def shown_json(value: Any, indent: int | None = 2) -> str:
    """The value as JSON, cut at a line when it is long; empty for one too large or too deep to show."""
    if not _is_small(value):
        return ""
    made = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return made if len(made) <= LONGEST_EXAMPLE else made[:LONGEST_EXAMPLE].rpartition("\n")[0] + "\n..."


def _is_small(value: Any) -> bool:
    """False for what aliases of YAML blow up when it is written."""
    level, count = [value], 0
    for _ in range(DEEPEST):
        level = [inner for one in level for inner in (one.values() if isinstance(one, dict) else listed(one))]
        count += len(level)
        if not level or count > MOST_NODES:
            break
    return not level and count <= MOST_NODES

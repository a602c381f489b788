"""An OpenAPI document as Markdown: a section for each operation, and lists for its parameters, bodies and schemas."""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from app.text.blocks import fenced, outside_fences
from ingestion.errors import ConversionError
from plugins.formats.openapi.api import Api, Operation, anchor, listed, mapping, text

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
    """Sum of the parts of a schema (`allOf`): its properties, and between which it is a choice."""

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
        name, resolved = self.api.resolved(schema)
        if depth > DEEPEST:
            return name or "object"
        options = next(((word, of) for key, word in _CHOICES.items() if (of := listed(resolved.get(key)))), None)
        if name and (options or not _is_simple(resolved)):
            return name
        if options:
            return f"{options[0]} {', '.join(dict.fromkeys(self.kind(option, depth + 1) for option in options[1][:MOST_SHOWN]))}"
        parts = listed(resolved.get("allOf"))
        if len(parts) == 1 and not resolved.get("properties"):
            return self.kind(parts[0], depth + 1)
        types = [text(type_) for type_ in (listed(resolved.get("type")) or [resolved.get("type")]) if text(type_)]
        if "array" in types or "items" in resolved:
            types = [type_ for type_ in types if type_ != "array"]
            return " or ".join([f"array of {self.kind(resolved.get('items'), depth + 1)}", *types])
        words = " or ".join(types) or ("object" if parts or resolved.get("properties") else "any")
        words += f" {text(resolved['format'])}" if text(resolved.get("format")) else ""
        return words + (" or null" if resolved.get("nullable") is True else "")

    def lines(self, schema: Any, indent: str = "", deepest: int = DEEPEST_NAMED) -> list[str]:
        """The properties as the items of a list, with those of the schemas in it."""
        return list(self._lines(schema, indent, deepest, ()))

    def _lines(self, schema: Any, indent: str, deepest: int, around: tuple[str, ...]) -> Iterator[str]:
        name, resolved = self.api.resolved(schema)
        if (name and name in around) or len(around) > DEEPEST or sum(map(bool, around)) >= deepest or self.room <= 0:
            return
        around = (*around, name)
        if "items" in resolved:
            yield from self._lines(resolved["items"], indent, deepest + bool(name), around)
            self._tell(name)
            return
        shape = Shape()
        self._collect(resolved, shape, 0)
        for key, property_ in shape.properties.items():
            yield from self._property(f"`{key}`", property_, key in shape.required, indent, (deepest, around))
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
        _, resolved = self.api.resolved(schema)
        facts = ", ".join([self.kind(schema), *(["required"] if required else []), *flags(resolved)])
        yield item(f"{shown} ({facts})", about(resolved), indent)
        yield from self._lines(schema, f"{indent}  ", *within)

    def _collect(self, found: Mapping[str, Any], shape: Shape, depth: int) -> None:
        for part in listed(found.get("allOf"))[:MOST_SHOWN] if depth < DEEPEST else ():
            name, inner = self.api.resolved(part)
            self._tell(name)
            self._collect(inner, shape, depth + 1)
        shape.properties.update(mapping(found.get("properties")))
        shape.required.update(text(name) for name in listed(found.get("required")))
        shape.choices += [(word, listed(found[key])) for key, word in _CHOICES.items() if listed(found.get(key))]
        shape.others = found.get("additionalProperties", shape.others)


def _is_simple(found: Mapping[str, Any]) -> bool:
    """True for a value without a shape of its own: its type says more than its name."""
    return not any(key in found for key in ("properties", "allOf", "additionalProperties")) and bool(found)


def flags(found: Mapping[str, Any]) -> list[str]:
    """Returns the words for reading and writing."""
    return [word for key, word in _FLAGS.items() if found.get(key) is True]


def about(found: Mapping[str, Any], *described: Any) -> str:
    """The description (the first of those given, else the schema's own), with default, values, limits and example."""
    told = next(filter(None, map(text, (*described, found.get("description")))), "")[:LONGEST_TEXT]
    facts: list[str] = []
    for owner in (found, mapping(found.get("items"))):
        if values := listed(owner.get("enum")):
            more = f" and {len(values) - MOST_SHOWN} more" if len(values) > MOST_SHOWN else ""
            facts.append(f"One of: {', '.join(map(code, values[:MOST_SHOWN]))}{more}.")
    if "const" in found:
        facts.append(f"Always {code(found['const'])}.")
    if "default" in found:
        facts.append(f"Default: {code(found['default'])}.")
    limits = [f"{word} {code(found[key])}" for key, word in _LIMITS.items() if text(found.get(key))]
    if limits:
        facts.append(f"{', '.join(limits).capitalize()}.")
    example = found.get("example", next(iter(listed(found.get("examples"))), None))
    if example is not None and not isinstance(example, dict | list):
        facts.append(f"Example: {code(example)}.")
    if told and facts and told.rstrip("_*")[-1:] not in ".!?:|`>\n":
        told += "."
    return ("\n\n" if "\n\n" in told else " ").join(filter(None, [told, " ".join(facts)]))


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
    headline = f"{indent}- {head}" + (f" - {first}" if first else "")
    return "\n".join([headline, *(f"{indent}  {line}" if line.strip() else "" for line in rest)])


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
    written = json.dumps(value, indent=indent, ensure_ascii=False, default=str)
    return written if len(written) <= LONGEST_EXAMPLE else written[:LONGEST_EXAMPLE].rpartition("\n")[0] + "\n..."


def _is_small(value: Any) -> bool:
    """False for what aliases of YAML blow up when it is written."""
    level, count = [value], 0
    for _ in range(DEEPEST):
        level = [inner for node in level for inner in (node.values() if isinstance(node, dict) else listed(node))]
        count += len(level)
        if not level or count > MOST_NODES:
            break
    return not level and count <= MOST_NODES


BODY_LINES, RESPONSE_LINES, SCHEMA_LINES = 150, 60, 1_000
MOST_SECTIONS = 4_000
LONGEST = 20_000_000
_LONGEST_SUMMARY = 120
_HEADING = re.compile(r"(?m)^ {0,3}+#{1,6}+[ \t]++([^\n]*+)$")
_SETEXT = re.compile(r"(?m)^(\S[^\n]*)\n(?:=+|-+)[ \t]*$")


def write_api(api: Api, form: str) -> str:
    """The Markdown. `form` says how links to operations look. Raises `ConversionError` for more than readers can use."""
    if len(api.operations) > MOST_SECTIONS:
        raise ConversionError(f"has {len(api.operations):,} operations, and at most {MOST_SECTIONS:,} can be read")
    schemas = Schemas(api)
    blocks: list[str] = []
    length = 0
    for block in _document(api, schemas, form):
        blocks.append(block)
        length += len(block)
        if length > LONGEST:
            raise ConversionError(f"makes more than {LONGEST:,} characters of text")
    return "\n\n".join(blocks) + "\n"


def _document(api: Api, schemas: Schemas, form: str) -> Iterator[str]:
    title = _line(text(api.info.get("title"))) or "API"
    yield f"# {title}"
    yield from _prose(api.info.get("summary"), api.info.get("description"))
    if api.servers:
        yield "\n".join(["**Servers**", "", *(f"- `{url}`" for url in api.servers[:20])])
    if api.security_schemes:
        yield "## Authentication"
        yield "\n".join(_scheme(name, mapping(scheme)) for name, scheme in islice(api.security_schemes.items(), 50))
    level = "###" if api.tags else "##"
    for tag in ["", *api.tags] if api.tags else [""]:
        operations = [operation for operation in api.operations if operation.tag == tag]
        facts = api.tags.get(tag, {})
        if tag and (operations or facts.get("description")):
            yield f"## {_line(text(facts.get('x-displayName')) or tag)}"
            yield from _prose(facts.get("description"))
        elif operations and api.tags:
            yield "## Other operations"
        for operation in operations:
            yield from _operation(operation, schemas, f"{level} {_headed(operation, form)}")
    yield from _own_sections(schemas)


def _own_sections(schemas: Schemas) -> Iterator[str]:
    """The schemas that no operation shows in full."""
    untold = [name for name in schemas.api.schemas if name not in schemas.told]
    if untold:
        yield "## Schemas"
    for name in untold[:MOST_SECTIONS]:
        schema = schemas.api.schemas[name]
        schemas.room = SCHEMA_LINES
        yield f"### `{_line(name)}`"
        yield from _prose(f"Type: {schemas.kind({**mapping(schema)})}.", about(mapping(schema)))
        lines = schemas.lines(schema, deepest=1)
        if lines:
            yield "\n".join(lines)
        yield from _examples(mapping(schema), "Example")


def _headed(operation: Operation, form: str) -> str:
    facts = operation.facts
    told = _line(text(facts.get("summary"))) or _line(text(facts.get("description")).split("\n")[0])
    told = told if len(told) <= _LONGEST_SUMMARY else ""
    identifier = anchor(operation, form)
    mark = f" {{#{identifier}}}" if identifier else ""
    return f"`{operation.method.upper()} {_line(operation.path)}` - {told or operation.id or 'operation'}{mark}"


def _operation(operation: Operation, schemas: Schemas, heading: str) -> Iterator[str]:
    facts = operation.facts
    schemas.shown.clear()
    yield heading
    if facts.get("deprecated") is True:
        yield "**Deprecated.**"
    yield from _prose(facts.get("summary") if len(text(facts.get("summary"))) > _LONGEST_SUMMARY else "")
    yield from _prose(facts.get("description"))
    if operation.id:
        yield f"Operation: `{_line(operation.id)}`"
    parameters = [parameter for parameter in operation.parameters if parameter.get("in") != "body"]
    if parameters:
        yield "\n".join(["**Parameters**", "", *(_parameter(parameter, schemas) for parameter in parameters)])
    yield from _request(operation, schemas)
    yield from _responses(operation, schemas)
    yield from _security(facts.get("security", schemas.api.root.get("security")))
    for sample in listed(facts.get("x-codeSamples") or facts.get("x-code-samples"))[:10]:
        source, language = text(mapping(sample).get("source")), text(mapping(sample).get("lang"))
        if source:
            yield f"**{_line(text(mapping(sample).get('label')) or language or 'Example')}**"
            yield fenced(source[:LONGEST_EXAMPLE].rstrip(), re.sub(r"\W", "", language.lower()))


def _parameter(parameter: Mapping[str, Any], schemas: Schemas) -> str:
    media = next(iter(mapping(parameter.get("content")).values()), None)
    schema = parameter.get("schema") or mapping(media).get("schema") or parameter
    _, resolved = schemas.api.resolved(schema)
    facts = [text(parameter.get("in")), schemas.kind(schema)]
    facts += ["required"] if parameter.get("required") is True else []
    facts += dict.fromkeys([*flags(parameter), *flags(resolved)])
    values = {key: parameter[key] for key in ("example", "default") if key in parameter}
    told = item(
        f"{code(text(parameter.get('name')))} ({', '.join(filter(None, facts))})",
        about({**resolved, **values}, parameter.get("description")),
    )
    schemas.room = RESPONSE_LINES
    return "\n".join([told, *(schemas.lines(schema, "  ") if schema is not parameter else ())])


def _request(operation: Operation, schemas: Schemas) -> Iterator[str]:
    _, body = schemas.api.resolved(operation.facts.get("requestBody"))
    media = mapping(body.get("content"))
    for parameter in operation.parameters:  # Swagger 2.0
        if parameter.get("in") == "body":
            consumes = operation.facts.get("consumes") or schemas.api.root.get("consumes")
            body, media = parameter, {text(kind): parameter for kind in listed(consumes)[:5] or ["application/json"]}
    if not media and not body.get("description"):
        return
    schemas.room = BODY_LINES
    yield f"**Request body**{' (required)' if body.get('required') is True else ''}"
    yield from _prose(body.get("description"))
    yield from _media(media, schemas, "")
    for body_type in islice(media.values(), 3):
        yield from _examples(mapping(body_type), "Example request body")


def _responses(operation: Operation, schemas: Schemas) -> Iterator[str]:
    lines: list[str] = []
    examples: list[str] = []
    for status, declared in mapping(operation.facts.get("responses")).items():
        _, response = schemas.api.resolved(declared)
        media = mapping(response.get("content"))
        if "schema" in response:  # Swagger 2.0
            produces = listed(operation.facts.get("produces") or schemas.api.root.get("produces"))
            media = {text(kind): response for kind in produces[:5] or ["application/json"]}
        schemas.room = RESPONSE_LINES
        lines += [item(f"`{status}`", text(response.get("description"))[:LONGEST_TEXT]), *_media(media, schemas, "  ")]
        for name, header in islice(mapping(response.get("headers")).items(), 20):
            _, resolved = schemas.api.resolved(header)
            schema = resolved.get("schema") or resolved
            lines.append(
                item(f"Header `{name}` ({schemas.kind(schema)})", about({}, resolved.get("description")), "  ")
            )
        for owner in (*islice(media.values(), 2), *([response] if isinstance(response.get("examples"), dict) else ())):
            examples += _examples(mapping(owner), f"Example response `{status}`")
    if lines:
        yield "\n".join(["**Responses**", "", *lines])
    yield from dict.fromkeys(examples[:20])


def _media(media: Mapping[str, Any], schemas: Schemas, indent: str) -> Iterator[str]:
    """Each schema once, with the media types that have it."""
    kinds: dict[str, tuple[list[str], Any]] = {}
    for name, type_facts in islice(media.items(), 20):
        schema = mapping(type_facts).get("schema")
        kinds.setdefault(schemas.kind(schema) if schema else "", ([], schema))[0].append(f"`{name}`")
    lines = []
    for kind, (names, schema) in kinds.items():
        lines.append(f"{indent}- {', '.join(names)}" + (f": {kind}" if kind else ""))
        if schema and kind not in schemas.shown:
            lines += schemas.lines(schema, f"{indent}  ")
            schemas.shown.add(kind)
    if lines:
        yield "\n".join(lines)


def _examples(owner: Mapping[str, Any], label: str) -> Iterator[str]:
    """The examples as code, each with its label."""
    listed_examples = owner.get("examples")
    examples = [("", owner["example"])] if "example" in owner else []
    if isinstance(listed_examples, dict):
        examples += [
            (key, mapping(example).get("value", example))
            for key, example in islice(mapping(listed_examples).items(), 5)
        ]
    for name, value in examples:
        shown = value if isinstance(value, str) else shown_json(value)
        if shown and isinstance(value, dict | list | str) and ("\n" in shown or isinstance(value, dict | list)):
            yield f"**{label}{f' ({_line(name)})' if name else ''}**\n\n{fenced(shown[:LONGEST_EXAMPLE].rstrip(), 'json')}"


def _security(given: Any) -> Iterator[str]:
    options = []
    for option in listed(given)[:20]:
        parts = [
            f"`{name}`" + (f" ({', '.join(code(scope) for scope in listed(scopes)[:20])})" if listed(scopes) else "")
            for name, scopes in mapping(option).items()
        ]
        options.append(" and ".join(parts) or "none")
    if options:
        yield f"**Security**: {', or '.join(options)}"


def _scheme(name: str, scheme: Mapping[str, Any]) -> str:
    facts = [text(scheme.get(key)) for key in ("type", "scheme", "in", "name", "bearerFormat", "openIdConnectUrl")]
    return item(f"`{name}` ({', '.join(filter(None, facts))})", text(scheme.get("description"))[:LONGEST_TEXT])


def _prose(*given: Any) -> Iterator[str]:
    """Yields texts as Markdown whose headings are bold lines: sections are the operations'."""
    for value in given:
        if told := text(value)[: 4 * LONGEST_TEXT]:
            yield outside_fences(told, _without_headings)


def _without_headings(prose: str) -> str:
    bold = _HEADING.sub(lambda found: f"**{found[1].rstrip(' #')}**\n", _SETEXT.sub(r"**\1**\n", prose))
    return re.sub(r"\n{3,}", "\n\n", bold)


def _line(told: str) -> str:
    return " ".join(told.replace("`", "").split())

"""The parts of an OpenAPI document by what they mean, whatever its version and however badly it is written, read within limits."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType
from typing import Any
from urllib.parse import quote, unquote

import orjson
import yaml  # type: ignore[import-untyped]

from ingestion.convert.markdown.structure import github
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
        document = orjson.loads(text) if text.lstrip().startswith("{") else _from_yaml(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ConversionError(f"{url} isn't readable as OpenAPI: {' '.join(str(error).split())[:300]}") from error
    if not isinstance(document, dict) or not {"openapi", "swagger"} & document.keys():
        raise ConversionError(f"{url} isn't an OpenAPI document: it has no key `openapi` or `swagger`")
    return document


def _from_yaml(text: str) -> Any:
    depth = 0
    for event in yaml.parse(text, Loader=_Base):  # a loader needs the stack of the system for each level
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEEPEST:
            raise ConversionError(f"has more than {DEEPEST} levels of YAML")
    return yaml.load(text, Loader=_Loader)  # noqa: S506  # a safe one


METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace", "query")
_LONGEST_CHAIN = 10
"""References to references that are followed."""


def mapping(value: Any) -> Mapping[str, Any]:
    """The value if it is a mapping, with texts as keys; else an empty one."""
    if not isinstance(value, dict):
        return {}
    return value if all(isinstance(key, str) for key in value) else {str(key): item for key, item in value.items()}


def listed(value: Any) -> list[Any]:
    """The value if it is a list; else an empty one."""
    return value if isinstance(value, list) else []


def text(value: Any) -> str:
    """The value if it is a text or a number; else an empty text."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    return str(value).strip()


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation with the parameters of its path. `tag` is the first of its tags, or empty."""

    path: str
    method: str
    tag: str
    facts: Mapping[str, Any]
    parameters: tuple[Mapping[str, Any], ...]

    @property
    def id(self) -> str:
        """The operationId, or empty."""
        return text(self.facts.get("operationId"))


@dataclass
class Api:
    """An OpenAPI document."""

    root: Mapping[str, Any]

    @property
    def info(self) -> Mapping[str, Any]:
        """Returns what the document says of itself."""
        return mapping(self.root.get("info"))

    @property
    def version(self) -> str:
        """The version of the API."""
        return text(self.info.get("version"))

    @cached_property
    def operations(self) -> list[Operation]:
        """All operations in the document's order, webhooks last."""
        return [*self._of(self.root.get("paths")), *self._of(self.root.get("webhooks"))]

    @cached_property
    def schemas(self) -> Mapping[str, Any]:
        """The named schemas."""
        return {**mapping(self.root.get("definitions")), **mapping(self._components.get("schemas"))}

    @property
    def security_schemes(self) -> Mapping[str, Any]:
        """The ways to authenticate, by name."""
        return mapping(self.root.get("securityDefinitions")) or mapping(self._components.get("securitySchemes"))

    @cached_property
    def tags(self) -> Mapping[str, Mapping[str, Any]]:
        """All tags: those that are described first, in their order."""
        described = {text(mapping(tag).get("name")): mapping(tag) for tag in listed(self.root.get("tags"))}
        return {
            **described,
            **{operation.tag: {} for operation in self.operations if operation.tag and operation.tag not in described},
        }

    @property
    def servers(self) -> list[str]:
        """The addresses of the API."""
        if host := text(self.root.get("host")):
            scheme = next(map(text, listed(self.root.get("schemes"))), "") or "https"
            return [f"{scheme}://{host}{text(self.root.get('basePath'))}"]
        return [url for server in listed(self.root.get("servers")) if (url := text(mapping(server).get("url")))]

    def resolved(self, value: Any) -> tuple[str, Mapping[str, Any]]:
        """(name, what the reference leads to); without a reference, an empty name and the value.

        What stands beside a reference has priority. A reference to another document has its name only.
        """
        facts, name = mapping(value), ""
        for _ in range(_LONGEST_CHAIN):
            target = facts.get("$ref")
            if not isinstance(target, str):
                break
            name = unquote(target).rpartition("/")[2] or target
            beside = {key: part for key, part in facts.items() if key != "$ref"}
            facts = {**self._target(target), **beside}
        return name, facts

    @property
    def _components(self) -> Mapping[str, Any]:
        return mapping(self.root.get("components"))

    def _target(self, pointer: str) -> Mapping[str, Any]:
        if not pointer.startswith("#/"):
            return {}
        node: Any = self.root
        for part in unquote(pointer[2:]).split("/"):
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(node, list):
                node = node[int(key)] if key.isdecimal() and len(key) < 5 and int(key) < len(node) else {}
            else:
                node = mapping(node).get(key)
        return mapping(node)

    def _of(self, paths: Any) -> Iterator[Operation]:
        for path, item in mapping(paths).items():
            _, operations = self.resolved(item)
            for method in METHODS:
                if isinstance(facts := operations.get(method), dict):
                    tag = next(map(text, listed(facts.get("tags"))), "")
                    shared, own = listed(operations.get("parameters")), listed(facts.get("parameters"))
                    yield Operation(path, method, tag, mapping(facts), self._parameters([*shared, *own]))

    def _parameters(self, given: list[Any]) -> tuple[Mapping[str, Any], ...]:
        """The parameters, each once: an operation's own replaces that of its path."""
        parameters = [self.resolved(parameter)[1] for parameter in given]
        return tuple(
            {
                (text(parameter.get("name")), text(parameter.get("in"))): parameter
                for parameter in parameters
                if parameter
            }.values()
        )


_UNSAFE = re.compile(r"[\s<>{}\[\]`\"\\#]")


def _swagger(operation: Operation) -> str:
    identifier = operation.id or operation.method + re.sub(r"\W", "_", operation.path, flags=re.ASCII)
    return f"/{operation.tag or 'default'}/{identifier}"


def _redoc(operation: Operation) -> str:
    within = f"tag/{'-'.join(operation.tag.split())}/" if operation.tag else ""
    if operation.id:
        return f"{within}operation/{operation.id}"
    pointer = operation.path.replace("~", "~0").replace("/", "~1")
    return f"{within}paths/{pointer}/{operation.method}"


def _scalar(operation: Operation) -> str:
    within = f"tag/{github([operation.tag])[0]}/" if operation.tag else ""
    return f"{within}{operation.method.upper()}{operation.path}"


RENDERERS: Mapping[str, Callable[[Operation], str]] = MappingProxyType(
    {"swagger": _swagger, "redoc": _redoc, "scalar": _scalar}
)
"""By the word for `anchors` of a source."""


def anchor(operation: Operation, form: str) -> str:
    """The fragment of a link to the operation; empty when the form says nothing of operations.

    The form is a renderer's name, or a pattern with {tag}, {operation}, {method}, {METHOD} and {path}.
    """
    if form in RENDERERS:
        fragment = RENDERERS[form](operation)
    elif "{" in form:
        values = {
            "tag": operation.tag,
            "operation": operation.id,
            "method": operation.method,
            "METHOD": operation.method.upper(),
            "path": operation.path,
        }
        fragment = re.sub(r"\{(\w+)\}", lambda found: values.get(found[1], found[0]), form)
    else:
        return ""
    return _UNSAFE.sub(lambda found: quote(found[0]), fragment)

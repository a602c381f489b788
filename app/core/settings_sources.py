"""Collects the values of the settings from the environment, `.env`, docs-assistant.toml and files with secrets, and words their errors."""

import io
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from dotenv import dotenv_values
from dotenv.parser import Original, parse_stream
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from app.core.errors import did_you_mean, nearest, quoted
from app.core.hooks import VARIABLE
from app.core.log_message import masked

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
    """Says in a sentence what a value must be, from the field that has it; `lists` says how a list of texts is written."""
    if details["type"] == "value_error":
        return str(details["ctx"]["error"])
    name, *inner = details["loc"]
    field = fields[str(name)]
    schema: Any = TypeAdapter[Any](Annotated[field.annotation, field]).json_schema()  # type: ignore[arg-type]
    for _ in inner:
        values = schema.get("additionalProperties", schema.get("items"))
        schema = values if isinstance(values, dict) else {}
    return f"it must be {_must_be(schema, lists)}."


def _must_be(schema: Mapping[str, Any], lists: str) -> str:
    schema = schema.get("anyOf", [schema])[0]
    if "enum" in schema:
        *most, last = (str(choice) or "empty" for choice in schema["enum"])
        return f"{', '.join(most)} or {last}"
    names = {"boolean": "true or false", "integer": "a whole number", "number": "a number", "object": OBJECT}
    return (names | {"array": lists}).get(schema.get("type", ""), "a text") + _limits(schema)


def _limits(schema: Mapping[str, Any]) -> str:
    if {"minimum", "maximum"} <= schema.keys():
        return f" from {schema['minimum']:.15g} to {schema['maximum']:.15g}"
    words = {
        "minimum": ", at least",
        "exclusiveMinimum": " above",
        "maximum": ", at most",
        "exclusiveMaximum": " below",
    }
    return "".join(f"{word} {schema[name]:.15g}" for name, word in words.items() if name in schema)


FILE = "docs-assistant.toml"
ENVIRONMENT = "environment"
PREFIX = "DOCS_"
OTHERS = ("DOCS_TEST_", VARIABLE)
"""Beginnings of variables of the tests and benchmarks of this project, and the one that names plugins."""
IN_FILE = "_file"
"""Ending of the name that has the path of a file with the value."""
TUNING = "TUNING__"
REMOVE = "Remove it: names that begin with DOCS_ are settings."


@dataclass(frozen=True, slots=True)
class Origin:
    """Origin of a value: the environment or a file, and the name of the setting there."""

    place: str
    name: str

    def __str__(self) -> str:
        return self.name if self.place == ENVIRONMENT else f"{self.place}: {self.name}"


@dataclass(slots=True)
class Given:
    """The values by setting with their origins, and what is wrong in the places that they come from."""

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[str, Origin] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Names:
    """Names of the settings: `keys` has the key in docs-assistant.toml of each, such as `llm.url` for `llm_url`.

    The value of a setting in `secrets` may be in a file of its own: `DOCS_LLM_KEY_FILE` or `llm.key_file` has its path.
    """

    keys: Mapping[str, str]
    secrets: frozenset[str]

    def variable(self, name: str) -> str:
        """The environment variable of a setting, or of a setting and `_file`."""
        tuned = self.keys.get(name, self.keys.get(name.removesuffix(IN_FILE), "")).startswith("tuning.")
        return f"{PREFIX}{TUNING * tuned}{name.upper()}"

    def variables(self) -> dict[str, str]:
        """The setting, or setting and `_file`, of each environment variable."""
        known = [*self.keys, *(name + IN_FILE for name in self.secrets)]
        return {self.variable(name): name for name in known}

    def in_file(self) -> dict[str, str]:
        """The setting, or setting and `_file`, of each key in docs-assistant.toml."""
        paths = {self.keys[name] + IN_FILE: name + IN_FILE for name in self.secrets}
        return {key: name for name, key in self.keys.items()} | paths


Found = tuple[str, Any, Origin]
"""A setting, or setting and `_file`, with its value and where it was written."""


def collect(names: Names, env_file: Path | None, override: Mapping[str, Any]) -> Given:
    """The values of all settings that `override` doesn't have. Without `env_file`, only the environment is read."""
    collected = Given()
    sources = [_environment(names, collected.problems)]
    if env_file:
        sources.append(_env_file(env_file, names, collected.problems))
        sources.append(_settings_file(env_file.with_name(FILE), names, collected.problems))
    first: dict[str, tuple[Any, Origin]] = {}
    for name, value, origin in chain.from_iterable(sources):
        first.setdefault(name, (value, origin))
    for name, (value, origin) in first.items():
        if name in names.keys and name not in override:
            collected.values[name], collected.origins[name] = value, origin
    for name, (path, origin) in first.items():
        setting = name.removesuffix(IN_FILE)
        if name not in names.keys and setting not in override:
            _read_secret(setting, str(path), origin, collected)
    return collected


def _environment(names: Names, problems: list[str]) -> Iterator[Found]:
    known = names.variables()
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    services = _service_variables(variables)
    for name, value in variables.items():
        if name.startswith(OTHERS) or name in services:
            continue
        if name in known:
            yield known[name], value, Origin(ENVIRONMENT, name)
        else:
            problems.append(_unknown(name, known, REMOVE))


def _service_variables(variables: Mapping[str, str]) -> set[str]:
    """Returns the variables that Kubernetes gives each container for a Service named `docs` or `docs-…`.

    The address `DOCS_PORT=tcp://10.0.0.7:80` is no port that somebody chose.
    """
    services = [
        name.removesuffix("PORT")
        for name, value in variables.items()
        if name.endswith("_PORT") and re.match(r"(?:tcp|udp|sctp)://", value)
    ]
    return {
        name
        for name in variables
        for service in services
        if name.startswith(service)
        and re.fullmatch(r"(?:PORT|SERVICE_(?:HOST|PORT))(?:_\w+)?", name.removeprefix(service))
    }


def _env_file(path: Path, names: Names, problems: list[str]) -> Iterator[Found]:
    known, lines = names.variables(), _lines(path, problems)
    for name, value in dotenv_values(stream=io.StringIO("".join(line.string for line in lines.values()))).items():
        if name in known:
            yield known[name], value, Origin(path.name, name)
        elif name.upper().startswith(PREFIX) and not name.startswith(OTHERS):
            problems.append(f"{path.name}, line {lines[name].line}: {_unknown(name, known, REMOVE)}")


def _lines(path: Path, problems: list[str]) -> dict[str, Original]:
    """The line of each name. What python-dotenv would skip with a warning is a problem, and so is a name with two lines."""
    lines: dict[str, Original] = {}
    for binding in parse_stream(io.StringIO(_text(path, problems) or "")):
        where, name = f"{path.name}, line {binding.original.line}", binding.key
        if binding.error:
            problems.append(f"{where} isn't a setting: write NAME=value.")
        elif name and binding.value is None:
            problems.append(f"{where}: {name} has no value: write {name}=value.")
        elif name and name in lines:
            problems.append(f"{where}: {name} is already in line {lines[name].line}. Keep one of them.")
        elif name:
            lines[name] = binding.original
    return lines


def _settings_file(path: Path, names: Names, problems: list[str]) -> Iterator[Found]:
    try:
        content = tomllib.loads(_text(path, problems) or "")
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path.name} isn't valid TOML: {error}.")
        return
    known = names.in_file()
    tables = f"The tables are {', '.join(dict.fromkeys(key.partition('.')[0] for key in known))}."
    for key, value in _by_key(content):
        if key in known:
            yield known[key], value, Origin(path.name, key)
        else:
            problems.append(f"{path.name}: {_unknown(key, known, tables)}")


def _by_key(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value


def _unknown(written: str, known: Mapping[str, str], otherwise: str) -> str:
    """The error for a name that isn't in `known`, which has the setting of each name: with the most similar name."""
    names = {setting: name for name, setting in known.items()}
    table, _, last = written.lower().rpartition(".")
    whole = written.lower().removeprefix(PREFIX.lower()).removeprefix(TUNING.lower()).replace(".", "_")
    tried = (whole.removesuffix(IN_FILE), last)
    same = [name for name in known if name.endswith(f".{last}")]
    near = (nearest(name, names) for name in tried)
    setting = next((name for name in (*(name for name in tried if name in names), *near) if name), "")
    if len(same) > 1 and not nearest(table, [name.partition(".")[0] for name in known]):  # such as a url, in no table
        return f"there is no setting {written}. Did you mean {', '.join(same[:-1])} or {same[-1]}?"
    return f"there is no setting {written}. {f'Did you mean {names[setting]}?' if setting else otherwise}"


def _text(path: Path, problems: list[str], name: str = "") -> str | None:
    """The file's text, or None if it can't be read, which is a problem. Only a file with a `name` must be there."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        problem = "it isn't written in UTF-8"
    except OSError as error:
        if not name and (isinstance(error, FileNotFoundError) or (path / "pyvenv.cfg").exists()):
            return None  # there is no such file, but maybe a virtual environment named .env
        problem = error.strerror or str(error)
    problems.append(f"{name or path.name} can't be read: {problem}.")
    return None


def _read_secret(setting: str, path: str, origin: Origin, given: Given) -> None:
    """Take the value from the file. A value beside it, a file that can't be read and an empty one are problems."""
    if setting in given.values:
        given.problems.append(f"{given.origins[setting]} and {origin} both set the same secret: keep one of them.")
    elif not path:
        given.problems.append(f"{origin} is empty: write the path of a file, or remove the setting.")
    elif (text := _text(Path(path), given.problems, f"{origin}: the file {path}")) and text.strip():
        given.values[setting], given.origins[setting] = text.strip(), Origin(path, origin.name)
    elif text is not None:
        given.problems.append(f"{origin}: the file {path} is empty.")

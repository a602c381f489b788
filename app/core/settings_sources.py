"""Collects the values of the settings from the environment, `.env`, docs-assistant.toml and files with secrets."""

from __future__ import annotations

import io
import os
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dotenv import dotenv_values
from dotenv.parser import Original, parse_stream

from app.core.nearest import nearest

FILE = "docs-assistant.toml"
ENVIRONMENT = "environment"
PREFIX = "DOCS_"
TESTS = "DOCS_TEST_"
"""Variables of the tests and benchmarks of this project, which are no settings."""
IN_FILE = "_file"
"""Ending of the name that has the path of a file with the value."""
SHORT = {"embedding": "embedding_model"}


@dataclass(frozen=True, slots=True)
class Origin:
    """Where a value was written: the environment or a file, and the name of the setting there."""

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
    """How the settings are written: `keys` has the key in docs-assistant.toml of each, such as `llm.url` for `llm_url`.

    The value of a setting in `secrets` may be in a file of its own: `DOCS_LLM_KEY_FILE` or `llm.key_file` has its path.
    """

    keys: Mapping[str, str]
    secrets: frozenset[str]

    def variables(self) -> dict[str, str]:
        """The setting, or setting and `_file`, of each environment variable."""
        known = [*self.keys, *(name + IN_FILE for name in self.secrets)]
        return {PREFIX + name.upper(): name for name in known} | {
            PREFIX + short.upper(): name for short, name in SHORT.items()
        }

    def in_file(self) -> dict[str, str]:
        """The setting, or setting and `_file`, of each key in docs-assistant.toml."""
        paths = {self.keys[name] + IN_FILE: name + IN_FILE for name in self.secrets}
        return {key: name for name, key in self.keys.items()} | paths


Found = tuple[str, Any, Origin]
"""A setting, or setting and `_file`, with its value and where it was written."""


def collect(names: Names, env_file: Path | None, override: Mapping[str, Any]) -> Given:
    """The values of all settings that `override` doesn't have. Without `env_file`, only the environment is read."""
    given = Given()
    sources = [_environment(names, given.problems)]
    if env_file:
        sources.append(_env_file(env_file, names, given.problems))
        sources.append(_settings_file(env_file.with_name(FILE), names, given.problems))
    found: dict[str, tuple[Any, Origin]] = {}
    for source in sources:
        found = {**_each_once(source, given.problems), **found}
    for name, (value, origin) in found.items():
        if name in names.keys and name not in override:
            given.values[name], given.origins[name] = value, origin
    for name, (path, origin) in found.items():
        setting = name.removesuffix(IN_FILE)
        if name not in names.keys and setting not in override:
            _read_secret(setting, str(path), origin, given)
    return given


def _each_once(source: Iterator[Found], problems: list[str]) -> dict[str, tuple[Any, Origin]]:
    found: dict[str, tuple[Any, Origin]] = {}
    for name, value, origin in source:
        if name in found:
            problems.append(f"{found[name][1]} and {origin.name} are the same setting: keep one of them.")
        found[name] = (value, origin)
    return found


def _environment(names: Names, problems: list[str]) -> Iterator[Found]:
    known = names.variables()
    variables = {name: value for name, value in os.environ.items() if name.startswith(PREFIX)}
    services = _service_variables(variables)
    for name, value in variables.items():
        if name.startswith(TESTS) or name in services:
            continue
        if name in known:
            yield known[name], value, Origin(ENVIRONMENT, name)
        else:
            problems.append(_unknown_variable(name, known))


def _service_variables(variables: Mapping[str, str]) -> set[str]:
    """What Kubernetes puts into the environment of each container for a Service named `docs` or `docs-…`.

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
        elif name.upper().startswith(PREFIX) and not name.startswith(TESTS):
            problems.append(f"{path.name}, line {lines[name].line}: {_unknown_variable(name, known)}")


def _lines(path: Path, problems: list[str]) -> dict[str, Original]:
    """The line of each name. What python-dotenv would skip with a warning is a problem, and so is a name with two lines."""
    lines: dict[str, Original] = {}
    for found in parse_stream(io.StringIO(_text(path, problems))):
        where, name = f"{path.name}, line {found.original.line}", found.key
        if found.error:
            problems.append(f"{where} isn't a setting: write NAME=value.")
        elif name and found.value is None:
            problems.append(f"{where}: {name} has no value: write {name}=value.")
        elif name and name in lines:
            problems.append(f"{where}: {name} is already in line {lines[name].line}. Keep one of them.")
        elif name:
            lines[name] = found.original
    return lines


def _unknown_variable(name: str, known: Mapping[str, str]) -> str:
    if (plain := name.removesuffix(IN_FILE.upper())) in known:
        return f"there is no setting {name}. Did you mean {plain}? Only a secret may be in a file of its own."
    rest = nearest(name.upper().removeprefix(PREFIX), [one.removeprefix(PREFIX) for one in known])
    remedy = f"Did you mean {PREFIX}{rest}?" if rest else "Remove it: names that begin with DOCS_ are settings."
    return f"there is no setting {name}. {remedy}"


def _settings_file(path: Path, names: Names, problems: list[str]) -> Iterator[Found]:
    try:
        content = tomllib.loads(_text(path, problems))
    except tomllib.TOMLDecodeError as error:
        problems.append(f"{path.name} isn't valid TOML: {error}.")
        return
    known = names.in_file()
    for key, value in _by_key(content):
        if key in known:
            yield known[key], value, Origin(path.name, key)
        else:
            problems.append(f"{path.name}: {_unknown_key(key, list(known))}")


def _by_key(content: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in content.items():
        if isinstance(value, dict):
            yield from ((f"{name}.{key}", inner) for key, inner in value.items())
        else:
            yield name, value


def _unknown_key(key: str, known: list[str]) -> str:
    """The error for an unknown key, with the setting of the most similar name in any table."""
    short = {name.partition(".")[2]: name for name in known}
    spellings = {**short, **{name.replace(".", "_"): name for name in known}, **{name: name for name in known}}
    wanted = key.lower().removeprefix(PREFIX.lower())
    last = wanted.rpartition(".")[2]
    tables = dict.fromkeys(name.partition(".")[0] for name in known)
    same = [name for name in known if name.partition(".")[2] == last]
    if len(same) > 1 and not nearest(wanted.partition(".")[0], tables):  # such as a url, in a table that doesn't exist
        return f"there is no setting {key}. Did you mean {', '.join(same[:-1])} or {same[-1]}?"
    found = last if last in short else nearest(wanted, spellings) or nearest(last, spellings)
    remedy = f"Did you mean {spellings[found]}?" if found else f"The tables are {', '.join(tables)}."
    return f"there is no setting {key}. {remedy}"


def _text(path: Path, problems: list[str]) -> str:
    """The file's text; empty if there is no file or it can't be read, which is a problem."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        return ""
    except IsADirectoryError:  # Docker makes one where a mounted file is missing; a virtual environment may be one
        if not (path / "pyvenv.cfg").exists():
            problems.append(f"{path.name} is a directory, but must be a file.")
    except UnicodeDecodeError:
        problems.append(f"{path.name} can't be read: it isn't written in UTF-8.")
    except OSError as error:
        problems.append(f"{path.name} can't be read: {error.strerror}.")
    return ""


def _read_secret(setting: str, path: str, origin: Origin, given: Given) -> None:
    """Take the value from the file. A value beside it, a file that can't be read and an empty one are problems."""
    if setting in given.values:
        given.problems.append(f"{given.origins[setting]} and {origin} both set the same secret: keep one of them.")
        return
    try:
        value = Path(path).read_text(encoding="utf-8-sig").strip() if path else ""
    except UnicodeDecodeError:
        given.problems.append(f"{origin}: the file {path} can't be read: it isn't written in UTF-8.")
    except OSError as error:
        given.problems.append(f"{origin}: the file {path} can't be read: {error.strerror}.")
    else:
        if not path:
            given.problems.append(f"{origin} is empty: write the path of a file, or remove the setting.")
        elif not value:
            given.problems.append(f"{origin}: the file {path} is empty.")
        else:
            given.values[setting], given.origins[setting] = value, Origin(path, origin.name)

"""`docs-assistant init`: writes docs-assistant.toml with the settings that are given and all others as comments; keys go into .env."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import sys
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, get_args, get_origin
from urllib.parse import urlsplit

import click
import dotenv
from pydantic import SecretStr
from pydantic.fields import FieldInfo

from app.core.errors import SettingsError
from app.core.settings import FIELDS, FILE_KEYS, NAMES, TABLES, Settings
from app.core.settings_sources import FILE, IN_FILE, Origin

ENV = ".env"
PRIVATE = 0o600
HEAD = """\
# Settings of docs-assistant, written by docs-assistant init. Lines that begin with #name show the default: remove the # to
# change it. Environment variables and .env override this file; docs-assistant check shows what is in effect.
{rest}"""
# an empty list of keys, or no file of them, would be an error
EXAMPLES = {"api_keys": ("long-random-key-1",), "admin_keys": ("long-random-key-2",), "keys": "keys.toml"}
COMMON = frozenset(
    """
    store sites sources crawl_allow user_agent max_lost embedding_model embedding_url llm_url llm_model llm_key
    llm_context_window top_k min_evidence languages default_language prompts assistants host port allowed_hosts
    trusted_proxies api_keys admin_keys log_level log_json
    """.split()  # noqa: SIM905  # one line each otherwise
)
"""Settings that many operators change; the others are in the file only on request."""
MACHINE, KEYS = "this-machine", "keys"
HOSTS = {MACHINE: "127.0.0.1", KEYS: "0.0.0.0"}  # noqa: S104  # only with a key
OPTIONS = {
    "sites": ("--site", "address of a sitemap or a site; several separated by spaces"),
    "store": ("--store", "a directory or an OpenSearch address"),
    "llm_url": ("--model-url", "address of an OpenAI-compatible API; DOCS_LLM_KEY in the environment is its key"),
    "llm_model": ("--model", "name of the language model"),
    "languages": ("--languages", "codes of the languages, the default one first"),
    "allowed_hosts": ("--host-name", "host name under which other machines reach the service"),
    "port": ("--port", "port to listen on"),
}


@click.command(params=[click.Option([option, field], help=text) for field, (option, text) in OPTIONS.items()])
@click.option("--access", type=click.Choice((MACHINE, KEYS)), help="who may use the service; keys makes a key")
@click.option(
    "--force", is_flag=True, help="change existing files; their other settings stay, and the old files are kept as .bak"
)
@click.option("--print", "only_print", is_flag=True, help=f"only print {FILE} with every setting and its default")
def init(access: str | None, force: bool, only_print: bool, **options: str | None) -> int:
    """Writes docs-assistant.toml with the settings that the options give, and the others as comments; keys and passwords go into .env."""
    if only_print:
        print(settings_text({}, every=True), end="")
        return 0
    there = ", ".join(name for name in (FILE, ENV) if Path(name).exists())
    if there and not force:
        raise SettingsError(
            f"{there} already exists. Add --force to change it: its other settings stay, and the old file is kept as .bak."
        )
    given = dict(_given(options))
    if access:
        given["host"] = HOSTS[access]
    settings, origins = Settings.load_with_origins(
        **given
    )  # a mistake in a value is an error before anything is written
    secret = {name: value for name, value in given.items() if _has_password(value)}
    values = {name: value for name, value in given.items() if name not in secret}
    if access == KEYS and not settings.api_keys:
        secret["api_keys"] = secrets.token_urlsafe(24)
    if "llm_url" in given and (key := settings.llm_key.get_secret_value()):
        secret["llm_key"] = key
    written = {name: value if isinstance(value, str) else " ".join(value) for name, value in secret.items()}
    write_settings(values, written, kept_in_file(settings, origins))
    print("\n".join(_said(values, written)))
    return 0


def _given(options: Mapping[str, str | None]) -> Iterator[tuple[str, Any]]:
    """Yields the settings that the options give, by field."""
    for name, text in options.items():
        if text is None:
            continue
        words = text.replace(",", " ").split()
        if name == "sites":
            yield name, tuple(word if "://" in word or word.endswith(".toml") else f"https://{word}" for word in words)
        elif name == "port":
            yield name, int(text) if text.isdecimal() else text
        elif name in ("languages", "allowed_hosts"):
            yield name, tuple(words)
        else:
            yield name, text.strip()
        if name == "languages" and words:
            yield "default_language", words[0]


def _has_password(value: object) -> bool:
    words = [value] if isinstance(value, str) else value if isinstance(value, tuple) else ()
    return any(urlsplit(word).password for word in words if "://" in word)


def _said(values: Mapping[str, Any], secret: Mapping[str, str]) -> Iterator[str]:
    """Yields the lines that say what was written, and the next commands; the last line starts the service."""
    yield f"Written: {FILE}"
    if secret:
        yield f"Written: {ENV}, readable only by you, with {', '.join(map(NAMES.variable, secret))}"
    if key := secret.get("api_keys"):
        yield f"The key for clients: {key}"
    for name in overridden(values, secret):
        yield f"Warning: {name} is set in the environment and overrides the file."
    program = _program()
    if values.get("llm_model"):
        yield f"Examine the model before readers meet it, which takes some minutes; the service heeds the result:\n  {program} check --exam"
    yield f"See what works; before the first run, no page is indexed:\n  {program} check"
    yield f"Index the site, or this product's own documentation, and start the service:\n  {program} run"


def _program() -> str:
    """Returns the command that starts this program again."""
    if shutil.which("docs-assistant"):
        return "docs-assistant"
    started = Path(sys.argv[0])
    return str(started) if started.name == "docs-assistant" else f"{sys.executable} -P -m docs_assistant.cli"


def settings_text(values: Mapping[str, Any], in_env: Collection[str] = (), *, every: bool = False) -> str:
    """The file with these values by field, and all other settings as comments; those `in_env` say where they are."""
    shown = set(FIELDS) if every else {*COMMON, *in_env, *(name.removesuffix(IN_FILE) for name in values)}
    rest = "" if every else "# All settings: docs-assistant init --print\n"
    blocks = [HEAD.format(rest=rest)]
    for table, group in TABLES.items():
        lines = [f"# ---- {group.__doc__}", f"[{table}]"]
        for name, field in group.model_fields.items():
            if name in shown:
                lines += [f"# {field.description}", _line(name, field, values, in_env)]
        if len(lines) > 2:
            blocks.append("\n".join(lines) + "\n")
    return "\n".join(blocks)


def _line(name: str, field: FieldInfo, values: Mapping[str, Any], in_env: Collection[str]) -> str:
    key = FILE_KEYS[name].partition(".")[2]
    if name in in_env:
        return f"# {key} is in .env: {NAMES.variable(name)}"
    if written := [key_name for key_name in (name, name + IN_FILE) if key_name in values]:
        return "\n".join(f"{key}{key_name.removeprefix(name)} = {_toml(values[key_name])}" for key_name in written)
    default = EXAMPLES.get(name, field.get_default(call_default_factory=True))
    if get_origin(field.annotation) is Literal:
        others = ", ".join(_toml(value) for value in get_args(field.annotation) if value != default)
        return f"#{key} = {_toml(default)}   # or {others}"
    return f"#{key} = {_toml(default)}"


def _toml(value: Any) -> str:
    match value:
        case SecretStr():
            return _toml(value.get_secret_value())
        case str():
            return json.dumps(value, ensure_ascii=False)
        case Mapping():
            items = ", ".join(f"{_toml(key)} = {_toml(item)}" for key, item in value.items())
            return f"{{ {items} }}" if items else "{}"
        case tuple() | list():
            return f"[{', '.join(map(_toml, value))}]"
        case _:
            return json.dumps(value)


def kept_in_file(settings: Settings, origins: Mapping[str, Origin]) -> dict[str, Any]:
    """Returns the contents of docs-assistant.toml by field: values, and the paths of files with secrets."""
    values = {name: settings.value(name) for name, origin in origins.items() if origin.place == FILE}
    paths = {
        name + IN_FILE: origin.place for name, origin in origins.items() if origin.name == f"{FILE_KEYS[name]}{IN_FILE}"
    }
    return values | paths


def write_settings(values: Mapping[str, Any], secret: Mapping[str, str], kept: Mapping[str, Any]) -> None:
    """Write `values` and what is `kept`, by field, into docs-assistant.toml, and `secret` into .env, for its owner only.

    Raises `SettingsError` if that fails. Each file is replaced as a whole.
    """
    old = {name: value for name, value in kept.items() if name.removesuffix(IN_FILE) not in secret}
    try:
        with TemporaryDirectory(prefix=".docs-assistant-", dir=".") as folder:
            new = Path(folder)
            (new / FILE).write_text(settings_text(old | dict(values), secret), encoding="utf-8")
            _write_env(new / ENV, values, secret)
            for name in (ENV, FILE):
                if (new / name).exists():
                    _replace(new / name, Path(name))
    except OSError as error:
        raise SettingsError(f"{Path.cwd()} can't be written to: {error.strerror or error}.") from error


def overridden(*written: Mapping[str, Any]) -> list[str]:
    """The environment variables that override what was written."""
    names = (NAMES.variable(name) for values in written for name in values)
    return [name for name in names if name in os.environ]


def _write_env(new: Path, values: Mapping[str, Any], secret: Mapping[str, str]) -> None:
    """Write the next .env, if it changes; what docs-assistant.toml says now must not be overridden by it."""
    old = dotenv.dotenv_values(ENV) if Path(ENV).exists() else {}
    other_places = [*values, *(name + IN_FILE for name in secret)]
    stale = [name for setting in other_places if (name := NAMES.variable(setting)) in old]
    if not secret and not stale:
        return
    new.touch(PRIVATE)
    if Path(ENV).exists():
        new.write_bytes(Path(ENV).read_bytes())
    for name in stale:
        dotenv.unset_key(new, name)
    for name, value in secret.items():
        dotenv.set_key(new, NAMES.variable(name), value)


def _replace(new: Path, file: Path) -> None:
    """Replace the file, which stays as private as it was. `new` is in a directory that only its owner can open."""
    if file.exists():
        new.chmod(new.stat().st_mode & file.stat().st_mode)
        backup = new.with_name(f"{file.name}.bak")
        shutil.copyfile(file, backup)
        backup.chmod(PRIVATE)
        backup.replace(file.with_name(backup.name))
    new.replace(file)

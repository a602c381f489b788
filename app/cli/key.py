"""`docs-assistant key`: makes keys for the file that DOCS_KEYS names, lists them, and removes one."""

import json
import re
import secrets
import shutil
import sys
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import click

from app.cli.shared import table_lines
from app.core.errors import SettingsError, did_you_mean
from app.core.settings import Settings
from app.core.settings_types import HASHED

PREFIX = "da_"
"""So that people, and programs that look for secrets in files, see what the key is for."""
BYTES = 32
_ENTRY = re.compile(r"^(?=[ \t]*\[\[[ \t]*key[ \t]*\]\])", re.MULTILINE)
"""The place before each entry, with the comments below the one before."""
COLUMNS = ("name", "role", "assistants", "collections", "origins", "rate", "concurrency", "expires", "note")


@click.command
@click.argument("name", metavar="NAME", help="who uses the key; logs show it")
@click.option("--role", default="reader", help="reader, widget (public, for web pages) or admin; default: reader")
@click.option(
    "--origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="a site that may use this widget key, such as https://docs.example.org; may be repeated",
)
@click.option("--assistant", "assistants", multiple=True, help="an assistant that the key may use; may be repeated")
@click.option(
    "--collection", "collections", multiple=True, help="a collection that the key may search; may be repeated"
)
@click.option("--rate", help="questions over time, such as 60/minute, or 5/second;1000/day")
@click.option("--concurrency", type=int, metavar="N", help="answers at the same time")
@click.option("--expires", metavar="DATE", help="last day on which the key works, such as 2027-01-31")
@click.option("--note", help="anything that you want to remember")
def new(**values: Any) -> int:
    """Prints a new key, and adds its entry, which has only a hash, to the file of DOCS_KEYS.

    Without DOCS_KEYS, prints the entry, too. Nothing is written if the entry isn't valid.
    """
    from app.api.middleware.keys import parse_keys

    settings, key = Settings.load(), PREFIX + secrets.token_urlsafe(BYTES)
    entry = _entry(values, HASHED + sha256(key.encode()).hexdigest())
    path = Path(settings.keys or "keys.toml")
    before = path.read_text("utf-8") if settings.keys and path.exists() else ""
    parse_keys(f"{before}\n{entry}", str(path), settings)
    if settings.keys:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{entry}" if before.endswith("\n") else f"\n\n{entry}" if before else entry)
        said = f"Added to {path}: {values['name']}."
    else:
        said = f"Add this to a file of keys, and name the file in DOCS_KEYS:\n\n{entry}"
    print(f"{said}\nThe key, which is shown only now:", file=sys.stderr)
    print(key)
    return 0


@click.command
@click.argument("name", metavar="NAME", help="name of the key, as key list shows it")
def revoke(name: str) -> int:
    """Removes the key of this name from the file of DOCS_KEYS; a running service refuses it from the next request on.

    Other keys and comments stay as they are.
    """
    from app.api.middleware.keys import parse_keys, read_keys

    settings = _with_file()
    known = [key.name for key in read_keys(settings.keys, settings)]
    if name not in known:
        hint = f"{did_you_mean(name, known)} It has: {', '.join(known) or 'none'}."
        raise SettingsError(f"{settings.keys} has no key {name!r}.{hint}")
    path = Path(settings.keys)
    head, *entries = _ENTRY.split(path.read_text("utf-8"))
    text = "".join([head, *(entry for entry, other in zip(entries, known, strict=False) if other != name)])
    if [key.name for key in parse_keys(text, str(path), settings)] != [other for other in known if other != name]:
        raise SettingsError(f"{path} isn't written as key new writes it: remove the entry of {name!r} by hand.")
    new = path.with_name(f"{path.name}.new")  # a service reads the old file or the new one
    new.write_text(text, "utf-8")
    shutil.copystat(path, new)
    new.replace(path)
    print(f"Removed from {path}: {name}.", file=sys.stderr)
    return 0


@click.command
def list_keys() -> int:
    """Lists the keys of the file, without secrets."""
    from app.api.middleware.keys import read_keys

    settings = _with_file()
    rows = []
    for key in read_keys(settings.keys, settings):
        values = {name: getattr(key, name) for name in COLUMNS}
        values |= {name: " ".join(value) for name, value in values.items() if isinstance(value, list)}
        values["concurrency"] = key.concurrency or ""
        values["expires"] = f"{key.expires or ''}{' (expired)' if key.expired else ''}"
        rows.append(list(values.values()))
    print("\n".join(table_lines(COLUMNS, rows)) if rows else f"{settings.keys} has no keys.")
    return 0


def _with_file() -> Settings:
    settings = Settings.load()
    if not settings.keys:
        raise SettingsError(
            "There is no file of keys: set DOCS_KEYS to the path of one. docs-assistant key new makes keys."
        )
    return settings


def _entry(given: Mapping[str, Any], hashed: str) -> str:
    """The `[[key]]` of the key. JSON's texts, lists and numbers are also TOML's; a date has no quotation marks there."""
    values = {"name": given["name"], "hash": hashed}
    values |= {name: given[name] for name in COLUMNS[1:] if given[name] not in (None, ())}
    lines = (
        f"{name} = {value if name == 'expires' else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    )
    return "\n".join(["[[key]]", *lines, ""])

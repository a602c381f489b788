"""`docs-assistant key`: makes keys for the file that DOCS_KEYS names, and lists them."""

from __future__ import annotations

import argparse
import json
import secrets
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

from app.cli.options import Commands
from app.cli.output import table_lines
from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.settings_types import HASHED

PREFIX = "da_"
"""So that people, and programs that look for secrets in files, see what the key is for."""
BYTES = 32
COLUMNS = ("name", "role", "assistants", "collections", "origins", "rate", "concurrency", "expires", "note")


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("key", help="make and list the keys of clients")
    actions = parser.add_subparsers(metavar="ACTION", required=True)
    new = actions.add_parser(
        "new",
        help="make a key and print it, once",
        description="Prints a new key, and adds its entry, which has only a hash, to the file of DOCS_KEYS. Without DOCS_KEYS, prints the entry, too.",
    )
    new.add_argument("name", metavar="NAME", help="who uses the key; logs show it")
    new.add_argument(
        "--role", default="reader", help="reader, widget (public, for web pages) or admin; default: reader"
    )
    lists = {
        "origin": "a site that may use this widget key, such as https://docs.example.org",
        "assistant": "an assistant that the key may use",
        "collection": "a collection that the key may search",
    }
    for option, what in lists.items():
        new.add_argument(
            f"--{option}",
            action="append",
            metavar=option.upper(),
            dest=f"{option}s",
            help=f"{what}; may be repeated",
        )
    new.add_argument("--rate", help="questions over time, such as 60/minute, or 5/second;1000/day")
    new.add_argument("--concurrency", type=int, metavar="N", help="answers at the same time")
    new.add_argument("--expires", metavar="DATE", help="last day on which the key works, such as 2027-01-31")
    new.add_argument("--note", help="anything that you want to remember")
    new.set_defaults(handler=new_key)
    listed = actions.add_parser("list", help="list the keys of the file, without secrets")
    listed.set_defaults(handler=list_keys)


def new_key(arguments: argparse.Namespace) -> int:
    """Print the key on standard output. Raises `SettingsError` if the entry isn't valid; then nothing is written."""
    from app.api.key_file import parse_keys

    settings, key = Settings.load(), PREFIX + secrets.token_urlsafe(BYTES)
    entry = _entry(arguments, HASHED + sha256(key.encode()).hexdigest())
    path = Path(settings.keys or "keys.toml")
    before = path.read_text("utf-8") if settings.keys and path.exists() else ""
    parse_keys(f"{before}\n{entry}", str(path), settings)
    if settings.keys:
        with path.open("a", encoding="utf-8") as file:
            file.write(f"\n{entry}" if before.endswith("\n") else f"\n\n{entry}" if before else entry)
        said = f"Added to {path}: {arguments.name}."
    else:
        said = f"Add this to a file of keys, and name the file in DOCS_KEYS:\n\n{entry}"
    print(f"{said}\nThe key, which is shown only now:", file=sys.stderr)
    print(key)
    return 0


def list_keys(_: argparse.Namespace) -> int:
    """Print a table of the keys."""
    from app.api.key_file import read_keys

    settings = Settings.load()
    if not settings.keys:
        raise SettingsError(
            "There is no file of keys: set DOCS_KEYS to the path of one. docs-assistant key new makes keys."
        )
    rows = []
    for key in read_keys(settings.keys, settings):
        values = {name: getattr(key, name) for name in COLUMNS}
        values |= {name: " ".join(value) for name, value in values.items() if isinstance(value, list)}
        values["concurrency"] = key.concurrency or ""
        values["expires"] = f"{key.expires or ''}{' (expired)' if key.expired else ''}"
        rows.append(list(values.values()))
    print("\n".join(table_lines(COLUMNS, rows)) if rows else f"{settings.keys} has no keys.")
    return 0


def _entry(arguments: argparse.Namespace, hashed: str) -> str:
    """The `[[key]]` of the key. JSON's texts, lists and numbers are also TOML's; a date has no quotation marks there."""
    values: dict[str, Any] = {"name": arguments.name, "hash": hashed}
    values |= {name: getattr(arguments, name) for name in COLUMNS[1:] if getattr(arguments, name) is not None}
    lines = [
        f"{name} = {value if name == 'expires' else json.dumps(value, ensure_ascii=False)}"
        for name, value in values.items()
    ]
    return "\n".join(["[[key]]", *lines, ""])

"""`docs-assistant key`: makes keys for the file that DOCS_KEYS names, lists them, and removes one."""

import sys
from pathlib import Path
from typing import Any

import click

from app.core.errors import SettingsError
from app.core.settings import Settings
from docs_assistant.cli.shared import table_lines


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
    from app.routes.admin.keys import add_key, new_entry

    settings = Settings.load()
    key, entry = new_entry(settings, values)
    if settings.keys:
        Path(settings.keys).touch()
        key = add_key(settings, values)
        said = f"Added to {settings.keys}: {values['name']}."
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
    from app.routes.admin.keys import change_key

    settings = Settings.load()
    change_key(settings, {"name": name})
    print(f"Removed from {settings.keys}: {name}.", file=sys.stderr)
    return 0


@click.command
def list_keys() -> int:
    """Lists the keys of the file, without secrets."""
    from app.assistants.file import assistant_names
    from app.http.keys import read_keys
    from app.routes.admin.keys import COLUMNS, NO_FILE

    settings = Settings.load()
    if not settings.keys:
        raise SettingsError(NO_FILE)
    rows = []
    for key in read_keys(settings.keys, assistant_names(settings)):
        values = {name: getattr(key, name) or "" for name in COLUMNS}
        values |= {name: " ".join(value) for name, value in values.items() if isinstance(value, list)}
        values["expires"] = f"{values['expires']}{' (expired)' if key.expired else ''}"
        rows.append(list(values.values()))
    print("\n".join(table_lines(COLUMNS, rows)) if rows else f"{settings.keys} has no keys.")
    return 0

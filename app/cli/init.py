"""`docs-assistant init`: asks five questions, tries each answer, and writes docs-assistant.toml."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from pathlib import Path

from app.cli.dialogue import Dialogue, texts_of
from app.cli.options import Commands
from app.core.errors import SettingsError
from app.core.settings import Settings
from app.core.settings_sources import FILE

LANGUAGES = ("en", "cs")
MACHINE, KEYS = "this-machine", "keys"
OPTIONS = {
    "site": "address of a sitemap or a site; several separated by spaces",
    "store": "a directory or an OpenSearch address",
    "model_url": "address of an OpenAI-compatible API; DOCS_LLM_KEY in the environment is its key",
    "model": "name of the language model",
    "languages": "codes of the languages, the default one first",
    "host_name": "host name under which other machines reach the service",
    "port": "port to listen on",
}


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "init",
        help="ask five questions, try the answers, and write docs-assistant.toml",
        description=f"Asks five questions, tries each answer at once, and writes {FILE}; keys and passwords go into .env.",
    )
    for name, text in OPTIONS.items():
        parser.add_argument(f"--{name.replace('_', '-')}", metavar=name.upper(), help=text)
    parser.add_argument("--access", choices=(MACHINE, KEYS), help="who may use the service; keys makes a key")
    parser.add_argument("--yes", action="store_true", help="ask nothing: defaults for all that has no option")
    parser.add_argument(
        "--force", action="store_true", help="with --yes: accept what doesn't work, and change existing files"
    )
    parser.add_argument("--print", action="store_true", help=f"only print {FILE} with every setting and its default")
    parser.add_argument(
        "--language", choices=LANGUAGES, help="language of the questions (default: that of the terminal)"
    )
    parser.set_defaults(handler=init)


def init(arguments: argparse.Namespace) -> int:
    """Ask, try and write. Returns 1 if existing files are left as they are."""
    from app.cli.interview import Interview
    from app.cli.settings_text import settings_text
    from app.cli.written_settings import kept_in_file, overridden, write_settings

    if arguments.print:
        print(settings_text({}, every=True), end="")
        return 0
    given = {name: value for name in (*OPTIONS, "access") if (value := getattr(arguments, name)) is not None}
    texts = texts_of(arguments.language or _language_of_terminal())
    dialogue = Dialogue(texts, given, asks=not arguments.yes, force=arguments.force)
    try:
        if not _may_change(dialogue):
            dialogue.say("nothing_written")
            return 1
        settings, origins = Settings.load_with_origins()
        answers = Interview(dialogue, settings, origins).answers()
    except KeyboardInterrupt:
        print(f"\n{texts['nothing_written']}")
        raise
    write_settings(answers.values, answers.secret, kept_in_file(settings, origins))
    dialogue.say("written", file=FILE)
    if answers.secret:
        names = ", ".join(f"DOCS_{name.upper()}" for name in answers.secret)
        dialogue.say("written_secret", file=".env", names=names)
    if key := answers.secret.get("api_keys"):
        dialogue.say("key", key=key)
    for name in overridden(answers.values, answers.secret):
        dialogue.say("overridden", name=name)
    dialogue.say("next" if "sites" in {**answers.values, **answers.secret} else "next_none")
    print(f"  {_program()} run")
    return 0


def _language_of_terminal() -> str:
    return next((value for name in ("LC_ALL", "LC_MESSAGES", "LANG") if (value := os.environ.get(name))), "en")[:2]


def _may_change(dialogue: Dialogue) -> bool:
    """False if files are there and should stay. Raises `SettingsError` if no file can be written."""
    if not os.access(".", os.W_OK):
        raise SettingsError(f"{Path.cwd()} can't be written to: change to a directory of your own.")
    there = ", ".join(name for name in (FILE, ".env") if Path(name).exists())
    if not there or dialogue.confirmed("replace", file=there):
        return True
    if dialogue.asks:
        return False
    raise SettingsError(
        f"{there} already exists. Add --force to change it: its other settings stay, and the old file is kept as .bak."
    )


def _program() -> str:
    """How this program can be started again."""
    if shutil.which("docs-assistant"):
        return "docs-assistant"
    started = Path(sys.argv[0])
    return str(started) if started.name == "docs-assistant" else f"{sys.executable} -P -m app.cli"

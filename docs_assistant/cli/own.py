"""`docs-assistant prompts`: prompts of your own, with the shipped ones as a start."""

import difflib
import hashlib
import json
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from pathlib import Path

import click

from app.core.errors import PromptError
from app.core.language import read_text, shipped_languages
from app.core.prompts import own_files, shipped_files

RECORD = ".exported.json"


@click.command
@click.argument("directory", metavar="DIR", help="directory, created if it doesn't exist")
@click.argument("names", metavar="NAME", nargs=-1, help="a prompt, such as synthesize, en/style.md or 'persona/*'")
@click.option(
    "--language", multiple=True, type=click.Choice(shipped_languages()), help="only this language; can be repeated"
)
@click.option("--force", is_flag=True, help="replace files that differ from the shipped ones")
def export(directory: str, names: Sequence[str], language: Sequence[str], force: bool) -> int:
    """Writes shipped prompts into a directory for DOCS_PROMPTS: all of them, or those that you name.

    A file that was changed there is replaced only with --force.
    """
    folder, shipped = Path(directory), shipped_files()
    wanted = _wanted(shipped, names, language)
    changed = [name for name in wanted if _text(folder, name) not in {None, shipped[name]}]
    if changed and not force:
        raise PromptError(
            f"{folder} has {', '.join(changed)} already, with other content, so nothing was written."
            " Name other files or another directory, or replace these with --force."
        )
    try:
        for name in wanted:
            folder.joinpath(name).parent.mkdir(parents=True, exist_ok=True)
            folder.joinpath(name).write_text(shipped[name], encoding="utf-8")
        record = {**_record(folder), **{name: _digest(shipped[name]) for name in wanted}}
        folder.joinpath(RECORD).write_text(json.dumps(record, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    except OSError as error:
        raise PromptError(f"{folder} can't be written: {error}") from error
    replaced = f" ({', '.join(changed)} replaced)" if changed else ""
    print(f"""Written into {folder}: {len(wanted)} files{replaced}.

Delete the files that you don't change: then they follow the updates of Docs Assistant.
Compare answers after a change:
  docs-assistant eval run questions.jsonl --prompts {folder} --against shipped --out results/prompts
See what differs:
  docs-assistant prompts diff {folder}
Use them: DOCS_PROMPTS={folder}""")
    return 0


@click.command
@click.argument("directory", metavar="DIR", help="directory of DOCS_PROMPTS")
def diff(directory: str) -> int:
    """Prints the difference of each file of the directory to the shipped one, and which of these have changed since."""
    folder, shipped = Path(directory), shipped_files()
    names, record = own_files(str(folder)), _record(folder)
    same = [name for name in names if _text(folder, name) == shipped.get(name)]
    own = [name for name in names if name not in shipped]
    for name in names:
        if name not in same and name not in own:
            a, b = (text.splitlines() for text in (shipped[name], read_text(name, str(folder))))
            print(*difflib.unified_diff(a, b, f"shipped/{name}", str(folder / name), n=1, lineterm=""), sep="\n")
    updated = [
        name for name in names if name in shipped and record.get(name, _digest(shipped[name])) != _digest(shipped[name])
    ]
    for title, listed in (
        ("As shipped, so you can delete them", same),
        ("Shipped in another version than you exported; take over what you want", updated),
        ("Not among the shipped files", own),
    ):
        if listed:
            print(f"{title}: {', '.join(listed)}")
    return 0


def _wanted(shipped: Mapping[str, str], names: Sequence[str], languages: Sequence[str]) -> list[str]:
    """The shipped files that fit the names and languages. Raises `PromptError` for a name that fits none."""
    of_languages = [name for name in shipped if not languages or name.split("/")[0] in languages]
    for name in names:
        if not any(_fits(file, name) for file in of_languages):
            titles = dict.fromkeys(file.split("/", 1)[1].removesuffix(".md") for file in of_languages)
            raise PromptError(f"There is no prompt {name!r}. Available: {', '.join(titles)}.")
    return [file for file in of_languages if not names or any(_fits(file, name) for name in names)]


def _fits(file: str, name: str) -> bool:
    inside = file.split("/", 1)[1]
    return any(fnmatch(part, name) for part in (file, inside, inside.rpartition(".")[0]))


def _text(folder: Path, name: str) -> str | None:
    return read_text(name, str(folder)) if folder.joinpath(name).is_file() else None


def _record(folder: Path) -> dict[str, str]:
    """The digest of each shipped file when it was exported. Raises `PromptError` if the record can't be read."""
    path = folder / RECORD
    try:
        record = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
        return {str(name): str(digest) for name, digest in record.items()}
    except (OSError, ValueError, AttributeError) as error:
        raise PromptError(f"{path} can't be read ({error}). Delete it: then only the texts are compared.") from error


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]

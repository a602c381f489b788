"""`docs-assistant new step`: writes a step of your own with its prompts and its test, as a starting point."""

from __future__ import annotations

import argparse
import json
from importlib.resources import files
from pathlib import Path

from app.cli.options import Commands
from app.core.errors import SettingsError
from app.core.settings import Settings


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser("new", help="write a step of your own, as a starting point")
    kinds = parser.add_subparsers(metavar="KIND", required=True)
    step = kinds.add_parser(
        "step",
        help="a step with its prompts and its test",
        description="Writes NAME.py, test_NAME.py and prompts/LANGUAGE/NAME.md into the working directory.",
    )
    step.add_argument("name", metavar="NAME", help="in lower case, such as glossary or own_order")
    step.set_defaults(handler=new_step)


def new_step(arguments: argparse.Namespace) -> int:
    """Write the files, and print how to use them. Raises `SettingsError` for a name that can't be used."""
    from app.pipeline.registry import STEPS

    name, settings = arguments.name, Settings.load()
    if not name.isidentifier() or not name.islower() or name in STEPS:
        raise SettingsError(
            f"{name!r} can't be the name of a step: write lower-case letters, digits and _, and not the name of a shipped step."
        )
    class_ = "".join(part.capitalize() for part in name.split("_"))
    written = {Path(file.format(name)): _text(file.format("my_step")) for file in ("{}.py", "test_{}.py")}
    for code in settings.languages:
        shipped = code if files("app.cli").joinpath("templates/prompts", code).is_dir() else "en"
        written[Path("prompts", code, f"{name}.md")] = _text(f"prompts/{shipped}/my_step.md")
    if there := [str(path) for path in written if path.exists()]:
        raise SettingsError(f"{', '.join(there)} exists already. Choose another name, or delete it.")
    for path, text in written.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text.replace("my_step", name).replace("MyStep", class_), encoding="utf-8")
    print(_next_steps(name, f"{name}:{class_}", list(map(str, written))))
    return 0


def _text(name: str) -> str:
    return files("app.cli").joinpath("templates", name).read_text(encoding="utf-8")


def _next_steps(name: str, path: str, written: list[str]) -> str:
    steps = ["detect", ["refine", "keywords", "probe"], "retrieve", path, "relevance", "overview", "synthesize", "cite"]
    return f"""Written: {", ".join(written)}

Test it:
  python -m pytest test_{name}.py
Use it, in the file of DOCS_ASSISTANTS:
  steps = {json.dumps(steps)}
See where it stands, then measure answers with and without it:
  PYTHONPATH=. docs-assistant assistants
  PYTHONPATH=. docs-assistant eval grid questions.jsonl --steps"""

"""What the commands share: their arguments, exit codes, and how a result is saved and printed."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from app.core.settings import Settings
from app.models.protocols import Model
from eval.errors import EvaluationError
from eval.files import write_text
from eval.measure.gate import MAX_DROP
from eval.measure.retrieval import Finder

OK = 0
FAILED = 1
WRONG_INPUT = 2

Commands: TypeAlias = "argparse._SubParsersAction[argparse.ArgumentParser]"  # noqa: SLF001  # as typeshed names it


class OpenFinder(Protocol):
    """Opens an assistant with some settings replaced, and with this language model instead of the configured one."""

    def __call__(self, overrides: Mapping[str, Any], model: Model | None = None) -> AbstractAsyncContextManager[Finder]:
        """The assistant, closed at the end."""
        ...


NO_MODEL: Mapping[str, Any] = {"llm_url": "", "llm_class": ""}
"""Settings without the configured language model."""

Handler = Callable[[argparse.Namespace, Settings, OpenFinder], Awaitable[int]]


def positive(text: str) -> int:
    """A whole number of at least 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


def share(text: str) -> float:
    """A number from 0 to 1."""
    number = float(text)
    if not 0 <= number <= 1:
        raise argparse.ArgumentTypeError(f"{text} isn't from 0 to 1")
    return number


CONTESTANT_KEY = "EVAL_CONTESTANT_KEY"
JUDGE_KEY = "EVAL_JUDGE_KEY"
_FLAG: dict[str, Any] = {"action": "store_true"}
_REPEATED: dict[str, Any] = {"action": "append", "default": []}
_FILE: dict[str, Any] = {"default": "", "metavar": "FILE"}
_ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "file": {"metavar": "FILE", "help": "question set, .jsonl or .csv"},
    "--limit": {"type": positive, "metavar": "N", "help": "ask only N questions, the same ones each time"},
    "--k": {"type": positive, "default": 5, "help": "measure the first K pages (default 5)"},
    "--parallel": {"type": positive, "default": 4, "metavar": "N", "help": "questions asked at once (default %(default)s)"},
    "--assistant": {"default": "", "metavar": "ID", "help": "another assistant than the first one"},
    "--doc-map": _REPEATED | {
        "metavar": "REGEX=REPL",
        "help": "rewrite the set's documents to the site's paths; a result that starts with / must be the whole path;"
        " may be repeated, the first rule that matches is used",
    },
    "--unanswerable": _FILE | {"help": "questions that must be refused, .jsonl"},
    "--labels": _FILE | {"help": "relevant chunks, as eval label writes them"},
    "--json": _FLAG | {"help": "print JSON"},
    "--out": _FILE | {"help": "save the whole result as JSON"},
    "--html": _FILE | {"help": "write a page with charts"},
    "--no-model": _FLAG | {"help": "measure without the configured language model"},
    "--scripted-model": _FILE | {"help": "use a language model that gives the answers of this file to each question"},
    "--recorded-model": _FILE | {
        "help": "use a language model that repeats the answers of this file to exactly the same messages, .jsonl: key,"
        " text; --scripted-model answers the others",
    },
    "--missing": _FILE | {"help": "write the prompts that neither model could answer, to be answered and recorded"},
    "--known-only": _FLAG | {"help": "ask only questions that the scripted model knows"},
    "--passages": {"type": positive, "metavar": "N", "help": "ask for N passages, not the assistant's own number"},
    "--deep": _FLAG | {"help": "measure pages and chunks at k = 1, 3, 5, 10, 15 and 20 too"},
    "--max-drop": {
        "type": share, "default": MAX_DROP, "metavar": "X", "help": "largest drop that passes (default %(default)s)",
    },
    "--against": _FILE | {"help": "a saved result that the page compares with"},
    "--markdown": _FLAG | {"help": "print a Markdown table"},
    "--url": _REPEATED | {
        "metavar": "NAME=URL,MODEL",
        "help": f"a service with the OpenAI chat API; its key is read from {CONTESTANT_KEY}; may be repeated",
    },
    "--judge-url": {"default": "", "metavar": "URL", "help": f"OpenAI-compatible judge; its key is read from {JUDGE_KEY}"},
    "--judge-model": {"default": "", "metavar": "NAME", "help": "a model other than the one that answers"},
    "--judge-per-minute": {"type": int, "default": 0, "metavar": "N", "help": "calls per minute (0: no limit)"},
    "--judge-timeout": {"type": float, "default": 60.0, "metavar": "S", "help": "seconds for one call (default 60)"},
    "--own-criteria": _FLAG | {"help": "use our wording even if Evidently is installed"},
    "--evidently": _FLAG | {"help": "also write Evidently's own report (needs the extra eval)"},
}  # fmt: skip
MODEL = ("--no-model", "--scripted-model", "--recorded-model", "--missing", "--known-only")
OUTPUT = ("--out", "--html", "--json")
MEASURE = ("--k", "--parallel", "--passages", "--deep", *OUTPUT, "--against", "--markdown")
JUDGE = ("--judge-url", "--judge-model", "--judge-per-minute", "--judge-timeout", "--own-criteria")


def new_command(
    commands: Commands,
    name: str,
    handler: Handler,
    arguments: tuple[str, ...],
    *,
    help: str,  # noqa: A002  # as argparse names it
    description: str = "",
) -> argparse.ArgumentParser:
    """A new command that has these shared arguments."""
    parser = commands.add_parser(name, help=help, description=description)
    parser.set_defaults(evaluation=handler)
    for argument in arguments:
        parser.add_argument(argument, **_ARGUMENTS[argument])
    return parser


def check_writable(options: argparse.Namespace, *names: str) -> None:
    """Raises `EvaluationError` before a run if --out or --html (or the options `names`) can't be written at its end."""
    for name in names or ("out", "html"):
        path = getattr(options, name)
        if path and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
            raise EvaluationError(f"--{name} {path}: that is a directory, or its directory doesn't exist.")


def output_folder(options: argparse.Namespace) -> Path:
    """The directory of --out, made if it doesn't exist. Raises `EvaluationError` if that fails."""
    folder = Path(options.out)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"--out {folder} can't be made: {error}") from error
    return folder


def finish(
    options: argparse.Namespace, summary: Any, *, text: Callable[[], str], html: Callable[[], str] | None = None
) -> None:
    """Save the result if --out or --html says so, and print it as text, or as JSON with --json."""
    if options.out:
        write_text(as_json(summary), options.out)
    if html and options.html:
        write_text(html(), options.html)
    print_result(options, summary, text=text)


def print_result(options: argparse.Namespace, summary: Any, *, text: Callable[[], str]) -> None:
    """Print a result as text, or its summary as JSON with --json."""
    sys.stdout.write((as_json(summary) if options.json else text()) + "\n")


def as_json(value: Any) -> str:
    """JSON as it is printed and saved."""
    return json.dumps(value, ensure_ascii=False, indent=1)

"""What the commands share: how an assistant is opened for them, exit codes, options, and a language model from files."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.models.protocols import Model
from eval.errors import EvaluationError
from eval.files import write_text
from eval.measure.retrieval import Finder
from eval.questions.cases import Case
from eval.scripted import RecordedModel, ScriptedModel, load_record, load_script, missing_lines

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


def add_set_options(parser: argparse.ArgumentParser) -> None:
    """The question set, and how much of it is asked."""
    parser.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    parser.add_argument("--limit", type=positive, metavar="N", help="only N questions, the same ones each time")


def add_pace_options(parser: argparse.ArgumentParser, parallel: int = 4) -> None:
    """How many pages count, and how many questions are asked at once."""
    parser.add_argument("--k", type=positive, default=5, help="how many pages count (default 5)")
    add_parallel_option(parser, parallel)


def add_parallel_option(parser: argparse.ArgumentParser, parallel: int = 4) -> None:
    """How many questions are asked at once."""
    parser.add_argument(
        "--parallel", type=positive, default=parallel, metavar="N", help=f"questions at once (default {parallel})"
    )


def add_assistant_option(parser: argparse.ArgumentParser) -> None:
    """Which assistant is asked."""
    parser.add_argument("--assistant", default="", metavar="ID", help="another than the first one")


def add_documents_option(parser: argparse.ArgumentParser) -> None:
    """--doc-map, for sets whose documents aren't named as the site names its pages."""
    parser.add_argument(
        "--doc-map",
        action="append",
        default=[],
        metavar="REGEX=REPL",
        help="rewrite the set's documents to the site's paths; a result that starts with / must be the whole path; may be repeated, the first that fits is used",
    )


def add_output_options(parser: argparse.ArgumentParser, *, out: str, html: str) -> None:
    """What becomes of the result; `out` and `html` say what the files hold."""
    parser.add_argument("--out", default="", metavar="FILE", help=out)
    parser.add_argument("--html", default="", metavar="FILE", help=html)
    parser.add_argument("--json", action="store_true", help="print JSON")


def add_model_options(parser: argparse.ArgumentParser) -> None:
    """Without a language model, or with one that files stand in for: scripted, recorded, or both."""
    parser.add_argument("--no-model", action="store_true", help="measure without the configured language model")
    parser.add_argument(
        "--scripted-model", metavar="FILE", help="a language model that says what this file has for each question"
    )
    parser.add_argument(
        "--recorded-model",
        metavar="FILE",
        help="a language model that repeats what this file has for exactly these messages, .jsonl: key, text; what isn't"
        " there is asked of the scripted one",
    )
    parser.add_argument(
        "--missing", default="", metavar="FILE", help="write what neither had an answer to, to be answered and recorded"
    )
    parser.add_argument("--known-only", action="store_true", help="only questions that the scripted model knows")


def stand_in(
    options: argparse.Namespace, settings: Settings, cases: Sequence[Case]
) -> tuple[Model | None, tuple[Case, ...]]:
    """The model that was named instead of the configured one, and the cases to ask: with --known-only those that its
    script has. `cases` are those that the script was written for.

    Raises `EvaluationError` for options that contradict each other and for wrong files.
    """
    if options.no_model and (options.scripted_model or options.recorded_model):
        raise EvaluationError("--no-model excludes --scripted-model and --recorded-model.")
    if options.missing and not options.recorded_model:
        raise EvaluationError("--missing goes with --recorded-model FILE.")
    if options.known_only and not options.scripted_model:
        raise EvaluationError("--known-only goes with --scripted-model FILE.")
    model: Model | None = None
    if options.scripted_model:
        script = load_script(options.scripted_model, cases)
        model = ScriptedModel(script, load_prompts(settings.languages, settings.prompts))
        if options.known_only:
            cases = [case for case in cases if script.find(case.question)]
    if options.recorded_model:
        model = RecordedModel(load_record(options.recorded_model), model)
    return model, tuple(cases)


def model_name(options: argparse.Namespace, settings: Settings, model: Model | None) -> str:
    """The name of the language model that is asked, empty without one."""
    if model or options.no_model:
        return model.name if model else ""
    return settings.llm_model or settings.llm_class if settings.llm_url or settings.llm_class else ""


def report_missing(options: argparse.Namespace, model: Model | None, asked: int) -> None:
    """Say what the stand-in had no answer to, of `asked` questions, and keep it where --missing names a file."""
    if isinstance(model, RecordedModel) and model.missing:
        where = f", see {options.missing}" if options.missing else "; --missing FILE writes them"
        sys.stderr.write(f"{len(model.missing)} prompts have no recorded answer{where}.\n")
        if options.missing:
            write_text(missing_lines(model), options.missing)
    script = model.otherwise if isinstance(model, RecordedModel) else model
    if isinstance(script, ScriptedModel):
        sys.stderr.write(f"The scripted model didn't know {len(script.unknown)} of {asked} questions.\n")


def refuse_unwritable(options: argparse.Namespace, *names: str) -> None:
    """Raises `EvaluationError` before a run, for files it couldn't write at its end: --out and --html, or `names`."""
    for name in names or ("out", "html"):
        path = getattr(options, name, "")
        if path and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
            raise EvaluationError(f"--{name} {path}: that is a directory, or its directory doesn't exist.")


def prepared(directory: str) -> Path:
    """The directory, made where it isn't there."""
    folder = Path(directory)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"--out {directory} can't be made: {error}") from error
    return folder


def as_json(value: Any) -> str:
    """JSON as it is printed."""
    return json.dumps(value, ensure_ascii=False, indent=1)


def finish(options: argparse.Namespace, summary: Any, *, text: Callable[[], str], html: Callable[[], str]) -> None:
    """Keep the result where --out and --html say, and print it as text or with --json as JSON."""
    kept = as_json(summary)
    if options.out:
        write_text(kept, options.out)
    if options.html:
        write_text(html(), options.html)
    sys.stdout.write((kept if options.json else text()) + "\n")

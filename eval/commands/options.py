"""Parts that the commands share: options, exit codes, how they are run, and how a result is saved, printed and described."""

import hashlib
import inspect
import logging
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from dataclasses import asdict
from importlib.metadata import version
from importlib.resources import files
from pathlib import Path
from types import SimpleNamespace
from typing import Any, TypeAlias

import click
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.assistants.assembly import opened
from app.conversations.question_log import opened_log
from app.conversations.records import Evaluation
from app.core import logs
from app.core.log_message import masked
from app.core.prompts import files_in_force
from app.core.settings import Settings
from app.index import directory_of
from eval.files import EvaluationError, fingerprint, write_text
from eval.measure.gate import MAX_DROP
from eval.measure.result import Result
from eval.measure.retrieval import Finder
from eval.questions.documents import Rule, parse_rules

OK = 0
FAILED = 1
WRONG_INPUT = 2

NO_MODEL: Mapping[str, Any] = {"llm_url": "", "llm_class": ""}
"""Settings without the configured language model."""
CONTESTANT_KEY = "EVAL_CONTESTANT_KEY"
JUDGE_KEY = "EVAL_JUDGE_KEY"


_MEASURED = ("app", "prompts")
_SOURCES = frozenset({".py", ".toml", ".md"})
_SETTINGS = set(
    "languages top_k per_page fusion vector_weight other_language keyword_weight exact chunk_size".split()  # noqa: SIM905
)


@asynccontextmanager
async def open_finder(overrides: Mapping[str, Any]) -> AsyncIterator[Finder]:
    """The configured assistants with some settings replaced."""
    async with opened(Settings.load(**overrides), by_meaning=True) as assistants:
        yield Finder(assistants)


OpenFinder: TypeAlias = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Finder]]


class Options(SimpleNamespace):
    """The arguments of a command by name, and `open_finder`."""

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The settings that --no-model replaces."""
        return NO_MODEL if getattr(self, "no_model", False) else {}

    @property
    def rules(self) -> tuple[Rule, ...]:
        """The rules of --doc-map. Raises `EvaluationError` if one is none."""
        return parse_rules(getattr(self, "doc_map", ()))


Handler: TypeAlias = Callable[[Options, Settings], Awaitable[int]]


def command(shared: str, *own: click.Parameter) -> Callable[[Handler], click.Command]:
    """A decorator that makes a command of a function, with the names of `shared` parameters and some of its `own`.

    Settings and `OpenFinder` are those of the context, if there are any.
    """
    params = [*(_SHARED[name] for name in shared.split()), *own]

    def decorate(handler: Handler) -> click.Command:
        @click.pass_context
        async def callback(context: click.Context, /, **given: Any) -> int:
            settings, opening = context.obj or _opened()
            try:
                return await handler(Options(**given, open_finder=opening), settings)
            except EvaluationError as error:
                sys.stderr.write(f"{error}\n")
                return WRONG_INPUT

        return click.Command(
            handler.__name__.rstrip("_"), callback=callback, params=params, help=inspect.getdoc(handler)
        )

    return decorate


def _opened() -> tuple[Settings, OpenFinder]:
    settings = Settings.load()
    logs.configure(settings)
    return settings, open_finder


def option(name: str, text: str, metavar: str | None = None, **more: Any) -> click.Option:
    """An option of a text, empty by default, or of what `more` says."""
    required = more.get("required", False)
    return click.Option(
        [name], help=text, metavar=metavar, **({} if required or "type" in more else {"default": ""}) | more
    )


def several(name: str, text: str, metavar: str) -> click.Option:
    """An option that may be repeated."""
    return click.Option([name], help=text, metavar=metavar, multiple=True)


def argument(name: str, text: str, metavar: str = "FILE", **more: Any) -> click.Argument:
    """A positional argument."""
    return click.Argument([name], help=text, metavar=metavar, **more)


def flag(name: str, text: str) -> click.Option:
    """An option that is given or not."""
    return click.Option([name], is_flag=True, help=text)


def number(name: str, default: int | None, text: str, *, least: int = 1) -> click.Option:
    """An option of a whole number."""
    return click.Option([name], type=click.IntRange(least), default=default, metavar="N", help=text)


SHARE = click.FloatRange(0, 1)
OUTPUT = "--out --html"
JUDGE = "--judge-url --judge-model --judge-per-minute"
_SHARED: Mapping[str, click.Parameter] = {
    param.opts[0]: param
    for param in (
        argument("file", "question set, .jsonl or .csv"),
        number("--limit", None, "ask only N questions, the same ones each time"),
        number("--k", 5, "measure the first K pages (default 5)"),
        number("--parallel", 4, "questions asked at once (default 4)"),
        option("--assistant", "another assistant than the first one", "ID"),
        several(
            "--doc-map",
            "rewrite the set's documents to the site's paths; a result that starts with / must be the whole path; may be"
            " repeated, the first rule that matches is used",
            "REGEX=REPL",
        ),
        option("--unanswerable", "questions that must be refused, .jsonl", "FILE"),
        option("--out", "save the whole result as JSON", "FILE"),
        option("--html", "write a page with charts", "FILE"),
        flag("--no-model", "measure without the configured language model"),
        flag("--keep", "keep the figures in the database of conversations, for /admin and /figures"),
        option("--max-drop", f"largest drop that passes (default {MAX_DROP})", "X", type=SHARE, default=MAX_DROP),
        several(
            "--url",
            f"a service with the OpenAI chat API; its key is read from {CONTESTANT_KEY}; may be repeated",
            "NAME=URL,MODEL",
        ),
        option("--judge-url", f"OpenAI-compatible judge; its key is read from {JUDGE_KEY}", "URL"),
        option("--judge-model", "a model other than the one that answers", "NAME"),
        number("--judge-per-minute", 0, "calls per minute (0: no limit)", least=0),
        flag("--evidently", "also write Evidently's own report (needs the extra eval)"),
    )
}


def check_writable(options: Options, *names: str) -> None:
    """Raises `EvaluationError` before a run if --out or --html (or the options `names`) can't be written at its end."""
    for name in names or ("out", "html"):
        path = getattr(options, name)
        if path and (Path(path).is_dir() or not Path(path).absolute().parent.is_dir()):
            raise EvaluationError(f"--{name} {path}: that is a directory, or its directory doesn't exist.")


def output_folder(options: Options, *inside: str) -> Path:
    """The directory of --out, or one inside it, made if it doesn't exist. Raises `EvaluationError` if that fails."""
    folder = Path(options.out, *inside)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EvaluationError(f"--out {folder} can't be made: {error}") from error
    return folder


def saved_file(path: str) -> Path:
    """The file of a saved result: of a directory of `eval run --out`, its answers.json."""
    return Path(path, "answers.json") if Path(path).is_dir() else Path(path)


def finish(options: Options, result: Result, text: str, page: Callable[[], str], **figures: Any) -> int:
    """Save the result with more `figures` and its page if --out and --html say so, and print its text; the exit code."""
    if options.out:
        result.save(options.out, **figures)
    if options.html:
        write_text(page(), options.html)
    sys.stdout.write(text + "\n")
    return FAILED if result.failed or result.malformed else OK


def keep(settings: Settings, result: Result, cases: Sequence[Mapping[str, Any]] = (), **figures: Any) -> None:
    """Keep the rows of the first contestant, and more `figures`, in the database of conversations, where operators see them.

    Raises `RequestError` if nothing is kept, or a `DatabaseError`.
    """
    from app.conversations.evaluations import keep_evaluation  # SQLAlchemy, which other commands don't need

    config = result.config
    one = Evaluation(
        kind=result.kind,
        created=time.time(),
        n=len(result.cases),
        question_set=str(config.get("set", "")),
        assistant=str(config.get("assistant", "")),
        generation=config.get("index", {}).get("id"),
        model=str(config.get("model", "")),
        figures={"k": result.k, "rows": [asdict(row) for row in result.rows[result.contestants[0]]], **figures},
        cases=cases,
    )
    with opened_log(settings, directory_of(settings)) as log:
        log.write(keep_evaluation, one)


@contextmanager
def quiet_pipeline() -> Iterator[None]:
    """Hide warnings about failed helper steps: the result counts them, and a log line for each would hide the progress
    bar.
    """
    log = logging.getLogger("app.pipeline")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def progress_bar(what: str) -> Iterator[Callable[[int, int], None]]:
    """A function that shows how many of how many are done."""
    columns = (TextColumn(what), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def model_name(options: Options, settings: Settings) -> str:
    """The name of the language model that is asked, empty without one."""
    if options.no_model or not (settings.llm_url or settings.llm_class):
        return ""
    return settings.llm_model or settings.llm_class


def configuration(set_name: str, settings: Settings, overrides: Mapping[str, Any], model: str) -> dict[str, Any]:
    """The part of a result's `config` that is known before the first question."""
    own = {name: settings.value(name) for name in sorted(_SETTINGS)}
    store = str(overrides.get("store", settings.store))
    return {
        "set": Path(set_name).name,
        "settings": {**own, **{name: value for name, value in overrides.items() if name in _SETTINGS}},
        # the path of a directory is private, the address of a server isn't
        "store": masked(store) if ":" in store else "a directory",
        "model": model,
        "prompts": fingerprint_of_prompts(str(overrides.get("prompts", settings.prompts))),
        "version": version("docs-assistant"),
        "code": fingerprint_of_code(),
    }


def fingerprint_of_prompts(folder: str) -> str:
    """A fingerprint of the texts of all prompts that are in force with this directory of DOCS_PROMPTS."""
    return fingerprint(*(part for item in sorted(files_in_force(folder).items()) for part in item))[:12]


def fingerprint_of_code() -> str:
    """A fingerprint of the program and its prompts: it differs between two results if they changed."""
    digest = hashlib.sha256()
    for package in _MEASURED:
        folder = Path(str(files(package)))
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]

"""`docs-assistant eval retrieval` and `eval compare`: arguments, and what each of them does."""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.resources import files
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from app.core.models.base import Model
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.store import masked
from eval.cases import Case, load_cases, sample
from eval.compare import compare
from eval.documents import parse_rules
from eval.errors import EvaluationError
from eval.report import comparison_text, retrieval_markdown, retrieval_text
from eval.result import RetrievalResult, load_result
from eval.retrieval import Finder, Plan, evaluate
from eval.scripted import Script, ScriptedModel, load_script

_MEASURED = ("app", "prompts")
_SOURCES = frozenset({".py", ".toml", ".md"})
OK = 0
SEARCHES_FAILED = 1
WRONG_INPUT = 2
_SETTINGS = ("languages", "top_k", "per_page", "fusion", "vector_weight", "other_language", "exact", "chunk_size")


class OpenFinder(Protocol):
    """Opens an assistant with some settings replaced, and with this language model instead of the configured one."""

    def __call__(self, overrides: Mapping[str, Any], model: Model | None = None) -> AbstractAsyncContextManager[Finder]:
        """The assistant, closed at the end."""
        ...


Handler = Callable[[argparse.Namespace, Settings, OpenFinder], Awaitable[int]]


def add_commands(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `retrieval` and `compare` below `docs-assistant eval`; `run` executes what was parsed."""
    _add_retrieval(commands)
    comparison = commands.add_parser("compare", help="set two kept results against each other, question by question")
    comparison.set_defaults(evaluation=_compare)
    comparison.add_argument("a", metavar="A.json", help="the result before")
    comparison.add_argument("b", metavar="B.json", help="the result after")
    comparison.add_argument("--common", action="store_true", help="only the questions that both have")
    comparison.add_argument("--json", action="store_true", help="print JSON")


def _add_retrieval(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    retrieval = commands.add_parser("retrieval", help="measure on a question set whether the right pages are found")
    retrieval.set_defaults(evaluation=_retrieval)
    retrieval.add_argument("file", metavar="FILE", help="question set, .jsonl or .csv")
    retrieval.add_argument("--k", type=_positive, default=5, help="how many pages count (default 5)")
    retrieval.add_argument(
        "--passages", type=_positive, metavar="N", help="ask for N passages, not the assistant's own number"
    )
    retrieval.add_argument("--assistant", default="", metavar="ID", help="another than the first one")
    retrieval.add_argument("--limit", type=_positive, metavar="N", help="only N questions, the same ones each time")
    retrieval.add_argument(
        "--no-cross", action="store_true", help="leave out questions whose page is in another language"
    )
    retrieval.add_argument("--parallel", type=_positive, default=4, metavar="N", help="questions at once (default 4)")
    retrieval.add_argument(
        "--doc-map",
        action="append",
        default=[],
        metavar="REGEX=REPL",
        help="rewrite the set's documents to the site's paths; a result that starts with / must be the whole path; may be repeated, the first that fits is used",
    )
    retrieval.add_argument("--no-model", action="store_true", help="measure without the configured language model")
    retrieval.add_argument(
        "--scripted-model", metavar="FILE", help="a language model that says what this file has for each question"
    )
    retrieval.add_argument("--known-only", action="store_true", help="only questions that the scripted model knows")
    retrieval.add_argument("--out", metavar="FILE", help="keep everything, for eval compare")
    form = retrieval.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print JSON")
    form.add_argument("--markdown", action="store_true", help="print a Markdown table")


async def run(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    """Execute what `add_commands` made argparse parse. Exit code 0, 1 when searches failed, 2 for wrong input."""
    handler: Handler = options.evaluation
    try:
        return await handler(options, settings, open_finder)
    except EvaluationError as error:
        sys.stderr.write(f"{error}\n")
        return WRONG_INPUT


async def _retrieval(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    _refuse_contradictions(options)
    everything = load_cases(options.file)
    script = load_script(options.scripted_model, everything) if options.scripted_model else None
    cases = _chosen(everything, options, script)
    model = _scripted(script, settings) if script else None
    plan = Plan(options.k, options.parallel, options.assistant, parse_rules(options.doc_map))
    overrides = _overrides(options, settings)
    with _quiet_pipeline(), _progress() as progress:
        async with open_finder(overrides, model) as finder:
            config = _config(options, settings, overrides, model)
            result = await evaluate(finder, cases, plan, config=config, progress=progress)
    if options.out:
        result.save(options.out)
    sys.stdout.write(_shown(result, options) + "\n")
    if model:
        sys.stderr.write(f"The scripted model didn't know {len(model.unknown)} of {len(cases)} questions.\n")
    return SEARCHES_FAILED if result.failed else OK


async def _compare(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings, open_finder
    comparison = compare(load_result(options.a), load_result(options.b), common=options.common)
    text = _json(comparison.summary()) if options.json else comparison_text(comparison)
    sys.stdout.write(text + "\n")
    return OK


def _refuse_contradictions(options: argparse.Namespace) -> None:
    if options.known_only and not options.scripted_model:
        raise EvaluationError("--known-only goes with --scripted-model FILE.")
    if options.no_model and options.scripted_model:
        raise EvaluationError("--no-model and --scripted-model exclude each other.")
    # said before the run: a long one must not lose its result at the end
    if options.out and (Path(options.out).is_dir() or not Path(options.out).absolute().parent.is_dir()):
        raise EvaluationError(f"--out {options.out}: that is a directory, or its directory doesn't exist.")


def _chosen(cases: Sequence[Case], options: argparse.Namespace, script: Script | None) -> tuple[Case, ...]:
    chosen = [case for case in cases if not (options.no_cross and case.cross)]
    if options.known_only and script:
        chosen = [case for case in chosen if script.find(case.question)]
    if not chosen:
        raise EvaluationError(f"{options.file}: no question is left to ask.")
    return sample(chosen, options.limit or len(chosen))


def _scripted(script: Script, settings: Settings) -> ScriptedModel:
    return ScriptedModel(script, load_prompts(settings.languages, settings.prompts))


def _overrides(options: argparse.Namespace, settings: Settings) -> dict[str, Any]:
    overrides: dict[str, Any] = {"llm_url": "", "llm_class": ""} if options.no_model else {}
    # k pages can't come from fewer than k passages
    passages = options.passages or max(settings.top_k, options.k)
    return {**overrides, "top_k": passages} if passages != settings.top_k else overrides


def _config(
    options: argparse.Namespace, settings: Settings, overrides: Mapping[str, Any], model: ScriptedModel | None
) -> dict[str, Any]:
    own = settings.model_dump(include=set(_SETTINGS), mode="json")
    llm = settings.llm_model or settings.llm_class if settings.llm_url or settings.llm_class else ""
    return {
        "set": Path(options.file).name,
        "settings": {**own, **{name: value for name, value in overrides.items() if name in _SETTINGS}},
        "store": _store(settings.store),
        "model": model.name if model else "" if options.no_model else llm,
        "version": _version(),
        "code": _code(),
    }


def _store(address: str) -> str:
    # where a directory lies is nobody's business; which store it was is
    return masked(address) if ":" in address else "a directory"


def _version() -> str:
    try:
        return version("docs-assistant")
    except PackageNotFoundError:  # run from a checkout that isn't installed
        return ""


def _code() -> str:
    """A fingerprint of the program and its prompts, so that two results show whether they changed in between."""
    digest = hashlib.sha256()
    for package in _MEASURED:
        folder = Path(str(files(package)))
        for path in sorted(path for path in folder.rglob("*") if path.suffix in _SOURCES):
            digest.update(path.relative_to(folder).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:12]


def _shown(result: RetrievalResult, options: argparse.Namespace) -> str:
    if options.json:
        return _json(result.summary())
    return retrieval_markdown(result) if options.markdown else retrieval_text(result)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=1)


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{text} is less than 1")
    return number


@contextmanager
def _quiet_pipeline() -> Iterator[None]:
    """Failed helper steps are counted in the result; a log line for each would drown the progress bar."""
    log = logging.getLogger("app.pipeline")
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        yield
    finally:
        log.setLevel(level)


@contextmanager
def _progress() -> Iterator[Callable[[int, int], None]]:
    columns = (TextColumn("Asking"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Asking", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)

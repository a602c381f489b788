"""`eval check`, `generate` and `from-log`: find mistakes in a question set, or make one of the indexed pages or of what readers asked."""

import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from app.conversations.question_log import PERIOD_OPTIONS, Asked
from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Request
from app.core.types import Page
from app.index import open_store
from app.index.protocols import Generation, TranslationSets
from app.models import Model, open_model
from app.text.language import LanguageDetector
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    Options,
    check_writable,
    command,
    flag,
    number,
    option,
    output_folder,
    progress_bar,
)
from eval.files import Cache, EvaluationError, write_json_lines
from eval.generate import Generated, Job, ask, gather, plan, tokens, write
from eval.judge import Pace
from eval.questions.cases import Case, load_cases
from eval.questions.documents import Documents
from eval.questions.evidence import Finding, check_form, check_pages, counts
from eval.questions.verdicts import judged_cases, row_of

FINDINGS = 10
ERRORS = 5


@command("file --doc-map")
async def check(options: Options, settings: Settings) -> int:
    """Compares a question set with the indexed pages. The exit code is 1 if it finds an error, 0 if only warnings."""
    cases, rules = load_cases(options.file), options.rules
    prompts = load_prompts(settings.languages, settings.prompts)
    findings = list(check_form(cases, LanguageDetector(prompts.languages, settings.default_language)))
    async with options.open_finder(NO_MODEL) as finder:
        turn = await finder.find(Request(cases[0].messages, id="eval-check"))
        generation: Generation = turn.generation
        documents = Documents([page.url for page in await generation.pages()], rules)
        urls = {url for case in cases if case.doc for url in documents.pages(case.doc)}
        read = [await generation.page(url) for url in sorted(urls)]
        findings += check_pages(cases, documents, {page.url: page.markdown for page in read if page})
    sys.stdout.write(_text(cases, findings) + "\n")
    return FAILED if any(finding.error for finding in findings) else OK


def _text(cases: Sequence[Case], findings: Sequence[Finding]) -> str:
    pages = {case.doc for case in cases}
    lines = [f"{len(cases)} questions about {len(pages)} pages."]
    lines += [f"  {lang} {variant or '(no variant)'}: {n}" for (lang, variant), n in sorted(counts(cases).items())]
    for finding in findings:
        more = f" and {len(finding.ids) - FINDINGS} more" if len(finding.ids) > FINDINGS else ""
        ids = f" ({len(finding.ids)}): {', '.join(finding.ids[:FINDINGS])}{more}" if finding.ids else ""
        lines.append(f"{'ERROR' if finding.error else 'warning'}: {finding.text}{ids}")
    return "\n".join([*lines, "" if findings else "No errors and no warnings."]).rstrip()


@command(
    "--parallel",
    option("--out", "directory for the set", "DIR", required=True),
    number("--pages", None, "only N pages, spread over the site"),
    number("--per-page", 5, "questions per page and wording (5)"),
    number("--follow-ups", 0, "conversations per page and language (0)", least=0),
    number("--unanswerable", 0, "questions without an answer, in total (0)", least=0),
    number("--per-minute", 0, "calls per minute (0: no limit)", least=0),
    click.Option(["--price"], type=float, nargs=2, metavar="IN OUT", help="price of a million tokens in and out"),
    flag("--yes", "don't ask for confirmation"),
)
async def generate(options: Options, settings: Settings) -> int:
    """Generates a question set from the indexed pages. Shows the cost first. A stopped run continues where it ended."""
    prompts = load_prompts(settings.languages, settings.prompts)
    pages, sets = await _pages(settings, options.pages)
    jobs = plan(
        pages, sets, prompts, options.per_page, follow_ups=options.follow_ups, unanswerable=options.unanswerable
    )
    if not jobs:
        raise EvaluationError("No indexed page in a configured language has enough text for questions.")
    model = open_model(settings, patient=True)
    if model is None:
        raise SettingsError("A language model writes the questions: set DOCS_LLM_URL and DOCS_LLM_MODEL.")
    detector = LanguageDetector(prompts.languages, settings.default_language)
    with Cache(output_folder(options) / "generated.jsonl") as cache:
        try:
            waiting = [job for job in jobs if cache.get(job.key) is None]
            if not _confirmed(options, waiting, model):
                return FAILED
            pace = Pace(options.parallel, options.per_minute, settings.llm_timeout)
            with progress_bar("Asking the model") as progress:
                errors = await ask(jobs, model, cache, pace, progress)
        finally:
            await model.close()
        generated = gather(jobs, cache, detector)
    generated.failed = list(errors.values())
    return _report(generated, [str(path) for path in write(generated, output_folder(options))])


async def _pages(settings: Settings, limit: int | None) -> tuple[list[Page], TranslationSets]:
    store = open_store(settings)
    try:
        live = await store.live()
        listed = await live.pages()
        step = max(1, len(listed) // limit) if limit else 1
        chosen = listed[::step][:limit] if limit else listed
        pages = [await live.page(page.url) for page in chosen]
        sets = await live.translation_sets()
    finally:
        await store.close()
    return [page for page in pages if page], sets


def _confirmed(options: Options, jobs: Sequence[Job], model: Model) -> bool:
    if not jobs:
        return True
    sent, received = tokens(jobs)
    cost = f"{len(jobs)} calls to {model.name}: about {sent:,} tokens in and {received:,} out"
    if options.price:
        cost += f", about {sent / 1e6 * options.price[0] + received / 1e6 * options.price[1]:.2f} in your money"
    sys.stderr.write(f"{cost}.\n")
    if options.yes:
        return True
    if not sys.stdin.isatty():
        raise EvaluationError("There is no terminal to ask for confirmation: add --yes.")
    sys.stderr.write("Go on? [y/N] ")
    return sys.stdin.readline().strip().lower() in {"y", "yes", "a", "ano"}


def _report(made: Generated, written: Sequence[str]) -> int:
    counts = (
        f"{len(made.questions)} questions, {len(made.follow_ups)} follow-ups, {len(made.unanswerable)} unanswerable"
    )
    lines = [f"{counts} in {', '.join(written) or 'no file'}."]
    lines += [f"  rejected: {n} ({reason})" for reason, n in made.refused.most_common()]
    if made.unanswerable:
        lines.append("Read the unanswerable questions: the model guesses what your pages don't say.")
    if made.failed:
        lines.append(f"{len(made.failed)} calls failed. Run it again: it repeats only these.")
        lines += [f"  {error}" for error in made.failed[:ERRORS]]
    sys.stdout.write("\n".join(lines) + "\n")
    return FAILED if made.failed or not written else OK


@command(
    "--assistant",
    *PERIOD_OPTIONS,
    option(
        "--only",
        "only these questions",
        type=click.Choice(("all", "refused", "weak", "down", "verdicts")),
        default="all",
    ),
    option("--out", "the set, .jsonl", "FILE", required=True),
)
async def from_log(options: Options, settings: Settings) -> int:
    """Writes each logged question once, as it was redacted.

    Those whose answer was rated up have the page that it used; the others go to a file of their own, to be labelled or asked as
    unanswerable ones. With `--only verdicts`, all questions with a verdict of an editor, whenever they were asked.
    """
    out = Path(options.out)
    if out.suffix.lower() != ".jsonl":
        raise EvaluationError(f"--out {out}: a question set is a .jsonl file.")
    check_writable(options, "out")
    rows, others_in = _rows_of_log(options, settings)
    labelled = [row for row in rows if "doc" in row or "avoid" in row]
    others = [row for row in rows if row not in labelled]
    for part, path in ((labelled, out), (others, out.with_suffix(others_in))):
        if part:
            write_json_lines(part, path)
            sys.stdout.write(f"{path}: {len(part)} questions\n")
    if not labelled and options.only != "verdicts":
        sys.stdout.write("No answer to these questions was rated up, so none has a page.\n")
    return OK


def _rows_of_log(options: Options, settings: Settings) -> tuple[Sequence[Mapping[str, Any]], str]:
    """The rows of the set, and the end of the name of the file for those without a page."""
    if options.only == "verdicts":
        return [row_of(one.case) for one in judged_cases(settings, options.assistant)], ".unanswerable.jsonl"
    from eval.questions.own_docs import logged_rows  # the service and the indexing, which are heavy

    asked = Asked.read(options.since, options.until, time.time(), options.assistant)
    return logged_rows(settings, asked, options.only), ".unlabelled.jsonl"

"""`eval check` and `generate`: finds mistakes in a question set, and lets the language model write one about the indexed pages."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict

import click

from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Request
from app.core.types import Page
from app.index import open_store
from app.index.protocols import Generation
from app.models import open_model
from app.models.protocols import Model
from app.text.language import LanguageDetector
from eval.cache import Cache
from eval.commands.options import (
    FAILED,
    NO_MODEL,
    OK,
    Options,
    command,
    flag,
    number,
    option,
    output_folder,
    print_result,
    progress_bar,
)
from eval.files import EvaluationError
from eval.generate import STYLES, Generated, Job, Wanted, ask, gather, plan, tokens, write
from eval.judge import Pace
from eval.questions.cases import Case, load_cases
from eval.questions.documents import Documents
from eval.questions.evidence import Finding, check_form, check_pages, counts

FINDINGS = 10
ERRORS = 5


@command("file --doc-map --json", flag("--no-index", "check the questions without the indexed pages"))
async def check(options: Options, settings: Settings) -> int:
    """Compares a question set with the indexed pages. The exit code is 1 if it finds an error, 0 if only warnings."""
    cases, rules = load_cases(options.file), options.rules
    prompts = load_prompts(settings.languages, settings.prompts)
    findings = list(check_form(cases, LanguageDetector(prompts.languages, settings.default_language)))
    if not options.no_index:
        async with options.open_finder(NO_MODEL) as finder:
            turn = await finder.find(Request(cases[0].messages, id="eval-check"))
            generation: Generation = turn.generation
            documents = Documents([page.url for page in await generation.pages()], rules)
            findings += check_pages(cases, documents, await _texts(generation, cases, documents))
    print_result(options, _summary(cases, findings), text=lambda: _text(cases, findings))
    return FAILED if any(finding.error for finding in findings) else OK


async def _texts(generation: Generation, cases: Sequence[Case], documents: Documents) -> dict[str, str]:
    urls = {url for case in cases for url in documents.pages(case.doc)}
    pages = [await generation.page(url) for url in sorted(urls)]
    return {page.url: page.markdown for page in pages if page}


def _summary(cases: Sequence[Case], findings: Sequence[Finding]) -> dict[str, object]:
    sizes = [{"lang": lang, "variant": variant, "n": n} for (lang, variant), n in sorted(counts(cases).items())]
    return {"n": len(cases), "counts": sizes, "findings": [asdict(finding) for finding in findings]}


def _text(cases: Sequence[Case], findings: Sequence[Finding]) -> str:
    pages = {case.doc for case in cases}
    lines = [f"{len(cases)} questions about {len(pages)} pages."]
    lines += [f"  {lang} {variant or '(no variant)'}: {n}" for (lang, variant), n in sorted(counts(cases).items())]
    for finding in findings:
        lines.append(f"{'ERROR' if finding.error else 'warning'}: {finding.text}{_ids(finding)}")
    return "\n".join([*lines, "" if findings else "No errors and no warnings."]).rstrip()


def _ids(finding: Finding) -> str:
    if not finding.ids:
        return ""
    more = f" and {len(finding.ids) - FINDINGS} more" if len(finding.ids) > FINDINGS else ""
    return f" ({len(finding.ids)}): {', '.join(finding.ids[:FINDINGS])}{more}"


@command(
    "--parallel",
    option("--out", "directory for the set, as .jsonl and .csv", "DIR", required=True),
    number("--per-page", 5, "questions per page and variant (5)"),
    option("--variants", "1 full, 2 detail, 3 hurried, 4 keywords (default all)", default=",".join(STYLES)),
    number("--pages", None, "only N pages, spread over the site"),
    number("--follow-ups", 0, "conversations per page and language (0)", least=0),
    number("--unanswerable", 0, "questions without an answer, in total (0)", least=0),
    click.Option(["--price"], type=float, nargs=2, metavar="IN OUT", help="price of a million tokens in and out"),
    number("--per-minute", 0, "calls per minute (0: no limit)", least=0),
    flag("--yes", "don't ask for confirmation"),
)
async def generate(options: Options, settings: Settings) -> int:
    """Generates a question set from the indexed pages. Shows the cost first. A stopped run continues where it ended."""
    prompts = load_prompts(settings.languages, settings.prompts)
    jobs = plan(await _pages(settings, options.pages), prompts, _wanted(options))
    if not jobs:
        raise EvaluationError("No indexed page in a configured language has enough text for questions.")
    model = open_model(settings)
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


async def _pages(settings: Settings, limit: int | None) -> list[Page]:
    store = open_store(settings)
    try:
        live = await store.live()
        listed = await live.pages()
        step = max(1, len(listed) // limit) if limit else 1
        chosen = listed[::step][:limit] if limit else listed
        pages = [await live.page(page.url) for page in chosen]
    finally:
        await store.close()
    return [page for page in pages if page]


def _wanted(options: Options) -> Wanted:
    variants = tuple(part.strip() for part in options.variants.split(",") if part.strip())
    if not variants or set(variants) - set(STYLES):
        raise EvaluationError(f"--variants {options.variants}: the variants are {', '.join(STYLES)}.")
    return Wanted(options.per_page, variants, options.follow_ups, options.unanswerable)


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

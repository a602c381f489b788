"""`eval generate`: lets the language model write a question set about the indexed pages."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.types import Page
from app.index import open_store
from app.models import open_model
from app.models.protocols import Model
from app.text.language import LanguageDetector
from eval.commands.options import FAILED, OK, Commands, OpenFinder, new_command, output_folder, positive
from eval.commands.progress import progress_bar
from eval.errors import EvaluationError
from eval.generate.jobs import STYLES, Job, Wanted, plan, tokens
from eval.generate.make import Generated, ask, gather, write
from eval.judge import Cache, Pace

LISTED = 5


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "generate",
        _generate,
        ("--parallel",),
        help="generate a question set from the indexed pages",
        description="Shows the cost first. A stopped run continues where it ended.",
    )
    parser.add_argument("--out", required=True, metavar="DIR", help="directory for the set, as .jsonl and .csv")
    parser.add_argument("--per-page", type=positive, default=5, metavar="N", help="questions per page and variant (5)")
    parser.add_argument(
        "--variants", default=",".join(STYLES), help="1 full, 2 detail, 3 hurried, 4 keywords (default all)"
    )
    parser.add_argument("--pages", type=positive, metavar="N", help="only N pages, spread over the site")
    parser.add_argument(
        "--follow-ups", type=int, default=0, metavar="N", help="conversations per page and language (0)"
    )
    parser.add_argument(
        "--unanswerable", type=int, default=0, metavar="N", help="questions without an answer, in total (0)"
    )
    parser.add_argument(
        "--price", type=float, nargs=2, metavar=("IN", "OUT"), help="price of a million tokens in and out"
    )
    parser.add_argument("--per-minute", type=int, default=0, metavar="N", help="calls per minute (0: no limit)")
    parser.add_argument("--yes", action="store_true", help="don't ask for confirmation")


async def _generate(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
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
        made = gather(jobs, cache, detector)
    made.failed = list(errors.values())
    return _report(made, [str(path) for path in write(made, output_folder(options))])


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


def _wanted(options: argparse.Namespace) -> Wanted:
    variants = tuple(part.strip() for part in options.variants.split(",") if part.strip())
    if not variants or set(variants) - set(STYLES):
        raise EvaluationError(f"--variants {options.variants}: the variants are {', '.join(STYLES)}.")
    return Wanted(options.per_page, variants, options.follow_ups, options.unanswerable)


def _confirmed(options: argparse.Namespace, jobs: Sequence[Job], model: Model) -> bool:
    if not jobs:
        return True
    sent, got = tokens(jobs)
    cost = f"{len(jobs)} calls to {model.name}: about {sent:,} tokens in and {got:,} out"
    if options.price:
        cost += f", about {sent / 1e6 * options.price[0] + got / 1e6 * options.price[1]:.2f} in your money"
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
        lines += [f"  {error}" for error in made.failed[:LISTED]]
    sys.stdout.write("\n".join(lines) + "\n")
    return FAILED if made.failed or not written else OK

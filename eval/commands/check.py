"""`eval check FILE`: finds mistakes in a question set."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import asdict

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Request
from app.index.protocols import Generation
from app.text.language import LanguageDetector
from eval.commands.options import FAILED, NO_MODEL, OK, Commands, OpenFinder, new_command, print_result
from eval.questions.cases import Case, load_cases
from eval.questions.check import Finding, check_form, check_pages, counts
from eval.questions.documents import Documents, parse_rules

LISTED = 10


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "check",
        _check,
        ("file", "--doc-map", "--json"),
        help="find mistakes in a question set",
        description="Compares the set with the indexed pages. Exit code 1 if it finds an error, 0 if only warnings.",
    )
    parser.add_argument("--no-index", action="store_true", help="check the questions without the indexed pages")


async def _check(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    cases, rules = load_cases(options.file), parse_rules(options.doc_map)
    prompts = load_prompts(settings.languages, settings.prompts)
    findings = list(check_form(cases, LanguageDetector(prompts.languages, settings.default_language)))
    if not options.no_index:
        async with open_finder(NO_MODEL) as finder:
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
    more = f" and {len(finding.ids) - LISTED} more" if len(finding.ids) > LISTED else ""
    return f" ({len(finding.ids)}): {', '.join(finding.ids[:LISTED])}{more}"

"""`eval compare A.json B.json`: compares two saved results of the same command, question by question."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from app.core.settings import Settings
from eval.answers.result import FORM as ANSWERS
from eval.answers.result import load_answers, side_by_side
from eval.commands.options import FAILED, OK, Commands, OpenFinder, as_json, check_writable, new_command
from eval.commands.verdicts import drops, drops_text
from eval.errors import EvaluationError
from eval.files import form_of, write_text
from eval.measure.changes import comparison_text
from eval.measure.compare import Comparison, compare
from eval.measure.conversations import FORM as CONVERSATIONS
from eval.measure.conversations import load_follow_ups
from eval.measure.refusals import FORM as REFUSALS
from eval.measure.refusals import load_refusals
from eval.measure.result import FORM as RETRIEVAL
from eval.measure.result import load_result
from eval.measure.rows import Result
from eval.questions.cases import HALVES
from eval.reports import answers_page

KINDS = {
    RETRIEVAL: "eval retrieval",
    ANSWERS: "eval run",
    REFUSALS: "eval refusals",
    CONVERSATIONS: "eval conversations",
}


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "compare",
        _compare,
        ("--json", "--html", "--max-drop"),
        help="compare two saved results question by question",
        description="Compares two results of eval retrieval, run, refusals or conversations. Exit code 1 if something dropped.",
    )
    parser.add_argument("a", metavar="A.json", help="the result before; of eval run, also its directory")
    parser.add_argument("b", metavar="B.json", help="the result after")
    parser.add_argument("--common", action="store_true", help="compare only the questions that both have")
    parser.add_argument("--half", choices=HALVES, default="", help="only every second question of A, counted from 0")


async def _compare(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del settings, open_finder
    check_writable(options, "html")
    a, b = saved_file(options.a), saved_file(options.b)
    kinds = [_kind(path) for path in (a, b)]
    if kinds[0] != kinds[1]:
        raise EvaluationError(
            f"{a} is a result of `{KINDS[kinds[0]]}`, {b} of `{KINDS[kinds[1]]}`: only results of the same command can be"
            " compared."
        )
    if options.html and kinds[0] != ANSWERS:
        raise EvaluationError(f"--html shows answers side by side, but these are results of `{KINDS[kinds[0]]}`.")
    found = _comparisons(options, kinds[0], a, b)
    dropped = [drops(one, options.max_drop) for one in found.values()]
    if options.json:
        summaries = {name: one.summary() for name, one in found.items()}
        sys.stdout.write(as_json(summaries.get("", summaries)) + "\n")
    else:
        parts = [
            "\n".join([*([f"{name}:"] if name else []), comparison_text(one), "", drops_text(lost, options.max_drop)])
            for (name, one), lost in zip(found.items(), dropped, strict=True)
        ]
        sys.stdout.write("\n\n".join(parts) + "\n")
    return FAILED if any(dropped) else OK


def saved_file(path: str) -> Path:
    """The file of a saved result: of a directory of `eval run --out`, its answers.json."""
    return Path(path, "answers.json") if Path(path).is_dir() else Path(path)


def _kind(path: Path) -> str:
    if (form := form_of(path)) in KINDS:
        return form
    raise EvaluationError(f"{path} is no saved result of {', '.join(f'`{kind}`' for kind in KINDS.values())}.")


def _comparisons(options: argparse.Namespace, kind: str, a: Path, b: Path) -> dict[str, Comparison]:
    """The comparisons by name; the name of a single one is empty."""
    if kind == ANSWERS:
        both = side_by_side(load_answers(a), load_answers(b), (options.a, options.b))
        before, after = (both.of(name) for name in both.contestants)
        found = _paired(options, before, after)
        if options.html:
            asked = frozenset(case.id for case in found.pairs.cases)
            write_text(answers_page(both.only(asked)), options.html)
        return {"": found}
    if kind == CONVERSATIONS:
        ways, others = load_follow_ups(a), load_follow_ups(b)
        both_have = [name for name in ways if name in others]
        if not both_have:
            raise EvaluationError(f"A was measured {', '.join(ways)}, B {', '.join(others)}: nothing is common.")
        return {name: _paired(options, ways[name], others[name]) for name in both_have}
    load = load_refusals if kind == REFUSALS else load_result
    return {"": _paired(options, load(a), load(b))}


def _paired(options: argparse.Namespace, a: Result, b: Result) -> Comparison:
    return compare(a, b, common=options.common, only=options.half, names=(options.a, options.b))

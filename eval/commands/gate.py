"""`eval gate`: exits with 1 if retrieval or answers are worse than a saved baseline."""

from __future__ import annotations

import argparse
import sys

from app.core.settings import Settings
from eval.answers.gate import answer_baseline_of, judge_answers, load_answer_baseline
from eval.answers.result import FORM as ANSWERS
from eval.answers.result import load_answers
from eval.commands.docs import measure_docs
from eval.commands.options import FAILED, OK, Commands, OpenFinder, check_writable, new_command
from eval.commands.verdicts import verdict_line
from eval.files import form_of
from eval.measure.gate import Gate, baseline_of, judge, load_baseline
from eval.measure.result import load_result


def add_command(commands: Commands) -> None:
    """Register the command."""
    parser = new_command(
        commands,
        "gate",
        _gate,
        ("--k", "--parallel", "--max-drop"),
        help="exit with 1 if retrieval or answers are worse than a baseline",
        description="Without RESULT, indexes and measures this product's own documentation first.",
    )
    parser.set_defaults(passages=None, deep=False, html="", docs=None, questions=None)
    parser.add_argument(
        "result", nargs="?", metavar="RESULT.json", help="file of eval retrieval --out, or answers.json of eval run"
    )
    parser.add_argument("--baseline", required=True, metavar="FILE", help="the saved baseline")
    parser.add_argument("--update", action="store_true", help="write a new baseline instead")


async def _gate(options: argparse.Namespace, settings: Settings, open_finder: OpenFinder) -> int:
    del open_finder
    if options.update:
        check_writable(options, "baseline")
    if options.result and form_of(options.result) == ANSWERS:
        return _answers(options)
    baseline = None if options.update else load_baseline(options.baseline)
    result = load_result(options.result) if options.result else await measure_docs(options, settings)
    if baseline is None:
        baseline_of(result).save(options.baseline)
        return _updated(options.baseline, len(result.cases))
    gate = judge(result, baseline, options.max_drop)
    head = (
        f"{gate.n} questions against the baseline, difference of MRR@{result.k} with 95 % interval,\n"
        "for the right page, the chunk with the evidence, and that chunk with its section:"
    )
    sys.stdout.write(_text(head, gate, options.max_drop) + "\n")
    return OK if gate.passed and not result.failed else FAILED


def _answers(options: argparse.Namespace) -> int:
    result = load_answers(options.result)
    if options.update:
        baseline = answer_baseline_of(result)
        baseline.save(options.baseline)
        return _updated(options.baseline, len(baseline.questions))
    gate = judge_answers(result, load_answer_baseline(options.baseline), options.max_drop)
    head = (
        f"{gate.n} answers of {result.contestants[0]} against the baseline, difference with its interval (95 % for all"
        " rows together):"
    )
    lost = f"{result.failed} answers and {result.malformed} judgements failed: run it again first.\n"
    sys.stdout.write(_text(head, gate, options.max_drop) + "\n" + (lost if result.failed or result.malformed else ""))
    return OK if gate.passed and not result.failed and not result.malformed else FAILED


def _updated(path: str, n: int) -> int:
    sys.stdout.write(f"{path} has {n} questions now. Have the change reviewed.\n")
    return OK


def _text(head: str, gate: Gate, max_drop: float) -> str:
    lines = [head, *map(verdict_line, gate.verdicts)]
    if gate.new or gate.gone:
        lines.append(f"Not compared: {gate.new} new questions, {gate.gone} that are gone or changed.")
    allowed = f"more than {max_drop:g} with an interval below 0"
    lines.append(
        f"Passed: nothing dropped by {allowed}." if gate.passed else f"FAILED: marked rows dropped by {allowed}."
    )
    return "\n".join(lines)

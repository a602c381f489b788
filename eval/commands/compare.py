"""`eval compare` and `gate`: say whether something became worse, in words and as an exit code; `run --against` uses it."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from app.core.settings import Settings
from eval.answers.result import FORM as ANSWERS
from eval.answers.result import answer_baseline_of, judge_answers, load_answer_baseline, load_answers, side_by_side
from eval.commands.options import (
    FAILED,
    OK,
    Options,
    argument,
    as_json,
    check_writable,
    command,
    flag,
    option,
)
from eval.commands.retrieval import measure_docs
from eval.files import EvaluationError, form_of, write_text
from eval.measure.compare import Comparison, comparison_text
from eval.measure.compare import compare as compare_results
from eval.measure.conversations import FORM as CONVERSATIONS
from eval.measure.conversations import load_follow_ups
from eval.measure.gate import Gate, Verdict, baseline_of, judge, load_baseline, verdicts_together
from eval.measure.refusals import FORM as REFUSALS
from eval.measure.refusals import load_refusals
from eval.measure.result import FORM as RETRIEVAL
from eval.measure.result import RetrievalResult, load_result
from eval.measure.rows import Result
from eval.reports import answers_page

KINDS = {
    RETRIEVAL: "eval retrieval",
    ANSWERS: "eval run",
    REFUSALS: "eval refusals",
    CONVERSATIONS: "eval conversations",
}


@command(
    "--json --html --max-drop --half",
    argument("a", "the result before; of eval run, also its directory", "A.json"),
    argument("b", "the result after", "B.json"),
    flag("--common", "compare only the questions that both have"),
)
async def compare(options: Options, settings: Settings) -> int:
    """Compares two results of eval retrieval, run, refusals or conversations. The exit code is 1 if something dropped."""
    del settings
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
    comparisons = _comparisons(options, kinds[0], a, b)
    dropped = [drops(comparison, options.max_drop) for comparison in comparisons.values()]
    if options.json:
        summaries = {name: comparison.summary() for name, comparison in comparisons.items()}
        sys.stdout.write(as_json(summaries.get("", summaries)) + "\n")
    else:
        parts = [
            "\n".join(
                [*([f"{name}:"] if name else []), comparison_text(comparison), "", drops_text(lost, options.max_drop)]
            )
            for (name, comparison), lost in zip(comparisons.items(), dropped, strict=True)
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


def _comparisons(options: Options, kind: str, a: Path, b: Path) -> dict[str, Comparison]:
    """The comparisons by name; the name of a single one is empty."""
    if kind == ANSWERS:
        both = side_by_side(load_answers(a), load_answers(b), (options.a, options.b))
        before, after = (both.of(name) for name in both.contestants)
        comparison = _paired(options, before, after)
        if options.html:
            asked = frozenset(case.id for case in comparison.pairs.cases)
            write_text(answers_page(both.only(asked)), options.html)
        return {"": comparison}
    if kind == CONVERSATIONS:
        ways, others = load_follow_ups(a), load_follow_ups(b)
        both_have = [name for name in ways if name in others]
        if not both_have:
            raise EvaluationError(f"A was measured {', '.join(ways)}, B {', '.join(others)}: nothing is common.")
        return {name: _paired(options, ways[name], others[name]) for name in both_have}
    load = load_refusals if kind == REFUSALS else load_result
    return {"": _paired(options, load(a), load(b))}


def _paired(options: Options, a: Result, b: Result) -> Comparison:
    return compare_results(a, b, common=options.common, only=options.half or "", names=(options.a, options.b))


def drops(comparison: Comparison, max_drop: float) -> list[Verdict]:
    """The rows that dropped by more than `max_drop`, with intervals so wide that all rows together have 95 %."""
    return [verdict for verdict in verdicts_together(comparison.pairs, comparison.judged, max_drop) if verdict.dropped]


def drops_text(dropped: Sequence[Verdict], max_drop: float) -> str:
    """The result in one line, below the rows that dropped."""
    allowed = f"more than {max_drop:g} with an interval below 0 (95 % for all rows together)"
    rows = [verdict_line(verdict) for verdict in dropped]
    return "\n".join(
        [*rows, f"FAILED: this dropped by {allowed}." if rows else f"Passed: nothing dropped by {allowed}."]
    )


def verdict_line(verdict: Verdict) -> str:
    """A row with its difference and interval."""
    difference = verdict.difference
    name = f"{verdict.measure:<11} {verdict.language}{' cross' if verdict.cross else ''}"
    mark = "  DROPPED" if verdict.dropped else ""
    return f"  {name:<24} n={verdict.n:<4} {difference.mean:+.3f}  {difference.low:+.3f}…{difference.high:+.3f}{mark}"


@command(
    "--k --parallel --max-drop",
    argument("result", "file of eval retrieval --out, or answers.json of eval run", "RESULT.json", required=False),
    option("--baseline", "the saved baseline", "FILE", required=True),
    flag("--update", "write a new baseline instead"),
)
async def gate(options: Options, settings: Settings) -> int:
    """Ends with exit code 1 if retrieval or answers are worse than a baseline.

    Without RESULT, indexes and measures this product's own documentation first.
    """
    if options.update:
        check_writable(options, "baseline")
    if options.result and form_of(options.result) == ANSWERS:
        return _gate_answers(options)
    baseline = None if options.update else load_baseline(options.baseline)
    result = load_result(options.result) if options.result else await _measured(options, settings)
    if baseline is None:
        baseline_of(result).save(options.baseline)
        return _updated(options.baseline, len(result.cases))
    verdict = judge(result, baseline, options.max_drop)
    head = (
        f"{verdict.n} questions against the baseline, difference of MRR@{result.k} with 95 % interval,\n"
        "for the right page, the chunk with the evidence, and that chunk with its section:"
    )
    sys.stdout.write(_gate_text(head, verdict, options.max_drop) + "\n")
    return OK if verdict.passed and not result.failed else FAILED


async def _measured(options: Options, settings: Settings) -> RetrievalResult:
    more = {"passages": None, "deep": False, "html": "", "docs": None, "questions": None}
    return await measure_docs(Options(**vars(options), **more), settings)


def _gate_answers(options: Options) -> int:
    result = load_answers(options.result)
    if options.update:
        baseline = answer_baseline_of(result)
        baseline.save(options.baseline)
        return _updated(options.baseline, len(baseline.questions))
    verdict = judge_answers(result, load_answer_baseline(options.baseline), options.max_drop)
    head = (
        f"{verdict.n} answers of {result.contestants[0]} against the baseline, difference with its interval (95 % for all"
        " rows together):"
    )
    lost = f"{result.failed} answers and {result.malformed} judgements failed: run it again first.\n"
    sys.stdout.write(
        _gate_text(head, verdict, options.max_drop) + "\n" + (lost if result.failed or result.malformed else "")
    )
    return OK if verdict.passed and not result.failed and not result.malformed else FAILED


def _updated(path: str, n: int) -> int:
    sys.stdout.write(f"{path} has {n} questions now. Have the change reviewed.\n")
    return OK


def _gate_text(head: str, gate: Gate, max_drop: float) -> str:
    lines = [head, *map(verdict_line, gate.verdicts)]
    if gate.new or gate.gone:
        lines.append(f"Not compared: {gate.new} new questions, {gate.gone} that are gone or changed.")
    allowed = f"more than {max_drop:g} with an interval below 0"
    lines.append(
        f"Passed: nothing dropped by {allowed}." if gate.passed else f"FAILED: marked rows dropped by {allowed}."
    )
    return "\n".join(lines)

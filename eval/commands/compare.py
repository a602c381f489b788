"""`eval compare`, `gate` and `faults`: say whether something became worse, in words and as an exit code."""

import sys
from importlib.resources import files

from app.core.prompts import load_prompts
from app.core.settings import Settings
from eval.answers.figures import side_by_side
from eval.commands.options import FAILED, OK, Options, argument, check_writable, command, flag, option, saved_file
from eval.commands.retrieval import measure_docs
from eval.files import EvaluationError, write_text
from eval.measure.compare import compare as compare_results
from eval.measure.faults import Kept, measure
from eval.measure.gate import baseline_of, drops, judge, load_baseline
from eval.measure.result import ANSWERS, RETRIEVAL, Result, load_result
from eval.measure.tables import comparison_text, drops_text, verdict_line
from eval.reports import answers_page


@command(
    "--html --max-drop",
    argument("a", "the result before; of eval run, also its directory", "A.json"),
    argument("b", "the result after", "B.json"),
    flag("--common", "compare only the questions that both have"),
)
async def compare(options: Options, settings: Settings) -> int:
    """Compares two results of eval retrieval, run, refusals or conversations. The exit code is 1 if something dropped."""
    del settings
    check_writable(options, "html")
    a, b = load_result(saved_file(options.a)), load_result(saved_file(options.b))
    comparison = compare_results(a, b, common=options.common, names=(options.a, options.b))
    if options.html:
        if a.kind != ANSWERS:
            raise EvaluationError(f"--html shows answers side by side, but these are results of `{a.kind}`.")
        both = side_by_side(a, b, comparison.names)
        write_text(answers_page(both.only(frozenset(case.id for case in comparison.pairs.cases))), options.html)
    dropped = drops(comparison, options.max_drop)
    sys.stdout.write(f"{comparison_text(comparison)}\n\n{drops_text(dropped, options.max_drop)}\n")
    return FAILED if dropped else OK


@command(
    "--k --parallel --max-drop",
    argument("result", "file of --out of another command, such as eval retrieval", "RESULT.json", required=False),
    option("--baseline", "the saved baseline", "FILE", required=True),
    flag("--update", "write a new baseline instead"),
)
async def gate(options: Options, settings: Settings) -> int:
    """Ends with exit code 1 if retrieval or answers are worse than a baseline.

    Without RESULT, indexes and measures this product's own documentation first.
    """
    saved = load_result(saved_file(options.result)) if options.result else None
    if options.update:
        check_writable(options, "baseline")
        baseline = baseline_of(saved or await _measured(options, settings))
        baseline.save(options.baseline)
        sys.stdout.write(f"{options.baseline} has {len(baseline.questions)} questions now. Have the change reviewed.\n")
        return OK
    baseline = load_baseline(options.baseline, saved.kind if saved else RETRIEVAL)
    result = saved or await _measured(options, settings)
    verdict = judge(result, baseline, options.max_drop)
    interval = "its 95 % interval" if result.kind == RETRIEVAL else "its interval (95 % for all rows together)"
    lines = [f"{verdict.n} questions against the baseline, each difference with {interval}:"]
    lines += map(verdict_line, verdict.verdicts)
    if verdict.new or verdict.gone:
        lines.append(f"Not compared: {verdict.new} new questions, {verdict.gone} that are gone or changed.")
    allowed = f"more than {options.max_drop:g} with an interval below 0"
    lines.append(
        f"Passed: nothing dropped by {allowed}." if verdict.passed else f"FAILED: marked rows dropped by {allowed}."
    )
    if lost := len(result.failed) or result.malformed:
        lines.append(f"{len(result.failed)} questions and {result.malformed} judgements failed: run it again first.")
    sys.stdout.write("\n".join(lines) + "\n")
    return OK if verdict.passed and not lost else FAILED


@command(
    "",
    argument("file", "answers with their passages; the shipped ones if it isn't given", "FAULTS.jsonl", required=False),
    flag("--missed", "print the faults that are missed"),
)
async def faults(options: Options, settings: Settings) -> int:
    """Plants faults into good answers and tells which of them readers would see marked. The exit code is 1 below the goals."""
    kept = Kept.load(options.file or str(files("eval").joinpath("sets", "faults.jsonl")))
    outcome = measure(kept, load_prompts(settings.languages, settings.prompts))
    lines = [f"{'kind':28}{'caught':>8}{'of':>6}"]
    lines += [f"{kind:28}{outcome.caught[kind]:8}{number:6}" for kind, number in sorted(outcome.planted.items())]
    lines.append(f"Good statements that are marked: {len(outcome.alarms)} of {outcome.statements}.")
    lines += outcome.alarms
    if options.missed:
        lines += [f"missed {kind}: {one}" for kind, missed in outcome.missed.items() for one in missed]
    lines += [f"FAILED: {failure}." for failure in outcome.failures] or ["Passed."]
    sys.stdout.write("\n".join(lines) + "\n")
    return FAILED if outcome.failures else OK


async def _measured(options: Options, settings: Settings) -> Result:
    return await measure_docs(Options(**vars(options), deep=False, docs=None, questions=None), settings)

"""What a run of answers says beside its measures: faithful x complete x language, and the effort of an answer; and its text."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from eval.judge import COMPLETE, FAITHFUL
from eval.measure.metrics import Estimate, intervals
from eval.measure.result import Outcome, Result
from eval.measure.tables import Table, as_table, comparison_text, measure_table

KINDS = ("faithful, complete", "faithful, incomplete", "unfaithful, complete", "unfaithful, incomplete")
NOT_JUDGED = "not judged"


def side_by_side(a: Result, b: Result, names: tuple[str, str]) -> Result:
    """The answers of the first contestant of each, under these names; the second is compared with the first."""
    both = [
        replace(outcome, contestant=name)
        for result, name in zip((a, b), names, strict=True)
        for outcome in result.of(result.contestants[0]).outcomes
    ]
    return replace(b, outcomes=tuple(both), config={**b.config, "against": names[0]})


def _kind(outcome: Outcome) -> str:
    faithful, complete = outcome.values[FAITHFUL], outcome.values[COMPLETE]
    if faithful is None or complete is None:
        return NOT_JUDGED
    return f"{'faithful' if faithful else 'unfaithful'}, {'complete' if complete else 'incomplete'}"


def _answered(result: Result) -> Mapping[str, Sequence[Outcome]]:
    """The answers to answerable questions of each contestant."""
    return {
        name: [outcome for outcome in result.of(name).outcomes if outcome.answerable and not outcome.error]
        for name in result.contestants
    }


def kind_table(result: Result) -> Table:
    """Returns the table of faithful and complete answers in the right language; no rows if nothing was judged."""
    rows, judged = list[list[str]](), False
    for name, own in _answered(result).items():
        total = len(own) or 1
        for kind in (*KINDS, NOT_JUDGED):
            of_kind = [outcome for outcome in own if _kind(outcome) == kind]
            judged |= bool(of_kind) and kind != NOT_JUDGED
            right = sum(outcome.values["language"] == 1 for outcome in of_kind)
            counts = (right, len(of_kind) - right, len(of_kind))
            rows.append([f"{name}: {kind}", *(f"{n} ({100 * n / total:.0f} %)" for n in counts)])
    return ["answers that are", "right language", "wrong language", "all"], rows if judged else []


def kind_shares(result: Result) -> Mapping[str, Mapping[str, tuple[int, Estimate]]]:
    """By kind and contestant, the number of judged answers and the share of them that is of the kind."""
    judged = {
        name: [outcome for outcome in own if _kind(outcome) != NOT_JUDGED] for name, own in _answered(result).items()
    }
    return {
        kind: {
            name: (len(own), intervals([values], [[outcome.case.doc for outcome in own]])[0])
            for name, own in judged.items()
            if own
            for values in [np.array([[_kind(outcome) == kind] for outcome in own], dtype=np.float64)]
        }
        for kind in KINDS
    }


def efforts(result: Result) -> list[dict[str, Any]]:
    """Time until the whole answer and mean tokens of an answer, by contestant; None where tokens weren't counted.

    Failed answers are left out, and those without token counts out of the means.
    """
    rows = list[dict[str, Any]]()
    for name in result.contestants:
        own = result.of(name)
        known = [outcome.details for outcome in own.outcomes if not outcome.error]
        counted = [details for details in known if details["prompt_tokens"]]
        tokens = {
            field: float(np.mean([details[field] for details in counted])) if counted else None
            for field in ("prompt_tokens", "completion_tokens")
        }
        if known:
            rows.append({"contestant": name, "n": len(known), **own.milliseconds, **tokens})
    return rows


def effort_table(result: Result) -> Table:
    """Time and tokens of an answer, a row for each contestant."""
    rows = [
        [name, str(n), *("–" if value is None else f"{value:.0f}" for value in figures)]
        for name, n, *figures in (effort.values() for effort in efforts(result))
    ]
    return ["effort of an answer", "n", "ms, median", "ms, p95", "tokens in", "tokens out"], rows


def answers_text(result: Result) -> str:
    """All known measures by contestant and group, the differences, and the failures."""
    tables = [*(measure_table(result, name) for name in result.contestants), kind_table(result), effort_table(result)]
    lines = [line for table in tables if table[1] for line in (*as_table(*table), "")]
    if note := result.config.get("note"):
        lines += [note, ""]
    for comparison in result.comparisons:
        lines += [comparison_text(comparison), ""]
    lines.append(f"Intervals are 95 % and resample pages. Judge: {result.config.get('judge') or 'none'}.")
    lost = Counter(
        (outcome.contestant, step) for outcome in result.outcomes for step in outcome.details["failed_steps"]
    )
    lines += [
        f"{name}: {step} failed on {n} questions, which were answered without it." for (name, step), n in lost.items()
    ]
    if result.failed or result.malformed:
        lines.append(
            f"FAILED: {len(result.failed)} answers, {result.malformed} judgements. Run it again: it asks only these again."
        )
        lines += [f"The first error: {outcome.error}" for outcome in result.failed[:1]]
    return "\n".join(lines)

"""Whether something became worse, in words and as an exit code; `eval gate`, `compare` and `run --against` use it."""

from __future__ import annotations

from collections.abc import Sequence

from eval.measure.compare import Comparison
from eval.measure.gate import Verdict, verdicts_together


def drops(comparison: Comparison, max_drop: float) -> list[Verdict]:
    """The rows that dropped by more than `max_drop`, with intervals so wide that all rows together have 95 %."""
    return [one for one in verdicts_together(comparison.pairs, comparison.judged, max_drop) if one.dropped]


def drops_text(dropped: Sequence[Verdict], max_drop: float) -> str:
    """The result in one line, below the rows that dropped."""
    allowed = f"more than {max_drop:g} with an interval below 0 (95 % for all rows together)"
    rows = [verdict_line(one) for one in dropped]
    return "\n".join(
        [*rows, f"FAILED: this dropped by {allowed}." if rows else f"Passed: nothing dropped by {allowed}."]
    )


def verdict_line(verdict: Verdict) -> str:
    """A row with its difference and interval."""
    one = verdict.difference
    name = f"{verdict.measure:<11} {verdict.language}{' cross' if verdict.cross else ''}"
    mark = "  DROPPED" if verdict.dropped else ""
    return f"  {name:<24} n={verdict.n:<4} {one.mean:+.3f}  {one.low:+.3f}…{one.high:+.3f}{mark}"

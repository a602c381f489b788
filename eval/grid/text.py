"""The result of a grid as tables: one row per configuration, and the choice of the cross-validation."""

from __future__ import annotations

import json
from collections.abc import Sequence

from eval.grid.cross_validation import CrossValidation
from eval.grid.result import GridResult, Measured
from eval.measure.metrics import Estimate, title
from eval.measure.rows import ALL, MEAN
from eval.measure.tables import as_table, difference_cell, row_name

EXPLAINED = (
    "Differences are of MRR to the first configuration, question by question, with 95 % intervals by page; * if that doesn't"
    " contain 0. With many configurations, one in twenty is by chance: confirm it on other questions."
)
OF_ANSWERS = " Refused: unanswerable / answerable questions. Calls, tokens and milliseconds (median) are per question."


def grid_text(result: GridResult) -> str:
    """The tables for the terminal."""
    header, rows = grid_rows(result)
    lines = [*as_table(header, rows), "", explained(result)]
    return "\n".join([*lines, *(["", validation_text(result.validation, result.first.k)] if result.validation else [])])


def explained(result: GridResult) -> str:
    """How to read the table."""
    return EXPLAINED + (OF_ANSWERS if _answered(result) else "")


def grid_rows(result: GridResult) -> tuple[list[str], list[list[str]]]:
    """The header and a row for each configuration."""
    rr = title("rr", result.first.k)
    groups = [row for row in result.first.rows if row.variant == ALL and row.language != MEAN]
    effort = ["refused", "calls", "tokens"] if _answered(result) else []
    header = [
        "configuration", rr, "95 %", "hit@1", *(f"{rr} {row_name(row)}" for row in groups),
        "mean of languages", "all questions", *effort, "ms", "note",
    ]  # fmt: skip
    rows = []
    for one in result.measured:
        if not (one.result and one.mean):
            rows.append([one.name, *["–"] * (len(header) - 2), one.note])
            continue
        mean, whole = one.mean.measures, [one.result.row(row.language, cross=row.cross) for row in groups]
        gaps = (result.languages(one.name), result.everything(one))
        rows.append([
            one.name, f"{mean['rr'].mean:.3f}", f"{mean['rr'].low:.2f}–{mean['rr'].high:.2f}", f"{mean['hit_1'].mean:.3f}",
            *("–" if row is None else f"{row.measures['rr'].mean:.3f}" for row in whole),
            *("–" if gap is None else difference_cell(gap) for gap in gaps),
            *(_effort(one) if effort else ()), f"{one.ms:.0f}", one.note,
        ])  # fmt: skip
    return header, rows


def validation_text(found: CrossValidation, k: int) -> str:
    """The choice for each language with its gain, then fold by fold."""
    header = ["question language", "n", f"MRR@{k} now", "best", "gain, cross-validated", "apparent gain", ""]
    rows = [
        [
            one.language, str(one.n), f"{one.before:.3f}", one.best.name, _gain(one.gain), f"{one.apparent_gain:+.3f}",
            "better" if one.accepted else "not significant: keep the settings",
        ]
        for one in found.choices
    ]  # fmt: skip
    lines = [*as_table(header, rows), ""]
    for fold in found.folds:
        chosen = "; ".join(f"{code}: {one.name}" for code, one in fold.best.items())
        language, variant, least = fold.least
        lines += [
            f"Fold {fold.name}, {fold.n} questions; chosen on the others ({chosen}):",
            *(f"  over {baseline}: {_gain(gain)}" for baseline, gain in fold.gains.items()),
            f"  least gain over {list(fold.gains)[-1]}: {language} {variant} {least:+.3f}",
        ]
    accepted = [one for one in found.choices if one.accepted]
    shares = {
        one.language: one.best.settings["vector_weight"] for one in accepted if "vector_weight" in one.best.settings
    }
    lines += [f"DOCS_VECTOR_WEIGHT='{json.dumps(shares)}'"] if shares else []
    lines += [f"For {one.language} it was chosen with {one.best.name}." for one in accepted]
    return "\n".join(lines if accepted else [*lines, "Nothing is significantly better: keep the settings."])


def _answered(result: GridResult) -> bool:
    return any(one.answers for one in result.measured)


def _effort(one: Measured) -> Sequence[str]:
    shares = (one.refused(answerable=False), one.refused(answerable=True))
    refused = " / ".join("–" if share is None else f"{100 * share:.0f} %" for share in shares)
    return refused, f"{one.calls:.1f}", f"{one.tokens:.0f}"


def _gain(gain: Estimate) -> str:
    return f"{gain.mean:+.3f} {gain.low:+.3f}…{gain.high:+.3f}"

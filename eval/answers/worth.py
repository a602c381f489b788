"""What the steps of an ablation were worth, read off their answers: right pages, refusals, calls, tokens, time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import median
from typing import Any

import numpy as np

from eval.answers.score import Scored
from eval.measure.ablation import Variant
from eval.measure.compare import enough_to_judge
from eval.measure.metrics import Estimate, intervals, score
from eval.measure.result import Group, groups
from eval.measure.tables import as_table
from eval.page.frame import page, section, table
from eval.questions.documents import Documents

Row = tuple[str, bool]


@dataclass(frozen=True, slots=True)
class Worth:
    """One way of steps. `mrr` by language and whether the page is in another one; `gain` is what having the boxes
    changes in it, in all questions; refusals are shares. `note` says why there are no figures, or what to mind.
    """

    name: str
    mrr: Mapping[Row, float]
    gain: Estimate | None = None
    outside_noise: bool = False
    refused_unanswerable: float | None = None
    refused_answerable: float | None = None
    calls: float = 0.0
    tokens: float = 0.0
    ms: float = 0.0
    note: str = ""


def worths(found: Sequence[Variant], scored: Sequence[Scored], documents: Documents, k: int) -> list[Worth]:
    """A row for each variant, the assistant itself first."""
    by_name = {one.name: [s for s in scored if s.answer.contestant == one.name] for one in found}
    ranks = {name: _ranks(own, documents, k) for name, own in by_name.items()}
    base = ranks[found[0].name]
    return [
        Worth(one.name, {}, note=f"not measured: needs {one.needs}")
        if one.needs
        else _worth(one, by_name[one.name], ranks[one.name], base)
        for one in found
    ]


def _ranks(own: Sequence[Scored], documents: Documents, k: int) -> dict[str, float]:
    return {
        one.case.id: score(
            [documents.label(url, one.case.relevant) for url in one.answer.pages], one.case.relevant, k
        ).rr
        for one in own
        if one.answerable
    }


def _worth(variant: Variant, own: Sequence[Scored], ranks: Mapping[str, float], base: Mapping[str, float]) -> Worth:
    answerable = [one for one in own if one.answerable]
    cases = [one.case for one in answerable]
    sign = -1.0 if variant.out else 1.0
    gaps = np.array([[sign * (ranks[case.id] - base[case.id])] for case in cases])
    gain = intervals([gaps], [[case.doc for case in cases]])[0] if variant.steps and ranks is not base else None
    failed = sum(any(box in one.answer.failed_steps for box in variant.boxes) for one in own)
    rest = [one for one in own if not one.answerable]
    return Worth(
        variant.name,
        {(group.language, group.cross): _mean([ranks[cases[i].id] for i in group.parts[0]]) for group in _rows(cases)},
        gain,
        bool(gain and gain.excludes_zero and enough_to_judge([[case.doc for case in cases]])),
        _mean([float(one.answer.refused) for one in rest]) if rest else None,
        _mean([float(one.answer.refused) for one in answerable]),
        _mean([float(one.answer.calls) for one in own]),
        _mean([float(one.answer.tokens) for one in own]),
        median(one.answer.ms for one in own),
        f"failed on {failed} of {len(own)} questions" if failed else "",
    )


def _rows(cases: Sequence[Any]) -> list[Group]:
    return [
        group
        for group in groups(cases)
        if group.variant == "all" and len(group.parts) == 1 and group.language != "mean"
    ]


def _mean(values: Sequence[float]) -> float:
    return float(np.mean(values)) if values else 0.0


def worth_json(rows: Sequence[Worth]) -> list[dict[str, Any]]:
    """All of it as JSON values."""
    return [{**asdict(row), "mrr": {_label(group): value for group, value in row.mrr.items()}} for row in rows]


def worth_text(rows: Sequence[Worth], k: int) -> str:
    """The table for the terminal."""
    return "\n".join([*as_table(*_cells(rows, k)), "", _EXPLAINED])


def worth_page(rows: Sequence[Worth], k: int, lead: str) -> str:
    """The table as a page."""
    return page("What each step is worth", lead, [section("One box at a time", table(*_cells(rows, k)), _EXPLAINED)])


_EXPLAINED = (
    "Worth: MRR of all questions with the box minus without it, 95 % interval by page; * where that leaves out 0. Refused:"
    " unanswerable / answerable questions. Calls, tokens and milliseconds (median) are of one question. Not in it: what needs an"
    " index of its own (summaries, clusters, another splitter or embedder) and other models, which `eval grid` measures, and"
    " tones, which `eval run` compares."
)


def _cells(rows: Sequence[Worth], k: int) -> tuple[list[str], list[list[str]]]:
    kinds = list(rows[0].mrr)
    header = [
        "steps",
        *(f"MRR@{k} {_label(kind)}" for kind in kinds),
        "worth",
        "refused",
        "calls",
        "tokens",
        "ms",
        "note",
    ]
    return header, [[row.name, *_figures(row, kinds), row.note] for row in rows]


def _figures(row: Worth, kinds: Sequence[Row]) -> list[str]:
    if not row.mrr:
        return ["–"] * (len(kinds) + 5)
    gain = row.gain
    worth = f"{gain.mean:+.3f}{'*' if row.outside_noise else ''} {gain.low:+.3f}…{gain.high:+.3f}" if gain else "–"
    refused = " / ".join(
        "–" if x is None else f"{100 * x:.0f} %" for x in (row.refused_unanswerable, row.refused_answerable)
    )
    shown = [f"{row.mrr[kind]:.3f}" for kind in kinds]
    return [*shown, worth, refused, f"{row.calls:.1f}", f"{row.tokens:.0f}", f"{row.ms:.0f}"]


def _label(row: Row) -> str:
    return f"{row[0]} cross" if row[1] else row[0]

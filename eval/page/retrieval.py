"""The page of a retrieval result: figures, bars against a baseline, depths, worst questions, space, configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from eval.measure.compare import flat
from eval.measure.depths import CURVE
from eval.measure.embedding_space import Space
from eval.measure.metrics import Estimate, title
from eval.measure.result import ALL, MEAN, CaseResult, Found, RetrievalResult, Row
from eval.measure.tables import VARIANTS
from eval.page.frame import page, section, table, tiles
from eval.page.svg import Bar, bars, cloud, legend

WORST = 25
CURVE_NAMES: Mapping[str, str] = {
    "rr": "MRR", "hit": "hit", "precision": "precision", "recall": "recall", "f1": "F1", "ndcg": "nDCG",
}  # fmt: skip


def retrieval_page(result: RetrievalResult, baseline: RetrievalResult | None = None, space: Space | None = None) -> str:
    """The whole page. `baseline` adds marks and differences, `space` the picture of the pages."""
    pages = len({one.case.doc for one in result.cases})
    lead = f"{len(result.cases)} questions about {pages} pages"
    lead += f", measured {result.config['date']}" if "date" in result.config else ""
    lead += f", against a result of {baseline.config.get('date', 'unknown date')}" if baseline else ""
    return page(
        f"Retrieval: {result.config.get('set', 'a question set')}",
        lead,
        [
            figures(result),
            section(
                f"{title('rr', result.k)} by language and way of asking",
                bars(_bars(result, baseline)),
                "Mean of 1/rank of the first right page. Whiskers: 95 % interval, drawn by page, because several questions"
                " are about one page."
                + (" Thick marks: the baseline." if baseline else "")
                + " Last column: questions.",
            ),
            section("Pages and chunks at several depths", _curve(result), "Mean of the languages, 95 % intervals."),
            section("Worst questions", worst(result), "Right pages are green. Open one to see what each step did."),
            _space(space),
            section("Configuration", configuration(result.config)),
        ],
    )


def figures(result: RetrievalResult) -> str:
    """The main figures as tiles."""
    found = []
    whole = result.row(MEAN) or next(iter(result.rows), None)
    if whole:
        found = [
            (title(name, result.k), f"{whole.measures[name].mean:.3f}", _range(whole.measures[name]))
            for name in ("rr", "hit_1", "hit")
        ]
    ms = result.milliseconds
    if ms:
        found.append(("search", f"{ms['p50']:.0f} ms", f"median; p95 {ms['p95']:.0f} ms"))
    found.append(("language told", f"{100 * result.language_right:.1f} %", "rightly"))
    failed = len(result.failed)
    found.append(("failed", str(failed), "searches, counted as misses"))
    return tiles(found)


def _bars(result: RetrievalResult, baseline: RetrievalResult | None) -> list[list[Bar]]:
    languages = sorted({row.language for row in result.rows})
    groups: dict[tuple[str, bool], list[Bar]] = {}
    for row in result.rows:
        before = baseline.row(row.language, row.variant, cross=row.cross) if baseline else None
        bar = Bar(
            _label(row),
            row.n,
            row.measures["rr"],
            languages.index(row.language),
            before.measures["rr"].mean if before else None,
        )
        groups.setdefault((row.language, row.cross), []).append(bar)
    return list(groups.values())


def _label(row: Row) -> str:
    language = "mean of languages" if row.language == MEAN else row.language
    language += " cross" if row.cross else ""
    return language if row.variant == ALL else f"{language} · {VARIANTS.get(row.variant, row.variant)}"


def _curve(result: RetrievalResult) -> str:
    points = [point for point in result.curve if point.language == MEAN] or list(result.curve)
    if not points:
        return ""
    rows = [
        [f"{p.level}s, first {p.k}", *(f"{p.measures[name].mean:.3f}  {_range(p.measures[name])}" for name in CURVE)]
        for p in points
    ]
    return table(["", *(CURVE_NAMES[name] for name in CURVE)], rows)


def worst(result: RetrievalResult) -> str:
    """The questions whose page was found last or not at all, each with its trace."""
    ordered = sorted(result.cases, key=lambda one: (one.scores.rr, one.case.id))
    return "".join(_question(one, result.k) for one in ordered[:WORST] if one.scores.rr < 1)


def _question(one: CaseResult, k: int) -> str:
    case = one.case
    rank = f"right page at {round(1 / one.scores.rr)}" if one.scores.rr else f"not among the first {k}"
    tag = f"{case.language} {VARIANTS.get(case.variant, case.variant)}"
    steps = "; ".join(
        f"{did.step} {did.ms:g} ms"
        + (f" ({did.changes})" if did.changes else "")
        + (f" FAILED: {did.error}" if did.error else "")
        for did in one.steps
    )
    told = one.error or steps
    before = "".join(f"<p>{escape(m.role)}: {escape(m.content)}</p>" for m in case.earlier)
    return (
        f'<details><summary><span class="tag">{escape(tag)}</span>{escape(case.question)}'
        f'<span class="rank">{escape(rank)}</span></summary>'
        f"{before}<p>Wanted: {escape(', '.join(case.relevant))}. Taken for: {escape(one.detected or 'nothing')}. {escape(told)}</p>"
        f"{_hits(one.hits)}</details>"
    )


def _hits(hits: Sequence[Found]) -> str:
    if not hits:
        return ""
    rows = "".join(
        f'<tr class="{"right" if hit.right else "wrong"}"><td>{i}. {escape(hit.link)}</td>'
        f"<td>{_score(hit.lexical)}</td><td>{_score(hit.cosine)}</td><td>{hit.fused:.3f}</td></tr>"
        for i, hit in enumerate(hits, start=1)
    )
    head = "<tr><th>passage</th><th>words (BM25)</th><th>cosine</th><th>fused</th></tr>"
    return f'<div class="wide"><table><thead>{head}</thead><tbody>{rows}</tbody></table></div>'


def _score(score: float | None) -> str:
    return "–" if score is None else f"{score:.3f}"


def _space(space: Space | None) -> str:
    if space is None:
        return ""
    languages = sorted({spot.language for spot in space.spots})
    note = f"Pages by their first chunks; the two directions of the largest spread, {100 * space.shown:.0f} % of it."
    if space.counterparts is not None and space.others is not None:
        note += (
            f" Lines join counterparts: their mean cosine is {space.counterparts:.2f}, that of any two pages"
            f" {space.others:.2f}. The nearer these two are, the less vectors carry a question across languages."
        )
    return section("Embedding space", legend(languages) + cloud(space, languages), note)


def configuration(config: Mapping[str, Any]) -> str:
    """What it was measured with, a setting a line."""
    rows = [(name, _told(value)) for name, value in flat(config) if value not in ("", None, [], {})]
    return table(["setting", "value"], rows, words=True)


def _told(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _range(one: Estimate) -> str:
    return f"{one.low:.2f}–{one.high:.2f}"

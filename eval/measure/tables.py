"""Results as text: tables for the terminal, Markdown tables, and notes below them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

from eval.measure.metrics import CURVE, MEASURES, Estimate, title
from eval.measure.result import RetrievalResult
from eval.measure.rows import ALL, MEAN, Difference, Row, RowDifference

VARIANTS: Mapping[str, str] = {"1": "1 full", "2": "2 detail", "3": "3 hurried", "4": "4 keywords"}
LISTED = 20
CURVE_NAMES: Mapping[str, str] = {
    "rr": "MRR", "hit": "hit", "precision": "precision", "recall": "recall", "f1": "F1", "ndcg": "nDCG",
}  # fmt: skip


def retrieval_text(result: RetrievalResult) -> str:
    """A result for the terminal: every measure with its interval, times, and all problems."""
    header = ["", "n", *(title(measure, result.k) for measure in MEASURES)]
    rows = [
        [row_name(row), str(row.n), *(_interval(row.measures[measure]) for measure in MEASURES)] for row in result.rows
    ]
    return "\n".join([*as_table(header, rows), *curve_text(result), "", *_facts(result), *_problems(result)])


def curve_text(result: RetrievalResult) -> list[str]:
    """The measures at each depth, of pages and of chunks; empty if only the usual depth was measured."""
    points = [p for p in result.curve if p.language == MEAN]
    if max((p.k for p in points), default=0) <= result.k:
        return []
    header = ["mean of languages", "n", *(CURVE_NAMES[name] for name in CURVE)]
    rows = [[f"{p.level}s, first {p.k}", str(p.n), *(_interval(p.measures[name]) for name in CURVE)] for p in points]
    return ["", *as_table(header, rows)]


def retrieval_markdown(result: RetrievalResult) -> str:
    """A result as a Markdown table; the interval is that of the reciprocal rank."""
    header = ["questions", "n", title("rr", result.k), "95 %", *(title(m, result.k) for m in MEASURES[1:])]
    rows = []
    for row in result.rows:
        rr = row.measures["rr"]
        cells = [
            row_name(row),
            str(row.n),
            f"{rr.mean:.3f}",
            f"{rr.low:.2f}–{rr.high:.2f}",
            *(f"{row.measures[measure].mean:.2f}" for measure in MEASURES[1:]),
        ]
        rows.append([f"**{cell}**" for cell in cells] if row.variant == ALL else cells)
    return "\n".join([*_markdown_table(header, rows), "", *(f"{line}  " for line in _facts(result))])


def _facts(result: RetrievalResult) -> list[str]:
    config, ms = result.config, result.milliseconds
    index = config.get("index", {})
    recipe = index.get("recipe", {})
    lines = [
        f"Without a model, {quotation.language}: the proof is in the first quotation of {100 * quotation.first:.0f} % of {quotation.n}"
        f" answers, in any of {100 * quotation.anywhere:.0f} %; the median answer has {quotation.characters:.0f} characters."
        for quotation in result.quotations
    ]
    if ms:
        lines.append(
            f"Search took {ms['p50']:.0f} ms (median), {ms['p95']:.0f} ms (p95), {config.get('parallel', 1)} at once."
            f" Language detected correctly: {100 * result.language_right:.1f} %."
        )
    if index:
        lines.append(
            f"Index: {index['pages']} pages, {index['chunks']} chunks, generation {index['id']} of"
            f" {index['built_at']}; embedder {recipe['embedder']} ({recipe['dimension']}), splitter"
            f" {recipe['splitter']}, analyzer {recipe['analyzer']}."
        )
    if "model" in config:
        lines.append(f"Language model: {config['model'] or 'none'}. Steps: {', '.join(config.get('steps', ()))}.")
    lines.append("Intervals are 95 % and resample pages, not questions: several questions are about one page.")
    if "date" in config:
        lines.append(f"Measured {config['date']}.")
    return lines


def _problems(result: RetrievalResult) -> list[str]:
    lines = []
    if result.unmatched:
        docs = Counter(case_result.case.doc for case_result in result.unmatched)
        lines += [
            "",
            f"{len(result.unmatched)} questions are about {len(docs)} documents that are no indexed pages:",
            *(f"  {doc} ({n})" for doc, n in docs.most_common(LISTED)),
            *([f"  and {len(docs) - LISTED} more"] if len(docs) > LISTED else []),
            "They are misses, unless another right page is found.",
        ]
    if result.failed:
        first = result.failed[0]
        lines += [
            "",
            f"{len(result.failed)} searches failed and are misses, the first one on {first.case.question!r}:",
            f"  {first.error}",
        ]
    fallbacks = Counter(step for case_result in result.cases for step in case_result.fallbacks)
    for step, n in fallbacks.items():
        lines += ["", f"{step} failed on {n} of {len(result.cases)} questions, which were searched without it."]
    if len(result.config.get("index", {}).get("generations_seen", ())) > 1:
        lines += ["", "The index was published during the run: the questions saw different generations. Measure again."]
    return lines


def row_name(row: Row | RowDifference) -> str:
    """The name of a row in tables."""
    language = "mean of languages" if row.language == MEAN else language_name(row.language, cross=row.cross)
    return language if row.variant == ALL else f"{language} {VARIANTS.get(row.variant, row.variant)}"


def language_name(language: str, *, cross: bool) -> str:
    """The name of a language in tables."""
    return f"{language} cross" if cross else language


def _interval(estimate: Estimate) -> str:
    return f"{_short(estimate.mean, 3)} {_short(estimate.low, 2)}–{_short(estimate.high, 2)}"


def difference_cell(difference: Difference) -> str:
    """A paired difference with its interval; * if it is significant."""
    estimate = difference.estimate
    star = "*" if difference.outside_noise else " "
    return f"{estimate.mean:+.3f}{star} {estimate.low:+.3f}…{estimate.high:+.3f}"


def _short(share: float, digits: int) -> str:
    # without the leading zero, the table fits a terminal
    text = f"{share:.{digits}f}"
    return text[1:] if text.startswith("0") else text[:-1]


def as_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The lines of a table: the first column left-aligned, the others right-aligned."""
    widths = [max(len(row[i]) for row in (header, *rows)) for i in range(len(header))]
    return [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in (header, *rows)
    ]


def _markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    line = ["---", *["---:"] * (len(header) - 1)]
    return [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in row)} |" for row in (header, line, *rows)]

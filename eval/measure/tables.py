"""Results as text for the terminal: tables of figures and differences, and notes below them."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from eval.measure.clusters import SCORES
from eval.measure.gate import Verdict
from eval.measure.refusals import Refusals
from eval.measure.result import RETRIEVAL, Change, Comparison, Result
from eval.measure.retrieval import curve, language_right
from eval.measure.rows import (
    ALL,
    CURVE,
    MEAN,
    UNANSWERABLE,
    Difference,
    Estimate,
    Row,
    RowDifference,
    as_matrix,
    intervals,
    title,
)

Table = tuple[list[str], list[list[str]]]
VARIANTS: Mapping[str, str] = {"1": "1 full", "2": "2 detail", "3": "3 hurried", "4": "4 keywords"}
LISTED = 20
MOVES = 10  # listed questions that moved
WIDE = 4  # measures in a table of differences by language
DIFFERENCE = ("difference, 95 %", "before", "after", "n", "better", "worse", "equal")
STAR = "* the 95 % interval (bootstrap of the paired differences, over pages) doesn't contain 0, and there are enough questions"


def result_text(result: Result) -> str:
    """A result of searches for the terminal: every measure with its interval, the differences, times, and all problems."""
    lines = list[str]()
    for name in result.contestants:
        lines += [*as_table(*measure_table(result, name)), ""]
    if (points := curve_table(result))[1]:
        lines += [*as_table(*points), ""]
    for comparison in result.comparisons:
        lines += [comparison_text(comparison), ""]
    return "\n".join([*lines, *_facts(result), *_problems(result)])


def measure_table(result: Result, contestant: str) -> Table:
    """All known measures of a contestant by language and variant."""
    rows = result.rows[contestant]
    known = [name for name in result.measures if any(name in row.measures for row in rows)]
    return [contestant, "n", *(title(name, result.k) for name in known)], [
        [row_name(row), str(row.n), *(interval_cell(row.measures[m]) if m in row.measures else "–" for m in known)]
        for row in rows
    ]


def curve_table(result: Result) -> Table:
    """The measures at each depth, of pages and of chunks; no rows if only the usual depth was measured."""
    points = curve(result) if result.kind == RETRIEVAL else ()
    if max((point.k for point in points), default=0) <= result.k:
        return [], []
    names = {"rr": "MRR", "f1": "F1", "ndcg": "nDCG"}
    return ["mean of languages", "n", *(names.get(name, name) for name in CURVE)], [
        [f"{p.level}s, first {p.k}", str(p.n), *(interval_cell(p.measures[name]) for name in CURVE)] for p in points
    ]


def _sureness(quoted: Mapping[str, Any]) -> str:
    if "sure" not in quoted:  # in a result that an older version saved
        return ""
    return f'{100 * quoted["sure"]:.0f} % don\'t say "Perhaps", of which {100 * quoted["right"]:.0f} % have it; '


def _facts(result: Result) -> list[str]:
    config, ms = result.config, result.milliseconds
    index = config.get("index", {})
    recipe = index.get("recipe", {})
    lines = [
        f"Without a model, {quoted['language']}: the proof is in the first quotation of {100 * quoted['first']:.0f} % of"
        f" {quoted['n']} answers, in any of {100 * quoted['anywhere']:.0f} %; {_sureness(quoted)}"
        f"the median answer has {quoted['characters']:.0f} characters."
        for quoted in config.get("quotations", ())
    ]
    if second := config.get("conversations"):
        lines.append(
            f"Asked second in a conversation, {100 * second['changed']:.1f} % of {second['alone']} questions that stand alone have another"
            f" first section than alone; {100 * second['found']:.1f} % of {second['back']} that point back find their page,"
            f" {100 * second['first']:.1f} % first."
        )
        lines += [f"  {text}" for text in second["wrong"]]
    if ms:
        lines.append(
            f"Search took {ms['p50']:.0f} ms (median), {ms['p95']:.0f} ms (p95), {config.get('parallel', 1)} at once."
            f" Language detected correctly: {100 * language_right(result):.1f} %."
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


def _problems(result: Result) -> list[str]:
    lines = []
    if unmatched := [outcome for outcome in result.outcomes if not outcome.details["in_index"]]:
        docs = Counter(outcome.case.doc for outcome in unmatched)
        lines += [
            "",
            f"{len(unmatched)} questions are about {len(docs)} documents that are no indexed pages:",
            *(f"  {doc} ({n})" for doc, n in docs.most_common(LISTED)),
            *([f"  and {len(docs) - LISTED} more"] if len(docs) > LISTED else []),
            "They are misses, unless another right page is found.",
        ]
    if failed := result.failed:
        lines += [
            "",
            f"{len(failed)} searches failed and are misses, the first one on {failed[0].case.question!r}:",
            f"  {failed[0].error}",
        ]
    fallbacks = Counter(step for outcome in result.outcomes for step in outcome.details["fallbacks"])
    for step, n in fallbacks.items():
        lines += ["", f"{step} failed on {n} of {len(result.outcomes)} questions, which were searched without it."]
    if len(result.config.get("index", {}).get("generations_seen", ())) > 1:
        lines += ["", "The index was published during the run: the questions saw different generations. Measure again."]
    return lines


def refusals_text(result: Result) -> str:
    """The shares by kind, and the curve over thresholds."""
    figures = Refusals(result)
    header = ["", "n", "refused, 95 %", "treated as small talk"]
    rows = [
        [f"{one.kind}, {one.language}", str(one.n), interval_cell(one.refused), f"{100 * one.smalltalk:.0f} %"]
        for one in figures.shares
    ]
    now = figures.now
    lines = [
        *as_table(header, rows),
        "",
        f"At {now.threshold:g}: {100 * now.recall:.0f} % of the unanswerable are refused, {100 * now.over_refusal:.1f} % of the answerable.",
        "Thresholds, recall and over-refusal:",
    ]
    tenths = [point for point in figures.curve if round(point.threshold * 50) % 5 == 0]
    lines += [f"  {p.threshold:.1f}: {100 * p.recall:3.0f} %  {100 * p.over_refusal:4.1f} %" for p in tenths]
    rows = [[f"from {one.times:g} times", str(one.n), f"{100 * one.right:.0f} %"] for one in figures.groups]
    lines += ["", *as_table(["evidence, of the needed", "answered", "right page among the passages"], rows)]
    if failed := result.failed:
        lines.append(f"{len(failed)} questions failed and are in no figure, the first with: {failed[0].error}")
    return "\n".join(lines)


def clusters_table(result: Result) -> Table:
    """F1 of searches by clusters beside naive search: means ± standard deviations over questions, and the paired differences."""
    own = {n: as_matrix([one.values for one in result.of(n).outcomes], result.measures) for n in result.contestants}
    pages = [[case.doc for case in result.cases]]
    gaps = {f"{n}: difference": intervals([own[n] - own[result.base]], pages) for n in own if n != result.base}
    return ["chunks", *own, *gaps], [
        [title(name, 0), *(f"{values[:, i].mean():.3f} ± {values[:, i].std():.3f}" for values in own.values())]
        + [f"{gap[i].mean:+.3f} {gap[i].low:+.3f}…{gap[i].high:+.3f}" for gap in gaps.values()]
        for i, name in enumerate(result.measures)
    ]


def clusterings_table(found: Sequence[Mapping[str, Any]]) -> Table:
    """How well clusters of each number agree with each kind of labels."""
    return ["labels", "clusters", "largest", *SCORES], [
        [one["kind"], str(one["clusters"]), str(one["largest"]), *(f"{one[name]:.3f}" for name in SCORES)]
        for one in sorted(found, key=lambda one: str(one["kind"]))
    ]


def cosines_line(near: Mapping[str, Any]) -> str:
    """The cosines of relevant and of other pairs in a sentence."""
    right, other = (f"{of['n']}: {of['mean']:.3f} ± {of['sd']:.3f}" for of in (near["relevant"], near["other"]))
    larger = f"A relevant pair has the larger one in {100 * near['auc']:.0f} %."
    return f"Cosines of relevant pairs, {right}; of others, {other}. {larger}"


def comparison_text(comparison: Comparison) -> str:
    """The comparison for the terminal; * marks significant differences."""
    before, after = comparison.names
    lines = [f"{after} minus {before}, {comparison.n} questions in both", "", *as_table(*whole_table(comparison))]
    rows = group_table(comparison)
    lines += ["", *as_table(*rows)] if rows[1] else []
    lines += ["", STAR]
    if comparison.left_out:
        lines.append(f"{comparison.left_out} questions that only one of the two has are left out.")
    lines += _moves("worse", comparison, comparison.worse) + _moves("better", comparison, comparison.better)
    if comparison.config:
        lines += ["", "Measured differently:", *(f"  {name}: {a} → {b}" for name, (a, b) in comparison.config.items())]
    return "\n".join(lines)


def whole_table(comparison: Comparison) -> Table:
    """Each measure over the mean of the languages, and over the questions that no page answers."""
    return ["", *DIFFERENCE], [
        [
            title(name, comparison.k) + (f", {UNANSWERABLE}" if row.language == UNANSWERABLE else ""),
            difference_cell(difference), f"{difference.before:.3f}", f"{difference.after:.3f}", str(difference.n),
            str(difference.better), str(difference.worse), str(difference.n - difference.better - difference.worse),
        ]
        for row in _wholes(comparison)
        for name, difference in row.measures.items()
    ]  # fmt: skip


def group_table(comparison: Comparison) -> Table:
    """The differences by language and variant, in the measures by which questions are judged."""
    wholes = _wholes(comparison)
    rows = [row for row in comparison.rows if row not in wholes]
    known = [name for name in comparison.pairs.measures if any(name in row.measures for row in rows)]
    # those by which questions are judged, and among these those that moved
    still = {m for m in known if not any(one.better or one.worse for row in rows if (one := row.measures.get(m)))}
    shown = sorted(known, key=lambda name: (name not in comparison.judged, name in still))[:WIDE]
    cells = [
        [row_name(row), str(row.n), *(difference_cell(row.measures[m]) if m in row.measures else "–" for m in shown)]
        for row in rows
    ]
    return ["difference", "n", *(title(name, comparison.k) for name in shown)], cells


def _wholes(comparison: Comparison) -> list[RowDifference]:
    wholes = [row for row in comparison.rows if row.language in {MEAN, UNANSWERABLE}]
    return wholes or [row for row in comparison.rows if row.variant == ALL]


def moved(change: Change, comparison: Comparison) -> str:
    """Returns the change, as "faithful 1 → 0"; of what was searched, the ranks, as "page 1 → 2"."""

    def shown(value: float) -> str:
        if comparison.k:
            return str(round(1 / value)) if value else "–"
        return f"{value:.2f}".removesuffix(".00")

    names = {"rr": "page"}
    return ", ".join(f"{names.get(name, name)} {' → '.join(map(shown, pair))}" for name, pair in change.values.items())


def _moves(name: str, comparison: Comparison, moves: Sequence[Change]) -> list[str]:
    listed = f", the {MOVES} biggest moves" if len(moves) > MOVES else ""
    return [
        "",
        f"Became {name}: {len(moves)} questions{listed}",
        *(
            f"  {moved(move, comparison)}  [{language_name(move.case.language, cross=move.case.cross)} {move.case.variant}]"
            f" {move.case.question}"
            for move in moves[:MOVES]
        ),
    ]


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


def row_name(row: Row | RowDifference) -> str:
    """The name of a row in tables."""
    language = "mean of languages" if row.language == MEAN else language_name(row.language, cross=row.cross)
    return language if row.variant == ALL else f"{language} {VARIANTS.get(row.variant, row.variant)}"


def language_name(language: str, *, cross: bool) -> str:
    """The name of a language in tables."""
    return f"{language} cross" if cross else language


def interval_cell(estimate: Estimate) -> str:
    """A mean with its interval."""
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

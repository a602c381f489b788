"""Results as pages of HTML: searches, refusals, and answers with their passages and differences. `templates/parts.html` has the parts of
a page: sections, tiles, tables, and charts as SVG. Answers are also a report of Evidently, which needs the extra `eval`.
"""

import re
import warnings
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from eval.answers.score import effort_table, kind_shares, kind_table
from eval.files import EvaluationError
from eval.measure.clusters import SCORES
from eval.measure.refusals import ANSWERABLE, CROSS, Refusals
from eval.measure.result import ANSWERS, MEASURES, Outcome, Result, flat
from eval.measure.retrieval import language_right
from eval.measure.rows import Estimate, title
from eval.measure.tables import (
    MOVES,
    STAR,
    VARIANTS,
    clusterings_table,
    clusters_table,
    cosines_line,
    curve_table,
    group_table,
    measure_table,
    moved,
    row_name,
    whole_table,
)
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule
from eval.questions.evidence import places, share
from eval.questions.labels import Pair

WORST = 25
LISTED = 20
HUES = 10


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `colour` is the number of its group, `before` the figure that it is compared with."""

    label: str
    n: int
    estimate: Estimate
    colour: int = 0
    before: float | None = None


def page(name: str, what: str, lead: str, result: Result, **values: Any) -> str:
    """A page: its heading, its parts as the template `name` arranges the values, and the configuration."""
    config = [
        (key, ", ".join(map(str, value)) if isinstance(value, list) else value)
        for key, value in flat(result.config)
        if value not in ("", None, [], {})
    ]
    heading = f"{what}: {result.config.get('set', 'a question set')}"
    lead = f"{lead}, measured {result.config.get('date', 'at an unknown time')}"
    template = _environment().get_template(f"{name}.html")
    return template.render(heading=heading, lead=lead, config=config, variants=VARIANTS, result=result, **values)


def spread(estimate: Estimate) -> str:
    """The interval of an estimate."""
    return f"{estimate.low:.2f}–{estimate.high:.2f}"


def compared(result: Result) -> list[tuple[Any, ...]]:
    """Every other contestant against the base: the names and two tables."""
    return [
        (comparison.names, whole_table(comparison), group_table(comparison), STAR) for comparison in result.comparisons
    ]


def bars(result: Result, measure: str, before: Result | None = None) -> list[list[Bar]]:
    """The bars of a measure: contestants side by side, a single one by language, with marks where it stood `before`."""
    names = result.contestants
    languages = sorted({row.language for row in result.rows[names[0]]})
    groups: dict[tuple[str, str, bool], list[Bar]] = {}
    for name in names:
        for row in result.rows[name]:
            if measure not in row.measures:
                continue
            earlier = before.row(row.language, row.variant, cross=row.cross) if before else None
            mark = earlier.measures[measure].mean if earlier else None
            alone = len(names) == 1
            colour = languages.index(row.language) if alone else names.index(name)
            bar = Bar(row_name(row), row.known[measure], row.measures[measure], colour, mark)
            groups.setdefault((row.language, "" if alone else row.variant, row.cross), []).append(bar)
    return list(groups.values())


def retrieval_page(result: Result, before: Result | None = None) -> str:
    """The page of a result of searches; `before` adds marks and differences."""
    return page(
        "retrieval",
        "Retrieval",
        f"{len(result.cases)} questions about {len({case.doc for case in result.cases})} pages",
        result,
        figures=_figures(result),
        chart=f"{title('rr', result.k)} by language and way of asking",
        bars_of=bars(result, "rr", before),
        before=before,
        compared=compared(result),
        curve=curve_table(result),
        worst=_worst(result),
    )


def clusters_page(
    result: Result, found: Sequence[Mapping[str, Any]], near: Mapping[str, Any], drawing: Mapping[str, Any]
) -> str:
    """The page of searches by clusters: the table, clusterings against labels, the space of the embeddings, and cosines."""
    folders = Counter(point["folder"] for point in drawing["points"]).most_common(HUES)
    kinds = {one["kind"]: [own for own in found if own["kind"] == one["kind"]] for one in found}
    curves = {kind: [[(one["clusters"], one[name]) for one in own] for name in SCORES] for kind, own in kinds.items()}
    return page(
        "clusters",
        "Clusters and embeddings",
        f"{len(result.cases)} questions",
        result,
        tables=(clusters_table(result), clusterings_table(found)),
        curves=curves,
        scores=SCORES,
        near=near,
        cosines=cosines_line(near),
        drawing=drawing,
        colours={folder: f"hsl({360 * place // HUES} 65% 50%)" for place, (folder, _) in enumerate(folders)},
        measures=[measure_table(result, name) for name in result.contestants],
    )


def sheet_page(pairs: Sequence[Pair]) -> str:
    """A page on which a person labels pairs, and saves them as a sheet (.csv)."""
    template = _environment().get_template("sheet.html")
    return template.render(heading="Which passages help?", lead=f"{len(pairs)} pairs", pairs=pairs)


def refusals_page(result: Result) -> str:
    """The page of refusals: shares by kind, the curve over thresholds, wrong decisions."""
    figures = Refusals(result)
    groups: dict[str, list[Bar]] = {}
    for one in figures.shares:
        colour = 0 if one.kind in {ANSWERABLE, CROSS} else 1
        groups.setdefault(one.kind, []).append(Bar(f"{one.kind}, {one.language}", one.n, one.refused, colour))
    return page(
        "refusals",
        "Refusals",
        f"{len(result.outcomes)} questions",
        result,
        figures=figures,
        bars_of=list(groups.values()),
        over_refusal=[(point.threshold, point.over_refusal) for point in figures.curve],
        recall=[(point.threshold, point.recall) for point in figures.curve],
        listed=LISTED,
    )


def _figures(result: Result) -> list[tuple[str, str, str]]:
    """The main figures: name, value, note."""
    whole, ms = result.row() or result.rows[result.contestants[0]][0], result.milliseconds
    names = [name for name in ("rr", "hit_1", "hit") if name in whole.measures]
    figures = [
        (title(name, result.k), f"{whole.measures[name].mean:.3f}", spread(whole.measures[name])) for name in names
    ]
    if ms:
        figures.append(("search", f"{ms['p50']:.0f} ms", f"median; p95 {ms['p95']:.0f} ms"))
    if all("detected" in outcome.details for outcome in result.outcomes):
        figures.append(("language detected", f"{100 * language_right(result):.1f} %", "correctly"))
    return [*figures, ("failed", str(len(result.failed)), "questions, which are misses")]


def _worst(result: Result) -> list[Outcome]:
    """The questions whose page the first contestant found last or not at all."""
    own = [
        (outcome.values["rr"] or 0.0, outcome.case.id, outcome)
        for outcome in result.of(result.contestants[0]).outcomes
        if outcome.case.doc
    ]
    return [outcome for rr, _, outcome in sorted(own, key=lambda entry: entry[:2])[:WORST] if rr < 1]


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("eval.reports"),
        extensions=["jinja2.ext.do"],
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


Piece: TypeAlias = tuple[str, str]
"""A text with the name of its HTML element (mark, del, ins), or an empty name."""

AROUND = 240  # characters
_TOKEN = re.compile(r"\w+|\s+|[^\w\s]")


def plain(text: str) -> list[Piece]:
    """A text without marks."""
    return [("", text)] if text else []


def proven(text: str, quote: str) -> list[Piece]:
    """The text with the quote marked where it is."""
    pieces, end = list[Piece](), 0
    for start, stop in places(text, quote):
        pieces += [*plain(text[end:start]), ("mark", text[start:stop])]
        end = stop
    return pieces + plain(text[end:])


def excerpt(text: str, quote: str) -> list[Piece]:
    """The part of the text around the first place of the quote, which is marked."""
    start, end = next(iter(places(text, quote)), (0, 0))
    first, last = max(0, start - AROUND), min(len(text), end + AROUND)
    cut = f"{'…' * (first > 0)}{text[first:last].strip()}{'…' * (last < len(text))}"
    return proven(cut, quote)


def differences(before: str, after: str) -> tuple[list[Piece], list[Piece]]:
    """Two texts word by word: what only the first one has is marked in it, what only the second one has in that."""
    a, b = _TOKEN.findall(before), _TOKEN.findall(after)
    first, second = list[Piece](), list[Piece]()
    for kind, i, j, m, n in SequenceMatcher(None, a, b, autojunk=False).get_opcodes():
        for side, mark, tokens in ((first, "del", a[i:j]), (second, "ins", b[m:n])):
            side.extend([("" if kind == "equal" else mark, "".join(tokens))] if tokens else [])
    return first, second


SHOWN = ("faithful", "complete", "correctness", "language")
WHOLE, PART = 1.0, 0.5


def answers_page(result: Result, rules: Sequence[Rule] = ()) -> str:
    """The page of answers; `rules` find the documents of the set among the pages, as in the run."""
    means = {name: row for name in result.contestants if (row := result.row(contestant=name))}
    figures = [
        (f"{name}: {measure}", f"{100 * row.measures[measure].mean:.0f} %", spread(row.measures[measure]))
        for name, row in means.items()
        for measure in SHOWN
        if measure in row.measures
    ]
    lost = [("failed", str(len(result.failed)), "answers"), ("failed", str(result.malformed), "judgements")]
    return page(
        "answers",
        "Answers",
        f"{len(result.outcomes)} answers of {', '.join(result.contestants)}",
        result,
        figures=[*figures, *lost],
        charts={measure: bars(result, measure) for measure in SHOWN},
        kinds=kind_table(result),
        shares=[
            [Bar(kind, n, estimate, result.contestants.index(name)) for name, (n, estimate) in own.items()]
            for kind, own in kind_shares(result).items()
            if own
        ],
        efforts=effort_table(result),
        measures=[measure_table(result, name) for name in result.contestants],
        compared=compared(result),
        questions=_questions(result, Documents((), rules)),
        opened=MOVES,
        note=result.config.get("note", ""),
    )


def _questions(result: Result, documents: Documents) -> list[dict[str, Any]]:
    """All questions with what is shown about each: those that moved most, then those with the worst answers."""
    answers: dict[str, list[Outcome]] = {}
    for outcome in result.outcomes:
        answers.setdefault(outcome.case.id, []).append(outcome)
    changes = {
        change.case.id: (abs(change.difference), moved(change, comparison))
        for comparison in reversed(result.comparisons)
        for change in comparison.changes
    }
    unmoved = (0.0, "")
    ordered = sorted(answers.items(), key=lambda own: (-changes.get(own[0], unmoved)[0], min(map(_badness, own[1]))))
    return [_question(own, result.base, changes.get(id_, unmoved)[1], documents) for id_, own in ordered]


def _question(own: Sequence[Outcome], base: str, note: str, documents: Documents) -> dict[str, Any]:
    case = own[0].case
    tag = f"{case.language} {VARIANTS.get(case.variant, case.variant)}"
    note = note or "; ".join(dict.fromkeys(filter(None, map(_mistake, own))))
    read: dict[tuple[str, ...], list[Outcome]] = {}
    for outcome in own:
        read.setdefault(tuple(outcome.details["passages"]), []).append(outcome)
    readings = [_reading(case, has, documents) for has in read.values()]
    return {"case": case, "tag": tag, "note": note, "readings": readings, "sides": _sides(own, base, documents)}


def _sides(own: Sequence[Outcome], base: str, documents: Documents) -> list[dict[str, Any]]:
    """The answers with their texts in pieces, their known measures, and for each source whether it is a right page; that of the
    base first. Differences are marked, in the base only if there is one other answer.
    """
    ordered = sorted(own, key=lambda outcome: outcome.contestant != base)
    before, *others = [outcome.details["text"] or outcome.error for outcome in ordered]
    compared = [differences(before, after) for after in others]
    first = compared[0][0] if len(compared) == 1 else plain(before)
    texts = [first, *(after for _, after in compared)]
    return [
        {
            "outcome": outcome,
            "text": text,
            "sources": [(url, _right(url, outcome.case, documents)) for url in outcome.details["links"]],
            "figures": ", ".join(f"{m} {value:.2f}" for m, value in outcome.values.items() if value is not None),
        }
        for outcome, text in zip(ordered, texts, strict=True)
    ]


def _reading(case: Case, has: Sequence[Outcome], documents: Documents) -> dict[str, Any]:
    """The passages that these answers have in common, each as its heading and its text in pieces, and where the proof is."""
    passages = has[0].details["passages"]
    shares = [share(passage, case.evidence) if case.evidence else 0.0 for passage in passages]
    best = max(shares, default=0.0)
    holding = {i for i, value in enumerate(shares) if value == best >= PART}
    pages = [rank for rank, url in enumerate(has[0].details["pages"], 1) if _right(url, case, documents)]
    shown = [
        (heading, proven(text, case.evidence) if i in holding else plain(text))
        for i, (heading, _, text) in enumerate(passage.partition("\n") for passage in passages)
    ]
    part = excerpt(passages[min(holding)], case.evidence) if holding else []
    names = ", ".join(outcome.contestant for outcome in has)
    proof = _proof(case, best, sorted(holding), pages)
    return {"names": names, "proof": proof, "excerpt": part, "passages": shown}


def _proof(case: Case, best: float, holding: Sequence[int], pages: Sequence[int]) -> str:
    """Says in words where the proof is."""
    if not case.answerable:
        return "No page answers this question."
    if not case.evidence:
        return "The question set has no evidence for this question."
    numbers = ", ".join(str(i + 1) for i in holding)
    if best >= WHOLE:
        return f"The proof is in passage {numbers}."
    if holding:
        return f"A part of the proof ({100 * best:.0f} %) is in passage {numbers}."
    where = f"Its page was found at rank {pages[0]}, with other passages." if pages else "Its page was not found."
    return f"NOT READ: the proof is in no passage. {where}"


def _right(url: str, case: Case, documents: Documents) -> bool:
    return bool(case.doc) and documents.label(url, case.relevant) in case.relevant


def _badness(outcome: Outcome) -> tuple[float, float]:
    judged = [outcome.values[name] for name in ("faithful", "complete", "refusal")]
    return (sum(1.0 if value is None else value for value in judged), outcome.values["correctness"] or 0.0)


def _mistake(outcome: Outcome) -> str:
    """The mistake in one word."""
    if outcome.error:
        return "failed"
    if outcome.values["refusal"] == 0:
        return "declined" if outcome.answerable else "answered, though no page does"
    judged = {"faithful": "unfaithful", "complete": "incomplete"}
    mistakes = [word for name, word in judged.items() if outcome.values[name] == 0]
    correctness = outcome.values["correctness"]
    return ", ".join(mistakes) or ("" if correctness is None else f"correctness {correctness:.2f}")


def evidently_page(result: Result, path: str | Path) -> None:
    """Write Evidently's page (about 4 MB, with its scripts inside). Raises `EvaluationError` without the extra."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # deprecation warnings of its imports
        try:
            import pandas as pd
            from evidently import DataDefinition, Dataset, Report
            from evidently.presets import DataSummaryPreset
        except ImportError as error:
            raise EvaluationError(
                f"Evidently isn't installed ({error}). Install the extra: pip install 'docs-assistant[eval]'."
            ) from error
        known = [outcome.values for outcome in result.outcomes]  # noqa: PD011  # ours, no frame
        shown = [name for name in MEASURES[ANSWERS] if any(values[name] is not None for values in known)]
        frame = pd.DataFrame(
            {
                "contestant": outcome.contestant,
                "language": outcome.case.language,
                "variant": outcome.case.variant,
                "question": outcome.case.question,
                "answer": outcome.details["text"],
                "reference": outcome.case.answer,
                **{name: values[name] for name in shown},
            }
            for outcome, values in zip(result.outcomes, known, strict=True)
        ).astype(dict.fromkeys(shown, float))
        definition = DataDefinition(
            text_columns=["question", "answer", "reference"],
            categorical_columns=["contestant", "language", "variant"],
            numerical_columns=shown,
        )
        Report([DataSummaryPreset()]).run(Dataset.from_pandas(frame, definition), None).save_html(str(path))

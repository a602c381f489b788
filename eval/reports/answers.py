"""The answers of a run as a page of HTML with the passages and differences, and as a report of Evidently, which needs the extra `eval`."""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from jinja2 import Environment, PackageLoader, StrictUndefined

from eval.answers.result import AnswerResult, answer_cells, effort_table, kind_table
from eval.answers.score import MEASURES, Scored
from eval.files import EvaluationError
from eval.measure.compare import LISTED, STAR, Change, flat, group_table, moved, whole_table
from eval.measure.metrics import Estimate
from eval.measure.rows import ALL, MEAN
from eval.measure.tables import VARIANTS, row_name
from eval.questions.cases import Case
from eval.questions.documents import Documents, Rule
from eval.questions.evidence import places, share


@dataclass(frozen=True, slots=True)
class Bar:
    """One bar: `colour` is the number of its group, `before` the figure that it is compared with."""

    label: str
    n: int
    estimate: Estimate
    colour: int = 0
    before: float | None = None


def page(name: str, heading: str, lead: str, config: Mapping[str, Any], **values: Any) -> str:
    """A page: its heading, its parts as the template `name` arranges the values, and the configuration."""
    rows = [
        (name, ", ".join(map(str, value)) if isinstance(value, list) else value)
        for name, value in flat(config)
        if value not in ("", None, [], {})
    ]
    template = _environment().get_template(f"{name}.html")
    return template.render(heading=heading, lead=lead, config=rows, variants=VARIANTS, **values)


def spread(one: Estimate) -> str:
    """The interval of an estimate."""
    return f"{one.low:.2f}–{one.high:.2f}"


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
        first += _piece("" if kind == "equal" else "del", a[i:j])
        second += _piece("" if kind == "equal" else "ins", b[m:n])
    return first, second


def _piece(mark: str, tokens: Sequence[str]) -> list[Piece]:
    return [(mark, "".join(tokens))] if tokens else []


SHOWN = ("faithful", "complete", "correctness", "language")
WHOLE, PART = 1.0, 0.5


@dataclass(frozen=True, slots=True)
class Side:
    """One answer of a question: its text in pieces, its sources and whether each is a right page."""

    scored: Scored
    text: Sequence[Piece]
    sources: Sequence[tuple[str, bool]]

    @property
    def figures(self) -> str:
        """The known measures."""
        return ", ".join(f"{name} {value:.2f}" for name, value in self.scored.values.items() if value is not None)


@dataclass(frozen=True, slots=True)
class Reading:
    """Text that some contestants read: where the proof is in it, and each passage as its heading and its text in pieces."""

    names: str
    proof: str
    excerpt: Sequence[Piece]
    passages: Sequence[tuple[str, Sequence[Piece]]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question with everything that is shown about it."""

    case: Case
    tag: str
    note: str
    readings: Sequence[Reading]
    sides: Sequence[Side]


def answers_page(result: AnswerResult, rules: Sequence[Rule] = ()) -> str:
    """The page of answers; `rules` find the documents of the set among the pages, as in the run."""
    known = [measure for measure in MEASURES if any(measure in row.measures for row in result.rows)]
    figures = [
        (f"{row.contestant}: {m}", f"{100 * row.measures[m].mean:.0f} %", spread(row.measures[m]))
        for row in result.rows
        if row.language == MEAN
        for m in SHOWN
        if m in row.measures
    ]
    lost = [("failed", str(result.failed), "answers"), ("failed", str(result.malformed), "judgements")]
    return page(
        "answers",
        f"Answers: {result.config.get('set', 'a question set')}",
        f"{len(result.scored)} answers of {', '.join(result.contestants)}; {result.config.get('date', '')}",
        result.config,
        result=result,
        figures=[*figures, *lost],
        charts={measure: _bars(result, measure) for measure in SHOWN},
        kinds=kind_table(result),
        shares=_share_bars(result),
        efforts=effort_table(result),
        rows_of=[[row_name(row), row.contestant, str(row.n), *answer_cells(row, known)] for row in result.rows],
        known=known,
        compared=[
            (comparison.names, whole_table(comparison), group_table(comparison)) for comparison in result.comparisons
        ],
        star=STAR,
        questions=_questions(result, Documents((), rules)),
        opened=LISTED,
        note=result.config.get("note", ""),
    )


def _questions(result: AnswerResult, documents: Documents) -> list[Question]:
    """All questions: those that moved most, then those with the worst answers."""
    answers: dict[str, list[Scored]] = {}
    for scored in result.scored:
        answers.setdefault(scored.case.id, []).append(scored)
    changes = {change.case.id: change for comparison in reversed(result.comparisons) for change in comparison.changes}
    notes = {
        change.case.id: moved(change, comparison)
        for comparison in reversed(result.comparisons)
        for change in comparison.changes
    }
    ordered = sorted(answers.values(), key=lambda own: (-_moved(changes, own[0].case), min(map(_badness, own))))
    return [_question(own, result.base, notes.get(own[0].case.id, ""), documents) for own in ordered]


def _question(own: Sequence[Scored], base: str, note: str, documents: Documents) -> Question:
    case = own[0].case
    tag = f"{case.language} {VARIANTS.get(case.variant, case.variant)}"
    note = note or "; ".join(dict.fromkeys(filter(None, map(_mistake, own))))
    read: dict[tuple[str, ...], list[Scored]] = {}
    for scored in own:
        read.setdefault(scored.answer.passages, []).append(scored)
    return Question(
        case, tag, note, [_reading(case, has, documents) for has in read.values()], _sides(own, base, documents)
    )


def _sides(own: Sequence[Scored], base: str, documents: Documents) -> list[Side]:
    """The answers, that of the base first; differences are marked, in the base only if there is one other answer."""
    ordered = sorted(own, key=lambda one: one.answer.contestant != base)
    before, *others = [scored.answer.text or scored.answer.error for scored in ordered]
    compared = [differences(before, after) for after in others]
    first = compared[0][0] if len(compared) == 1 else plain(before)
    texts = [first, *(after for _, after in compared)]
    return [
        Side(scored, text, [(url, _right(url, scored.case, documents)) for url in scored.answer.links])
        for scored, text in zip(ordered, texts, strict=True)
    ]


def _reading(case: Case, has: Sequence[Scored], documents: Documents) -> Reading:
    """The passages that these answers have in common."""
    passages = has[0].answer.passages
    shares = [share(passage, case.evidence) if case.evidence else 0.0 for passage in passages]
    best = max(shares, default=0.0)
    holding = {i for i, value in enumerate(shares) if value == best >= PART}
    pages = [rank for rank, url in enumerate(has[0].answer.pages, 1) if _right(url, case, documents)]
    shown = [
        (heading, proven(text, case.evidence) if i in holding else plain(text))
        for i, (heading, _, text) in enumerate(passage.partition("\n") for passage in passages)
    ]
    part = excerpt(passages[min(holding)], case.evidence) if holding else []
    names = ", ".join(scored.answer.contestant for scored in has)
    return Reading(names, _proof(case, best, sorted(holding), pages), part, shown)


def _proof(case: Case, found: float, holding: Sequence[int], pages: Sequence[int]) -> str:
    """Says in words where the proof is."""
    if not case.doc:
        return "No page answers this question."
    if not case.evidence:
        return "The question set has no evidence for this question."
    numbers = ", ".join(str(i + 1) for i in holding)
    if found >= WHOLE:
        return f"The proof is in passage {numbers}."
    if holding:
        return f"A part of the proof ({100 * found:.0f} %) is in passage {numbers}."
    where = f"Its page was found at rank {pages[0]}, with other passages." if pages else "Its page was not found."
    return f"NOT READ: the proof is in no passage. {where}"


def _right(url: str, case: Case, documents: Documents) -> bool:
    return bool(case.doc) and documents.label(url, case.relevant) in case.relevant


def _moved(changes: Mapping[str, Change], case: Case) -> float:
    return abs(changes[case.id].difference) if case.id in changes else 0.0


def _bars(result: AnswerResult, measure: str) -> list[list[Bar]]:
    names = result.contestants
    groups: dict[tuple[str, str, bool], list[Bar]] = {}
    for row in result.rows:
        if measure in row.measures and (measure != "language" or row.variant == ALL):
            bar = Bar(row_name(row), row.known[measure], row.measures[measure], names.index(row.contestant))
            # contestants side by side; a single one by language
            variant = row.variant if len(names) > 1 else ""
            groups.setdefault((row.language, variant, row.cross), []).append(bar)
    return list(groups.values())


def _share_bars(result: AnswerResult) -> list[list[Bar]]:
    """The four cells of the published chart: complete or incomplete, faithful or not; contestants side by side."""
    groups: dict[str, list[Bar]] = {}
    for cell in result.shares:
        bar = Bar(cell.kind, cell.n, cell.estimate, result.contestants.index(cell.contestant))
        groups.setdefault(cell.kind, []).append(bar)
    return list(groups.values())


def _badness(one: Scored) -> tuple[float, float]:
    judged = [one.values[name] for name in ("faithful", "complete", "refusal")]
    return (sum(1.0 if value is None else value for value in judged), one.values["correctness"] or 0.0)


def _mistake(one: Scored) -> str:
    """The mistake in one word."""
    if one.answer.error:
        return "failed"
    if one.values["refusal"] == 0:
        return "declined" if one.answerable else "answered, though no page does"
    judged = {"faithful": "unfaithful", "complete": "incomplete"}
    mistakes = [word for name, word in judged.items() if one.values[name] == 0]
    correctness = one.values["correctness"]
    return ", ".join(mistakes) or ("" if correctness is None else f"correctness {correctness:.2f}")


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


TEXTS = ("question", "answer", "reference")
CATEGORIES = ("contestant", "language", "variant")


def evidently_page(result: AnswerResult, path: str | Path) -> None:
    """Write Evidently's page (about 4 MB, with its scripts inside). Raises `EvaluationError` without the extra."""
    os.environ.setdefault("DO_NOT_TRACK", "1")
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
        shown = [name for name in MEASURES if any(_known(scored, name) is not None for scored in result.scored)]
        frame = pd.DataFrame(
            {
                "contestant": scored.answer.contestant,
                "language": scored.case.language,
                "variant": scored.case.variant,
                "question": scored.case.question,
                "answer": scored.answer.text,
                "reference": scored.case.answer,
                **{name: _known(scored, name) for name in shown},
            }
            for scored in result.scored
        ).astype(dict.fromkeys(shown, float))
        definition = DataDefinition(
            text_columns=list(TEXTS), categorical_columns=list(CATEGORIES), numerical_columns=shown
        )
        Report([DataSummaryPreset()]).run(Dataset.from_pandas(frame, definition), None).save_html(str(path))


def _known(one: Scored, measure: str) -> float | None:
    return one.values[measure]  # noqa: PD011  # ours, no frame

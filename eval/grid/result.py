"""The result of a grid: retrieval of each configuration compared with the first; with whole answers also refusals and
effort.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from statistics import median
from typing import Any

import numpy as np

from eval.answers.score import Scored
from eval.grid.configurations import Configuration
from eval.grid.cross_validation import CrossValidation, Table
from eval.measure.compare import Comparison, compare
from eval.measure.metrics import Estimate, score, title
from eval.measure.result import CaseResult, RetrievalResult
from eval.measure.rows import ALL, MEAN, Difference, Row
from eval.measure.tables import as_table, difference_cell, row_name
from eval.questions.documents import Documents


@dataclass(frozen=True)
class Measured:
    """One configuration. `result` is None if the machine lacks what the configuration `needs`; `answers` may be empty."""

    configuration: Configuration
    result: RetrievalResult | None
    answers: tuple[Scored, ...] = ()

    @property
    def name(self) -> str:
        """The configuration's name."""
        return self.configuration.name

    @property
    def mean(self) -> Row | None:
        """The mean of the languages, or the only row."""
        return (self.result.row(MEAN) or self.result.rows[-1]) if self.result else None

    @property
    def ms(self) -> float:
        """Median milliseconds of a question."""
        if self.answers:
            return median(scored.answer.ms for scored in self.answers)
        return self.result.milliseconds.get("p50", 0.0) if self.result else 0.0

    @property
    def calls(self) -> float:
        """Calls of the language model for a question, on average."""
        return _mean([float(scored.answer.calls) for scored in self.answers]) or 0.0

    @property
    def tokens(self) -> float:
        """Tokens read and written for a question, on average."""
        return _mean([float(scored.answer.tokens) for scored in self.answers]) or 0.0

    def refused(self, *, answerable: bool) -> float | None:
        """Share of the questions that were refused for lack of evidence; None without such questions."""
        return _mean([float(scored.answer.refused) for scored in self.answers if scored.answerable == answerable])

    @property
    def note(self) -> str:
        """The reason for missing figures, or the number of questions on which the changed steps failed."""
        if self.configuration.needs:
            return f"not measured: needs {self.configuration.needs}"
        changed = set(self.configuration.changed)
        failed = sum(bool(changed.intersection(scored.answer.failed_steps)) for scored in self.answers)
        return f"failed on {failed} of {len(self.answers)} questions" if failed else ""


@dataclass(frozen=True)
class GridResult:
    """All configurations, compared with the first, and the choice of the cross-validation."""

    measured: tuple[Measured, ...]
    validation: CrossValidation | None = None

    @property
    def first(self) -> RetrievalResult:
        """The result that the others are compared with."""
        assert self.measured[0].result is not None
        return self.measured[0].result

    @property
    def failed(self) -> bool:
        """True when a search, an answer or a judgement failed."""
        answers = [answer for measured in self.measured for answer in measured.answers]
        lost = any(answer.answer.error or any(judgement.error for judgement in answer.judgements) for answer in answers)
        return lost or any(measured.result and measured.result.failed for measured in self.measured)

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The measured configurations against the first one, by name."""
        return {
            measured.name: compare(self.first, measured.result) for measured in self.measured[1:] if measured.result
        }

    def languages(self, name: str) -> Difference | None:
        """MRR of the configuration minus that of the first, mean of the languages."""
        rows = self.comparisons[name].rows if name in self.comparisons else ()
        row = next(
            (difference for difference in rows if difference.language == MEAN and difference.variant == ALL),
            rows[-1] if rows else None,
        )
        return row.measures["rr"] if row else None

    def everything(self, one: Measured) -> Difference | None:
        """The same difference over all questions, including those across languages."""
        comparison = self.comparisons.get(one.name)
        return comparison.pairs.everything.measures["rr"] if comparison else None

    def table(self) -> Table:
        """The reciprocal ranks of all measured configurations, the first one as the baseline."""
        measured = [entry for entry in self.measured if entry.result]
        cases = [case.case for case in self.first.cases]
        values = np.array([[case.scores.rr for case in entry.result.cases] for entry in measured if entry.result])
        languages = [case.language for case in cases]
        return Table(
            [entry.configuration for entry in measured], cases, languages, values, {measured[0].name: values[0]}
        )

    def summary(self) -> dict[str, Any]:
        """The whole result as JSON values."""
        return {
            "configurations": [self._summary(entry) for entry in self.measured],
            "cross_validation": self.validation and asdict(self.validation),
        }

    def _summary(self, one: Measured) -> dict[str, Any]:
        everything = self.everything(one)
        values = {
            "name": one.name,
            "settings": dict(one.configuration.settings),
            "assistant": one.configuration.assistant,
            "result": one.result and one.result.summary(),
            "against_first": compare(self.first, one.result).summary()["rows"] if one.result else None,
            "all_questions": everything and asdict(everything),
            "ms": one.ms,
            "note": one.note,
        }
        if one.answers:
            values |= {"calls": one.calls, "tokens": one.tokens}
            values |= {"refused_unanswerable": one.refused(answerable=False)}
            values |= {"refused_answerable": one.refused(answerable=True)}
        return values


def retrieval_of(answers: Sequence[Scored], documents: Documents, k: int, config: Mapping[str, Any]) -> RetrievalResult:
    """The pages that the answers were made from, measured as a retrieval result; unanswerable questions are left out."""
    cases = []
    for scored in answers:
        if scored.answerable:
            scores = score(
                [documents.label(url, scored.case.relevant) for url in scored.answer.pages], scored.case.relevant, k
            )
            cases.append(
                CaseResult(scored.case, scores, scored.answer.pages, scored.answer.ms, error=scored.answer.error)
            )
    return RetrievalResult(k, tuple(cases), config)


def _mean(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


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
    """Returns the explanation of the table."""
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
    for measured in result.measured:
        if not (measured.result and measured.mean):
            rows.append([measured.name, *["–"] * (len(header) - 2), measured.note])
            continue
        mean, whole = measured.mean.measures, [measured.result.row(row.language, cross=row.cross) for row in groups]
        gaps = (result.languages(measured.name), result.everything(measured))
        rows.append([
            measured.name, f"{mean['rr'].mean:.3f}", f"{mean['rr'].low:.2f}–{mean['rr'].high:.2f}", f"{mean['hit_1'].mean:.3f}",
            *("–" if row is None else f"{row.measures['rr'].mean:.3f}" for row in whole),
            *("–" if gap is None else difference_cell(gap) for gap in gaps),
            *(_effort(measured) if effort else ()), f"{measured.ms:.0f}", measured.note,
        ])  # fmt: skip
    return header, rows


def validation_text(found: CrossValidation, k: int) -> str:
    """The choice for each language with its gain, then fold by fold."""
    header = ["question language", "n", f"MRR@{k} now", "best", "gain, cross-validated", "apparent gain", ""]
    rows = [
        [
            choice.language, str(choice.n), f"{choice.before:.3f}", choice.best.name, _gain(choice.gain), f"{choice.apparent_gain:+.3f}",
            "better" if choice.accepted else "not significant: keep the settings",
        ]
        for choice in found.choices
    ]  # fmt: skip
    lines = [*as_table(header, rows), ""]
    for fold in found.folds:
        chosen = "; ".join(f"{code}: {configuration.name}" for code, configuration in fold.best.items())
        language, variant, least = fold.least
        lines += [
            f"Fold {fold.name}, {fold.n} questions; chosen on the others ({chosen}):",
            *(f"  over {baseline}: {_gain(gain)}" for baseline, gain in fold.gains.items()),
            f"  least gain over {list(fold.gains)[-1]}: {language} {variant} {least:+.3f}",
        ]
    accepted = [choice for choice in found.choices if choice.accepted]
    shares = {
        choice.language: choice.best.settings["vector_weight"]
        for choice in accepted
        if "vector_weight" in choice.best.settings
    }
    lines += [f"DOCS_TUNING__VECTOR_WEIGHT='{json.dumps(shares)}'"] if shares else []
    lines += [f"For {choice.language} it was chosen with {choice.best.name}." for choice in accepted]
    return "\n".join(lines if accepted else [*lines, "Nothing is significantly better: keep the settings."])


def _answered(result: GridResult) -> bool:
    return any(measured.answers for measured in result.measured)


def _effort(one: Measured) -> Sequence[str]:
    shares = (one.refused(answerable=False), one.refused(answerable=True))
    refused = " / ".join("–" if share is None else f"{100 * share:.0f} %" for share in shares)
    return refused, f"{one.calls:.1f}", f"{one.tokens:.0f}"


def _gain(gain: Estimate) -> str:
    return f"{gain.mean:+.3f} {gain.low:+.3f}…{gain.high:+.3f}"

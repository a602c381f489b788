"""Results of a run: one record per question, rows by language and variant, at several depths, saved as JSON; and its quotations."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from app.assistants.assistant import Assistant
from app.core.turn import Done, Request, Text
from app.pipeline.registry import upto
from app.pipeline.runner import Plan, run
from eval.cache import Progress, in_parallel
from eval.files import EvaluationError, load_document, save_document
from eval.measure.metrics import CURVE, MEASURES, Estimate, Ranks, Scores, as_values, at, intervals, title
from eval.measure.rows import ALL, Outcomes, Row, groups, row_of
from eval.questions.cases import Case
from eval.questions.evidence import holds

CUTOFFS = (1, 3, 5, 10, 15, 20)
DEPTH = 40  # passages: with at most two per page, these are at least 20 pages


@dataclass(frozen=True, slots=True)
class Point:
    """The measures of one level ("page" or "chunk") in one language ("mean": of the languages) at one k."""

    level: str
    language: str
    k: int
    n: int
    measures: Mapping[str, Estimate]


def points(level: str, ranked: Sequence[tuple[Case, Ranks | None]], depth: int) -> tuple[Point, ...]:
    """Points by language, then the mean of languages; questions across languages and those without ranks are left out."""
    known = [(case, ranks) for case, ranks in ranked if ranks is not None and not case.cross]
    languages = sorted({case.language for case, _ in known})
    wholes = {code: [(case, ranks) for case, ranks in known if case.language == code] for code in languages}
    groups = [(code, [whole]) for code, whole in wholes.items()]
    if len(groups) > 1:
        groups.append(("mean", list(wholes.values())))
    # a page may have two passages, so twice as many are needed; up to 5 as in the main table
    reach = depth if level == "chunk" else max(depth // 2, min(depth, 5))
    return tuple(
        Point(level, language, k, sum(map(len, parts)), _measures(parts, k))
        for language, parts in groups
        for k in CUTOFFS
        if k <= reach
    )


def _measures(parts: Sequence[Sequence[tuple[Case, Ranks]]], k: int) -> dict[str, Estimate]:
    values = [np.array([at(ranks, k) for _, ranks in part], dtype=np.float64) for part in parts]
    clusters = [[case.doc for case, _ in part] for part in parts]
    return dict(zip(CURVE, intervals(values, clusters), strict=True))


@dataclass(frozen=True, slots=True)
class Quotations:
    """The answers to the questions of one language: shares 0..1 of those with the proof, and their median length.

    Answers that quote nothing have no proof; `characters` counts them too, and leaves the list of links out.
    """

    language: str
    n: int
    first: float
    anywhere: float
    characters: float


async def quotations(
    assistant: Assistant, cases: Sequence[Case], parallel: int, progress: Progress | None = None
) -> tuple[Quotations, ...]:
    """By language, from the answers of an assistant without a language model to the cases that have evidence."""
    proven = [case for case in cases if case.evidence]
    asked = await in_parallel(proven, lambda _, case: _answer(assistant, case), parallel, progress)
    by_language: dict[str, list[tuple[bool, bool, int]]] = {}
    for case, answer in zip(proven, asked, strict=True):
        by_language.setdefault(case.language, []).append(answer)
    return tuple(_row(language, answers) for language, answers in sorted(by_language.items()))


def _row(language: str, answers: Sequence[tuple[bool, bool, int]]) -> Quotations:
    first, anywhere, lengths = zip(*answers, strict=True)
    n = len(answers)
    return Quotations(language, n, sum(first) / n, sum(anywhere) / n, statistics.median(lengths))


async def _answer(assistant: Assistant, case: Case) -> tuple[bool, bool, int]:
    """Returns whether the first quotation has the proof, whether any has it, and the answer's characters."""
    request = Request(case.messages, assistant.id, "eval-quotations")
    turn = await run(_without_citing(assistant), await assistant.begin(request))
    texts, extractive = list[Text](), False
    assert turn.events is not None
    async with aclosing(turn.events) as events:
        async for event in events:
            if isinstance(event, Text):
                texts.append(event)
            elif isinstance(event, Done):
                extractive = event.extractive
    quoted = [text.text for text in texts if text.quoted] if extractive else []
    proofs = [holds(text, case.evidence) for text in quoted]
    anywhere = any(proofs) or holds("\n\n".join(quoted), case.evidence)
    return proofs[:1] == [True], anywhere, sum(len(text.text) for text in texts)


def _without_citing(assistant: Assistant) -> Plan:
    """The steps up to the answer's text: what marks the quotations in it goes no further."""
    return tuple(group for group in upto(assistant.plan, "events") if not any(step.name == "cite" for step in group))


FORM = "docs-assistant retrieval 2"
KIND = "eval retrieval"
NOTHING = Ranks()


@dataclass(frozen=True, slots=True)
class Found:
    """One found passage: its link, whether its page is right, and its scores."""

    link: str
    right: bool
    lexical: float | None
    cosine: float | None
    fused: float


@dataclass(frozen=True, slots=True)
class StepResult:
    """One step of the pipeline: its time and a short text of what it changed."""

    step: str
    ms: float
    changes: str
    error: str = ""


@dataclass(frozen=True, slots=True)
class CaseResult:
    """The result of one question.

    `ranked` are the addresses of the found pages, best first, each once. `ms` is the time of the whole search,
    `detected` the language that the assistant detected, `fallbacks` the steps that failed, `error` why the search
    failed (empty: it didn't). `in_index` is false if no indexed page is `case.doc`: the question could only be a miss.
    `pages` and `chunks` are the ranks of relevant ones among all that were requested; `chunks` is None if no relevant
    chunk is known. `sections` are the ranks of chunks that also know the section of the evidence. `hits` and `steps`
    are the trace.
    """

    case: Case
    scores: Scores
    ranked: tuple[str, ...]
    ms: float
    detected: str = ""
    in_index: bool = True
    fallbacks: tuple[str, ...] = ()
    error: str = ""
    pages: Ranks = NOTHING
    chunks: Ranks | None = None
    sections: Ranks | None = None
    hits: tuple[Found, ...] = ()
    steps: tuple[StepResult, ...] = ()


@dataclass(frozen=True)
class RetrievalResult:
    """The result of a run. `config` says how it was measured: settings, index, date, model.

    `quotations` describes the answers without a language model; None unless they were measured.
    """

    k: int
    cases: tuple[CaseResult, ...]
    config: Mapping[str, Any] = field(default_factory=dict)
    quotations: tuple[Quotations, ...] = ()

    @cached_property
    def rows(self) -> tuple[Row, ...]:
        """The measures by language and variant, in the order of `groups`."""
        values = as_values([case_result.scores for case_result in self.cases])
        cases = [case_result.case for case_result in self.cases]
        return tuple(row_of(group, cases, values, MEASURES) for group in groups(cases))

    @property
    def outcomes(self) -> Outcomes:
        """The measures of each question."""
        cases, values = (
            [case_result.case for case_result in self.cases],
            [asdict(case_result.scores) for case_result in self.cases],
        )
        titles = {name: title(name, self.k) for name in MEASURES}
        return Outcomes(KIND, cases, values, titles, ("rr",), self.config, self.k)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """The measures of pages and of chunks at each of `depths.CUTOFFS`, as far as was requested."""
        depth = int(self.config.get("depth", self.k))
        return tuple(
            point
            for level in ("page", "chunk")
            for point in points(
                level, [(case_result.case, getattr(case_result, f"{level}s")) for case_result in self.cases], depth
            )
        )

    def row(self, language: str, variant: str = ALL, *, cross: bool = False) -> Row | None:
        """One row, or None if the set has no such questions; `row("mean")` is the mean of languages."""
        return next((r for r in self.rows if (r.language, r.variant, r.cross) == (language, variant, cross)), None)

    @property
    def unmatched(self) -> tuple[CaseResult, ...]:
        """The questions whose document is no indexed page."""
        return tuple(case_result for case_result in self.cases if not case_result.in_index)

    @property
    def failed(self) -> tuple[CaseResult, ...]:
        """The questions whose search failed; they are misses."""
        return tuple(case_result for case_result in self.cases if case_result.error)

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """Median and 95th percentile of the time of a successful search."""
        times = [case_result.ms for case_result in self.cases if not case_result.error]
        return {name: float(np.percentile(times, p)) for name, p in (("p50", 50), ("p95", 95)) if times}

    @property
    def language_right(self) -> float:
        """Share of the searched questions whose language was detected correctly."""
        right = [
            case_result.detected == case_result.case.language for case_result in self.cases if not case_result.error
        ]
        return sum(right) / len(right) if right else 0.0

    def summary(self) -> dict[str, Any]:
        """The whole result without the single questions, as JSON values."""
        return {
            "form": FORM,
            "k": self.k,
            "n": len(self.cases),
            "rows": [asdict(row) for row in self.rows],
            "curve": [asdict(point) for point in self.curve],
            "ms": self.milliseconds,
            "quotations": [asdict(quotation) for quotation in self.quotations],
            "language_right": self.language_right,
            "unmatched": sorted({case_result.case.doc for case_result in self.unmatched}),
            "unmatched_questions": len(self.unmatched),
            "failed_questions": len(self.failed),
            "config": dict(self.config),
        }

    def save(self, path: str | Path) -> None:
        """Write the whole result as JSON. Raises `EvaluationError` if the file can't be written."""
        save_document(path, self.summary(), "cases", [asdict(case_result) for case_result in self.cases])

    def only(self, ids: frozenset[str]) -> RetrievalResult:
        """The same run with these questions alone."""
        return replace(self, cases=tuple(case_result for case_result in self.cases if case_result.case.id in ids))


def load_result(path: str | Path) -> RetrievalResult:
    """A result that `save` wrote. Raises `EvaluationError` if the file is something else."""
    document = load_document(path, FORM, f"{KIND} --out")
    try:
        return TypeAdapter(RetrievalResult).validate_python(document)
    except ValueError as error:
        raise EvaluationError(f"{path} is no result of `eval retrieval --out`: {error}.") from error

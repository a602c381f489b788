"""Measures whether the assistant refuses exactly the unanswerable questions, by its decision before it writes an
answer.

Each question runs through the steps up to that decision once; other thresholds are computed from its evidence.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter

from app.core.errors import AssistantError
from app.core.turn import Request
from eval.cache import Progress, in_parallel
from eval.files import EvaluationError, load_document
from eval.measure.metrics import Estimate, intervals
from eval.measure.retrieval import Finder, Plan
from eval.measure.rows import Outcomes
from eval.questions.cases import CHIT_CHAT, Case

FORM = "docs-assistant refusals 1"
KIND = "eval refusals"
ANSWERABLE, CROSS = "answerable", "answerable, cross"
APART = (CHIT_CHAT, "injection")
THRESHOLDS = tuple(round(step / 50, 2) for step in range(51))
MOST = 0.1


@dataclass(frozen=True, slots=True)
class Decision:
    """One question and the decision; `kind` says why the pages don't answer it, or is `ANSWERABLE`.

    `always` marks refusals that no threshold changes: small talk, and questions for which nothing was found.
    `threshold` is the evidence that the question needed.
    """

    case: Case
    kind: str
    evidence: float = 0.0
    threshold: float = 0.0
    refused: bool = False
    always: bool = False
    smalltalk: bool = False
    error: str = ""

    def refused_at(self, threshold: float) -> bool:
        """The decision at another threshold."""
        return self.always or self.evidence < threshold


@dataclass(frozen=True, slots=True)
class Share:
    """Share of questions of a kind in a language ("all": in all) that were refused, and of those treated as small talk."""

    kind: str
    language: str
    n: int
    refused: Estimate
    smalltalk: float


@dataclass(frozen=True, slots=True)
class Point:
    """At this threshold, `recall` is the share of unanswerable questions that are refused, `over_refusal` that of
    answerable ones.
    """

    threshold: float
    recall: float
    over_refusal: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold chosen on every second question, and its effect on the others."""

    chosen_on: str
    chosen: Point
    reported: Point


@dataclass(frozen=True)
class RefusalResult:
    """The result of a run. `most` is the largest over-refusal that a chosen threshold may have."""

    decisions: tuple[Decision, ...]
    most: float = MOST
    config: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The decisions by kind, for each language and all of them."""
        known = [decision for decision in self.decisions if not decision.error]
        kinds = list(dict.fromkeys(decision.kind for decision in known))
        shares = []
        for kind in sorted(kinds, key=lambda kind: (kind in {ANSWERABLE, CROSS}, kind in APART, kinds.index(kind))):
            own = [decision for decision in known if decision.kind == kind]
            languages = sorted({decision.case.language for decision in own})
            groups = [(code, [decision for decision in own if decision.case.language == code]) for code in languages]
            shares += [
                _share(kind, name, part) for name, part in (*groups, ("all", own)) if name != "all" or groups[1:]
            ]
        return tuple(shares)

    @cached_property
    def threshold(self) -> float:
        """The threshold in force; if it differs, because a model found keywords for some questions only, that of most
        questions.
        """
        common = Counter(decision.threshold for decision in self._counted).most_common(1)
        return common[0][0] if common else 0.0

    @cached_property
    def now(self) -> Point:
        """The decisions at the threshold in force."""
        return _point_of(self._counted, self.threshold, lambda one: one.refused)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """The shares at each of `THRESHOLDS`, without the kinds that are counted separately."""
        return tuple(_point(self._counted, threshold) for threshold in THRESHOLDS)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """A threshold chosen on every second question and reported on the others, then the other way round."""
        halves = {name: self._counted[start::2] for name, start in (("even", 0), ("odd", 1))}
        if not all(_kinds(half) == {True, False} for half in halves.values()):
            return ()
        choices = []
        for name, other in (("even", "odd"), ("odd", "even")):
            allowed = [p for p in (_point(halves[name], t) for t in THRESHOLDS) if p.over_refusal <= self.most]
            if allowed:  # the lowest threshold with the best recall
                best = max(allowed, key=lambda p: (p.recall, -p.threshold))
                choices.append(Choice(name, best, _point(halves[other], best.threshold)))
        return tuple(choices)

    @cached_property
    def separation(self) -> float:
        """The share of answerable questions with more evidence than an unanswerable one (ties count half); .5 is chance."""
        wanted = np.array(
            [
                -1.0 if decision.always else decision.evidence
                for decision in self._counted
                if decision.kind == ANSWERABLE
            ]
        )
        others = np.array(
            [
                -1.0 if decision.always else decision.evidence
                for decision in self._counted
                if decision.kind != ANSWERABLE
            ]
        )
        pairs = wanted[:, None] - others[None, :]
        return float(((pairs > 0) + (pairs == 0) / 2).mean())

    @cached_property
    def _counted(self) -> list[Decision]:
        # sorted by kind, so that each half has every second question of each kind
        known = [decision for decision in self.decisions if not decision.error and decision.kind not in (*APART, CROSS)]
        return sorted(known, key=lambda one: one.kind == ANSWERABLE)

    @property
    def outcomes(self) -> Outcomes:
        """Outcomes that say of each question if it was refused exactly if no page answers it."""
        known = [decision for decision in self.decisions if not decision.error]
        values = [{"refusal": float(decision.refused != (decision.kind in {ANSWERABLE, CROSS}))} for decision in known]
        return Outcomes(
            KIND, [decision.case for decision in known], values, {"refusal": "refusal"}, ("refusal",), self.config
        )

    @property
    def failed(self) -> tuple[Decision, ...]:
        """The failed questions; they are in no figure."""
        return tuple(decision for decision in self.decisions if decision.error)

    def summary(self) -> dict[str, Any]:
        """The whole result as JSON values."""
        return {
            "form": FORM,
            "n": len(self.decisions),
            "threshold": self.threshold,
            "now": asdict(self.now),
            "shares": [asdict(share) for share in self.shares],
            "separation": self.separation,
            "curve": [asdict(point) for point in self.curve],
            "most_over_refusal": self.most,
            "choices": [asdict(choice) for choice in self.choices],
            "failed_questions": len(self.failed),
            "config": dict(self.config),
            "questions": [asdict(decision) for decision in self.decisions],
        }


def load_refusals(path: str | Path) -> RefusalResult:
    """A result that `eval refusals --out` wrote. Raises `EvaluationError` if the file is something else."""
    document = load_document(path, FORM, f"{KIND} --out")
    try:
        decisions = TypeAdapter(tuple[Decision, ...]).validate_python(document["questions"])
        return RefusalResult(decisions, document["most_over_refusal"], document["config"])
    except (ValueError, KeyError) as error:
        raise EvaluationError(f"{path} is no result of `{KIND} --out`: {error}.") from error


async def decide(
    finder: Finder,
    answerable: Sequence[Case],
    unanswerable: Sequence[Case],
    plan: Plan,
    progress: Progress | None = None,
) -> tuple[Decision, ...]:
    """The decision on every question.

    One unmeasured question goes first, and its errors are raised. Raises `EvaluationError` for an assistant that never
    refuses, and if one of the two kinds of questions is missing.
    """
    if not answerable or not unanswerable:
        raise EvaluationError("Questions of both kinds are needed: answerable ones and unanswerable ones.")
    first = await finder.assess(Request(answerable[0].messages, plan.assistant, "eval-warm-up"))
    if first.evidence is None:
        raise EvaluationError("This assistant never refuses: its steps in assistants.toml lack `relevance`.")
    kinds = [(case, CROSS if case.cross else ANSWERABLE) for case in answerable]
    kinds += [(case, case.variant or "unanswerable") for case in unanswerable]

    async def ask(position: int, one: tuple[Case, str]) -> Decision:
        # the assistant doesn't get the case's id, which may name the page
        return await _decided(finder, Request(one[0].messages, plan.assistant, f"eval-{position}"), *one)

    return await in_parallel(kinds, ask, plan.parallel, progress)


async def _decided(finder: Finder, request: Request, case: Case, kind: str) -> Decision:
    try:
        turn = await finder.assess(request)
    except AssistantError as error:
        return Decision(case, kind, error=f"{type(error).__name__}: {error}")
    always = bool(turn.smalltalk) or not (turn.hits or turn.related)
    return Decision(case, kind, turn.evidence or 0.0, turn.evidence_needed, not turn.hits, always, bool(turn.smalltalk))


def _kinds(half: Sequence[Decision]) -> set[bool]:
    return {decision.kind == ANSWERABLE for decision in half}


def _point(decisions: Sequence[Decision], threshold: float) -> Point:
    return _point_of(decisions, threshold, lambda one: one.refused_at(threshold))


def _point_of(decisions: Sequence[Decision], threshold: float, refused: Callable[[Decision], bool]) -> Point:
    def share(*, answerable: bool) -> float:
        own = [refused(decision) for decision in decisions if (decision.kind == ANSWERABLE) == answerable]
        return sum(own) / len(own) if own else 0.0

    return Point(threshold, share(answerable=False), share(answerable=True))


def _share(kind: str, language: str, own: Sequence[Decision]) -> Share:
    values = np.array([[float(decision.refused)] for decision in own], dtype=np.float64)
    # questions about one page fail together; questions without a page are independent
    pages = [decision.case.doc or decision.case.id for decision in own]
    refused = intervals([values], [pages])[0]
    return Share(kind, language, len(own), refused, sum(decision.smalltalk for decision in own) / len(own))

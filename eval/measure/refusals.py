"""Whether the assistant declines what the pages don't answer, and nothing else: its own decision, before any answer.

Each question goes through the assistant's steps up to that decision once; other thresholds are then read off.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from app.core.errors import AssistantError
from app.core.turn import Request
from eval.errors import EvaluationError
from eval.measure.metrics import Estimate, intervals
from eval.measure.retrieval import Finder, Plan
from eval.parallel import Progress, in_parallel
from eval.questions.cases import CHIT_CHAT, Case

FORM = "docs-assistant refusals 1"
ANSWERABLE, CROSS = "answerable", "answerable, cross"
APART = (CHIT_CHAT, "injection")
THRESHOLDS = tuple(round(step / 50, 2) for step in range(51))
MOST = 0.1


@dataclass(frozen=True, slots=True)
class Weighed:
    """One question and how it was decided; `kind` says why the pages don't answer it, or `ANSWERABLE`.

    `always` marks what no threshold changes: small talk, and questions for which nothing at all was found. `threshold`
    is the evidence that it needed.
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
    """How many of a kind in a language ("all": of both) were refused, and how many were taken for small talk."""

    kind: str
    language: str
    n: int
    refused: Estimate
    smalltalk: float


@dataclass(frozen=True, slots=True)
class Point:
    """Of the unanswerable, `recall` are refused at this threshold; of the answerable, `over_refusal`."""

    threshold: float
    recall: float
    over_refusal: float


@dataclass(frozen=True, slots=True)
class Choice:
    """A threshold chosen on one half of the questions, and what it does on the other one."""

    chosen_on: str
    chosen: Point
    reported: Point


@dataclass(frozen=True)
class RefusalResult:
    """All that a run gave. `most` is the over-refusal that a chosen threshold may have."""

    weighed: tuple[Weighed, ...]
    most: float = MOST
    config: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """As it was decided: kind by kind, each language and all of them."""
        known = [one for one in self.weighed if not one.error]
        kinds = list(dict.fromkeys(one.kind for one in known))
        found = []
        for kind in sorted(kinds, key=lambda kind: (kind in {ANSWERABLE, CROSS}, kind in APART, kinds.index(kind))):
            own = [one for one in known if one.kind == kind]
            languages = sorted({one.case.language for one in own})
            groups = [(code, [one for one in own if one.case.language == code]) for code in languages]
            found += [_share(kind, name, part) for name, part in (*groups, ("all", own)) if name != "all" or groups[1:]]
        return tuple(found)

    @cached_property
    def threshold(self) -> float:
        """The one in force, that of most questions where a language model had keywords for some only."""
        common = Counter(one.threshold for one in self._counted).most_common(1)
        return common[0][0] if common else 0.0

    @cached_property
    def now(self) -> Point:
        """As it was decided."""
        return _point_of(self._counted, self.threshold, lambda one: one.refused)

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """At each of `THRESHOLDS`, without the kinds that are counted apart."""
        return tuple(_point(self._counted, threshold) for threshold in THRESHOLDS)

    @cached_property
    def choices(self) -> tuple[Choice, ...]:
        """A threshold chosen on every second question and reported on the others, then the other way round."""
        halves = {name: self._counted[start::2] for name, start in (("even", 0), ("odd", 1))}
        if not all(_kinds(half) == {True, False} for half in halves.values()):
            return ()
        found = []
        for name, other in (("even", "odd"), ("odd", "even")):
            allowed = [p for p in (_point(halves[name], t) for t in THRESHOLDS) if p.over_refusal <= self.most]
            if allowed:  # the lowest of those that refuse as much
                best = max(allowed, key=lambda p: (p.recall, -p.threshold))
                found.append(Choice(name, best, _point(halves[other], best.threshold)))
        return tuple(found)

    @cached_property
    def separation(self) -> float:
        """How often an answerable question has more evidence than an unanswerable one (ties count half); .5 is chance."""
        wanted = np.array([-1.0 if one.always else one.evidence for one in self._counted if one.kind == ANSWERABLE])
        others = np.array([-1.0 if one.always else one.evidence for one in self._counted if one.kind != ANSWERABLE])
        pairs = wanted[:, None] - others[None, :]
        return float(((pairs > 0) + (pairs == 0) / 2).mean())

    @cached_property
    def _counted(self) -> list[Weighed]:
        # those of a kind stand together in their order, so that each half gets every second of them
        known = [one for one in self.weighed if not one.error and one.kind not in (*APART, CROSS)]
        return sorted(known, key=lambda one: one.kind == ANSWERABLE)

    @property
    def failed(self) -> tuple[Weighed, ...]:
        """Those that nothing is known of; they are in no figure."""
        return tuple(one for one in self.weighed if one.error)

    def summary(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "form": FORM,
            "n": len(self.weighed),
            "threshold": self.threshold,
            "now": asdict(self.now),
            "shares": [asdict(share) for share in self.shares],
            "separation": self.separation,
            "curve": [asdict(point) for point in self.curve],
            "most_over_refusal": self.most,
            "choices": [asdict(choice) for choice in self.choices],
            "failed_questions": len(self.failed),
            "config": dict(self.config),
            "questions": [asdict(one) for one in self.weighed],
        }


async def weigh(
    finder: Finder,
    answerable: Sequence[Case],
    unanswerable: Sequence[Case],
    plan: Plan,
    progress: Progress | None = None,
) -> tuple[Weighed, ...]:
    """Every question as it was decided.

    One unmeasured question goes first: its errors are raised. Raises `EvaluationError` for an assistant that doesn't
    decide at all, and where there is nothing to tell apart.
    """
    if not answerable or not unanswerable:
        raise EvaluationError("Questions of both kinds are needed: answerable ones and unanswerable ones.")
    first = await finder.weigh(Request(answerable[0].messages, plan.assistant, "eval-warm-up"))
    if first.evidence is None:
        raise EvaluationError("This assistant never declines: its steps in assistants.toml are without `relevance`.")
    kinds = [(case, CROSS if case.cross else ANSWERABLE) for case in answerable]
    kinds += [(case, case.variant or "unanswerable") for case in unanswerable]

    async def ask(position: int, one: tuple[Case, str]) -> Weighed:
        # the case's own id may name the page, so it stays here
        return await _weighed(finder, Request(one[0].messages, plan.assistant, f"eval-{position}"), *one)

    return await in_parallel(kinds, ask, plan.parallel, progress)


async def _weighed(finder: Finder, request: Request, case: Case, kind: str) -> Weighed:
    try:
        turn = await finder.weigh(request)
    except AssistantError as error:
        return Weighed(case, kind, error=f"{type(error).__name__}: {error}")
    always = bool(turn.smalltalk) or not (turn.hits or turn.related)
    return Weighed(case, kind, turn.evidence or 0.0, turn.evidence_needed, not turn.hits, always, bool(turn.smalltalk))


def _kinds(half: Sequence[Weighed]) -> set[bool]:
    return {one.kind == ANSWERABLE for one in half}


def _point(weighed: Sequence[Weighed], threshold: float) -> Point:
    return _point_of(weighed, threshold, lambda one: one.refused_at(threshold))


def _point_of(weighed: Sequence[Weighed], threshold: float, refused: Callable[[Weighed], bool]) -> Point:
    def share(*, answerable: bool) -> float:
        own = [refused(one) for one in weighed if (one.kind == ANSWERABLE) == answerable]
        return sum(own) / len(own) if own else 0.0

    return Point(threshold, share(answerable=False), share(answerable=True))


def _share(kind: str, language: str, own: Sequence[Weighed]) -> Share:
    values = np.array([[float(one.refused)] for one in own], dtype=np.float64)
    # the questions about one page fail together; those about none stand alone
    pages = [one.case.doc or one.case.id for one in own]
    refused = intervals([values], [pages])[0]
    return Share(kind, language, len(own), refused, sum(one.smalltalk for one in own) / len(own))

"""Measures whether the assistant refuses exactly the unanswerable questions, by its decision before it writes an
answer.

Each question runs through the steps up to that decision once; other thresholds are computed from its evidence.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from app.core.errors import AssistantError
from app.core.turn import Evidence, Request
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.result import Outcome, Result
from eval.measure.retrieval import Finder, Plan
from eval.measure.rows import Estimate, intervals
from eval.questions.cases import CHIT_CHAT, Case
from eval.questions.documents import Documents

ANSWERABLE, CROSS = "answerable", "answerable, cross"
APART = (CHIT_CHAT, "injection")
THRESHOLDS = tuple(round(step / 50, 2) for step in range(51))
TIMES = (0.0, 1.25, 1.5, 2.0, 2.5)
"""Evidence as times the needed one, from which on a question belongs to the next group."""


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
class Group:
    """The answered questions with at least so many `times` the needed evidence: the share whose right page is among the passages."""

    times: float
    n: int
    right: float


@dataclass(frozen=True)
class Refusals:
    """The figures of a result; failed questions are in none."""

    result: Result

    @cached_property
    def shares(self) -> tuple[Share, ...]:
        """The decisions by kind, for each language and all of them."""
        by_kind: dict[str, list[Outcome]] = {}
        for outcome in self.result.outcomes:
            if not outcome.error:
                by_kind.setdefault(outcome.details["kind"], []).append(outcome)
        shares = []
        for kind in sorted(by_kind, key=lambda kind: (kind in {ANSWERABLE, CROSS}, kind in APART)):
            own = by_kind[kind]
            languages = sorted({outcome.case.language for outcome in own})
            groups = {code: [outcome for outcome in own if outcome.case.language == code] for code in languages}
            if len(groups) > 1:
                groups["all"] = own
            shares += [_share(kind, name, part) for name, part in groups.items()]
        return tuple(shares)

    @cached_property
    def threshold(self) -> float:
        """The threshold in force; if it differs, because a model found keywords for some questions only, that of most
        questions.
        """
        common = Counter(outcome.details["threshold"] for outcome in self._counted).most_common(1)
        return float(common[0][0]) if common else 0.0

    @cached_property
    def now(self) -> Point:
        """The decisions at the threshold in force."""
        return _point(self._counted, self.threshold, lambda outcome: bool(outcome.details["refused"]))

    @cached_property
    def curve(self) -> tuple[Point, ...]:
        """The shares at each of `THRESHOLDS`, without the kinds that are counted separately."""
        return tuple(
            _point(self._counted, at, lambda one, at=at: bool(one.details["always"] or one.details["evidence"] < at))  # type: ignore[misc]
            for at in THRESHOLDS
        )

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """How often the right page is among the passages, by the evidence."""
        found = defaultdict[float, list[float]](list)
        for one in self.result.outcomes:
            details = one.details
            if not one.error and not details["refused"] and details["threshold"]:
                times = details["evidence"] / details["threshold"]
                found[max(least for least in TIMES if least <= times)].append(float(details["right"]))
        return tuple(Group(times, len(own), sum(own) / len(own)) for times, own in sorted(found.items()))

    @cached_property
    def _counted(self) -> list[Outcome]:
        apart = {*APART, CROSS}
        return [
            outcome for outcome in self.result.outcomes if not outcome.error and outcome.details["kind"] not in apart
        ]

    def wrong(self, *, answerable: bool) -> list[Outcome]:
        """The answerable questions that were refused, or the others that were not; the clearest mistakes first."""
        wrong = [outcome for outcome in self.result.outcomes if not outcome.error and outcome.answerable == answerable]
        wrong = [outcome for outcome in wrong if outcome.details["refused"] == answerable]
        return sorted(wrong, key=lambda outcome: float(outcome.details["evidence"]), reverse=not answerable)

    def figures(self) -> dict[str, Any]:
        """The figures as JSON values."""
        return {
            "threshold": self.threshold,
            "now": asdict(self.now),
            "shares": [asdict(share) for share in self.shares],
            "curve": [asdict(point) for point in self.curve],
            "groups": [asdict(group) for group in self.groups],
        }


async def decide(
    finder: Finder,
    answerable: Sequence[Case],
    unanswerable: Sequence[Case],
    plan: Plan,
    progress: Progress | None = None,
) -> tuple[Outcome, ...]:
    """The decision on every question.

    The details of an outcome: its `kind`, which says why the pages don't answer it, or that they do; the `evidence` and the
    `threshold` that it needed; whether it was `refused`, `always` (at any threshold), or taken for `smalltalk`, and whether the
    `right` page is among its passages.

    One unmeasured question goes first, and its errors are raised. Raises `EvaluationError` for an assistant that never
    refuses, and if one of the two kinds of questions is missing.
    """
    if not answerable or not unanswerable:
        raise EvaluationError("Questions of both kinds are needed: answerable ones and unanswerable ones.")
    first = await finder.assess(Request(answerable[0].messages, plan.assistant, "eval-warm-up"))
    if first.evidence is None:
        raise EvaluationError("This assistant never refuses: its steps in assistants.toml lack `relevance`.")

    documents = Documents([page.url for page in await first.generation.pages()], plan.rules)

    async def ask(position: int, case: Case) -> Outcome:
        # the assistant doesn't get the case's id, which may name the page
        return await _decided(finder, Request(case.messages, plan.assistant, f"eval-{position}"), case, documents)

    return await in_parallel((*answerable, *unanswerable), ask, plan.parallel, progress)


async def _decided(finder: Finder, request: Request, case: Case, documents: Documents) -> Outcome:
    kind = (CROSS if case.cross else ANSWERABLE) if case.answerable else case.variant or "unanswerable"
    try:
        turn = await finder.assess(request)
    except AssistantError as error:
        message = f"{type(error).__name__}: {error}"
        return Outcome(case, "", {"refusal": None}, error=message, details={"kind": kind})
    refused, smalltalk = not turn.hits, turn.reply is not None
    evidence = turn.evidence or Evidence(0.0, 0.0)
    details: Mapping[str, Any] = {
        "kind": kind,
        "evidence": evidence.share,
        "threshold": evidence.needed,
        "refused": refused,
        "always": smalltalk or not (turn.hits or turn.related),
        "smalltalk": smalltalk,
        "right": any(documents.fits(doc, hit.chunk.url) for doc in case.relevant for hit in turn.hits),
    }
    return Outcome(case, "", {"refusal": float(refused != case.answerable)}, details=details)


def _point(outcomes: Sequence[Outcome], threshold: float, refused: Callable[[Outcome], bool]) -> Point:
    def share(*, answerable: bool) -> float:
        own = [refused(outcome) for outcome in outcomes if outcome.answerable == answerable]
        return sum(own) / len(own) if own else 0.0

    return Point(threshold, share(answerable=False), share(answerable=True))


def _share(kind: str, language: str, own: Sequence[Outcome]) -> Share:
    values = np.array([[float(outcome.details["refused"])] for outcome in own], dtype=np.float64)
    # questions about one page fail together; questions without a page are independent
    pages = [outcome.case.doc or outcome.case.id for outcome in own]
    refused = intervals([values], [pages])[0]
    return Share(
        kind, language, len(own), refused, sum(bool(outcome.details["smalltalk"]) for outcome in own) / len(own)
    )

"""Measures what an earlier question does to the next one: nothing to one that stands alone, and it is what one that points back needs."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.core.turn import Request, Turn
from eval.files import EvaluationError, Progress, in_parallel
from eval.measure.retrieval import Finder, Plan
from eval.measure.rows import unique
from eval.questions.cases import Case
from eval.questions.documents import Documents

ALONE, BACK = "alone", "back"
"""The two kinds of questions of a set, as their variants: those that stand alone, and those that point back."""
GOALS: Mapping[str, float] = {"changed": 0.05, "found": 0.85}
"""The largest share of questions that stand alone whose first section changes, and the smallest one of the others that find their page."""


@dataclass(frozen=True, slots=True)
class Second:
    """What a question finds behind an earlier one: its `first` section, empty if it is refused, that of the same question `alone`, and
    the `rank` of its page among the first k pages, 0 if it isn't there.
    """

    case: Case
    first: str
    alone: str
    rank: int

    @property
    def wrong(self) -> bool:
        """True if the earlier question changes what it finds, or if a question that points back doesn't find its page."""
        return self.first != self.alone if self.case.variant == ALONE else not self.rank

    @property
    def text(self) -> str:
        """The question behind the earlier one, and what both forms find first."""
        alone = f", {self.alone or 'nothing'} alone" if self.case.variant == ALONE else ""
        return f"{self.case.question!r} after {self.case.earlier[-1].content!r}: {self.first or 'nothing'}{alone}"


async def asked_second(
    finder: Finder, cases: Sequence[Case], plan: Plan, progress: Progress | None = None
) -> tuple[Second, ...]:
    """What each question of a set finds in its conversation, by the decision whether the hits are enough evidence.

    Raises `EvaluationError` for a case that has no earlier question, or none of the two kinds.
    """
    if wrong := next((one for one in cases if not one.earlier or one.variant not in {ALONE, BACK}), None):
        raise EvaluationError(f"{wrong.id}: its 'variant' must be {ALONE} or {BACK}, and its 'messages' two or more.")

    documents = Documents((), plan.rules)

    async def asked(case: Case, id_: str) -> Turn:
        # the language of the conversation, so that nothing but its subject differs
        return await finder.assess(Request(case.messages, plan.assistant, id_, language=case.language))

    async def ask(position: int, case: Case) -> Second:
        turn = await asked(case, f"eval-second-{position}")
        pages = unique([documents.label(hit.chunk.url, case.relevant) for hit in turn.hits])[: plan.k]
        rank = next((rank for rank, page in enumerate(pages, start=1) if page in case.relevant), 0)
        if case.variant == BACK:
            return Second(case, _first(turn), "", rank)
        alone = await asked(replace(case, earlier=()), f"eval-alone-{position}")
        return Second(case, _first(turn), _first(alone), rank)

    return await in_parallel(cases, ask, plan.parallel, progress)


def _first(turn: Turn) -> str:
    return turn.hits[0].chunk.link if turn.hits else ""


def figures(outcomes: Sequence[Second]) -> dict[str, Any]:
    """The shares, as JSON values: `changed` of the questions that stand alone, `found` and found `first` of those that point back, and the
    `wrong` ones as texts.
    """
    alone, back = ([one for one in outcomes if one.case.variant == kind] for kind in (ALONE, BACK))
    return {
        "alone": len(alone),
        "changed": sum(one.wrong for one in alone) / max(len(alone), 1),
        "back": len(back),
        "found": sum(not one.wrong for one in back) / max(len(back), 1),
        "first": sum(one.rank == 1 for one in back) / max(len(back), 1),
        "wrong": [one.text for one in outcomes if one.wrong],
    }


def failures(measured: Mapping[str, Any]) -> list[str]:
    """The goals that these figures don't reach; none for no figures."""
    if not measured:
        return []
    changed, found = measured["changed"], measured["found"]
    failed = []
    if changed > GOALS["changed"]:
        failed.append(
            f"{changed:.0%} of the questions that stand alone change behind another, {GOALS['changed']:.0%} may"
        )
    if found < GOALS["found"]:
        failed.append(f"{found:.0%} of the questions that point back find their page, {GOALS['found']:.0%} should")
    return failed

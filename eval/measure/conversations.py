"""Follow-up questions: what retrieval makes of them with their conversation, against the same question spelled out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

from app.core.prompts import Prompts
from app.text.language import without_stopwords
from eval.errors import EvaluationError
from eval.measure.compare import Comparison, compare
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Finder, Plan, evaluate
from eval.parallel import Progress
from eval.questions.cases import Case
from eval.scripted.script import Line, Script, normal

FORM = "docs-assistant conversations 1"


@dataclass(frozen=True)
class FollowUps:
    """One way of measuring ("without a model"): the follow-ups as asked, and spelled out, question by question."""

    name: str
    asked: RetrievalResult
    standalone: RetrievalResult

    @cached_property
    def difference(self) -> Comparison:
        """What the conversation costs: as asked minus spelled out."""
        return compare(self.standalone, self.asked)

    def summary(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "name": self.name,
            "asked": self.asked.summary(),
            "standalone": self.standalone.summary(),
            "difference": self.difference.summary(),
            "questions": [asdict(one) for one in self.asked.cases],
        }


def follow_ups(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Those with a conversation and their question spelled out. Raises `EvaluationError` when there are none."""
    found = tuple(case for case in cases if case.earlier and case.standalone)
    if not found:
        raise EvaluationError("None of the rows is a conversation with 'messages' and 'standalone'.")
    return found


def distinguishable(cases: Sequence[Case]) -> tuple[Case, ...]:
    """Those whose last question no other one ends with: a script knows the last question only."""
    ends = Counter(normal(case.question) for case in cases)
    return tuple(case for case in cases if ends[normal(case.question)] == 1)


def ideal_script(cases: Sequence[Case], prompts: Prompts) -> Script:
    """A language model that resolves every reference: it says the question spelled out, as wording and as keywords.

    The cases are those of `distinguishable`.
    """
    lines: dict[str, Line] = {}
    for case in cases:
        question = normal(case.question)
        words = without_stopwords(case.standalone, prompts.language(case.language))
        lines[question] = Line(case.standalone, {case.language: (words,)})
        lines.setdefault(normal(case.standalone), lines[question])
    return Script(lines)


async def follow(
    finder: Finder,
    cases: Sequence[Case],
    plan: Plan,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> FollowUps:
    """Both forms of every follow-up, measured."""
    asked = await evaluate(finder, cases, plan, config=config, progress=progress)
    alone = [replace(case, question=case.standalone, earlier=()) for case in cases]
    spelled_out = await evaluate(finder, alone, plan, config=config, progress=progress)
    # of the same question: rows and differences go by it
    paired = tuple(replace(one, case=case) for one, case in zip(spelled_out.cases, cases, strict=True))
    return FollowUps(name, asked, replace(spelled_out, cases=paired))


def summary(measured: Sequence[FollowUps]) -> dict[str, Any]:
    """All of it as JSON values."""
    return {"form": FORM, "settings": [one.summary() for one in measured]}

"""Measures follow-up questions in their conversation and compares them with the same questions as complete ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from eval.cache import Progress
from eval.files import EvaluationError, load_document
from eval.measure.compare import Comparison, compare
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Finder, Plan, evaluate
from eval.questions.cases import Case

FORM = "docs-assistant conversations 1"


@dataclass(frozen=True)
class FollowUps:
    """One run ("without a model"): the follow-up questions in their conversation and as complete questions."""

    name: str
    asked: RetrievalResult
    standalone: RetrievalResult

    @cached_property
    def difference(self) -> Comparison:
        """The loss in a conversation: in the conversation minus as a complete question."""
        return compare(self.standalone, self.asked)

    def summary(self) -> dict[str, Any]:
        """All of it as JSON values."""
        return {
            "name": self.name,
            "asked": self.asked.summary(),
            "standalone": self.standalone.summary(),
            "difference": self.difference.summary(),
            "questions": [asdict(case) for case in self.asked.cases],
        }


def follow_ups(cases: Sequence[Case]) -> tuple[Case, ...]:
    """The cases that have a conversation and a complete question. Raises `EvaluationError` without any."""
    chosen = tuple(case for case in cases if case.earlier and case.standalone)
    if not chosen:
        raise EvaluationError("None of the rows is a conversation with 'messages' and 'standalone'.")
    return chosen


async def follow(
    finder: Finder,
    cases: Sequence[Case],
    plan: Plan,
    name: str,
    *,
    config: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> FollowUps:
    """Measure both forms of every follow-up question."""
    asked = await evaluate(finder, cases, plan, config=config, progress=progress)
    alone = [replace(case, question=case.standalone, earlier=()) for case in cases]
    spelled_out = await evaluate(finder, alone, plan, config=config, progress=progress)
    # of the same question: rows and differences go by it
    paired = tuple(replace(case_result, case=case) for case_result, case in zip(spelled_out.cases, cases, strict=True))
    return FollowUps(name, asked, replace(spelled_out, cases=paired))


def load_follow_ups(path: str | Path) -> dict[str, RetrievalResult]:
    """The follow-ups in their conversations that `eval conversations --out` wrote, by the name of the run.

    Raises `EvaluationError` if the file is something else.
    """
    made_by = "eval conversations --out"
    document = load_document(path, FORM, made_by)
    try:
        return {
            entry["name"]: TypeAdapter(RetrievalResult).validate_python({**entry["asked"], "cases": entry["questions"]})
            for entry in document["settings"]
        }
    except (ValueError, KeyError, TypeError) as error:
        raise EvaluationError(f"{path} is no result of `{made_by}`: {error}.") from error


def summary(measured: Sequence[FollowUps]) -> dict[str, Any]:
    """The whole result as JSON values."""
    return {"form": FORM, "settings": [follow_up.summary() for follow_up in measured]}

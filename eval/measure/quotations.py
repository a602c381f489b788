"""What is answered without a language model: whether the quotations have the proof, the first one or any, and how long it is."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from contextlib import aclosing
from dataclasses import dataclass

from app.assistants.assistant import Assistant
from app.core.turn import Done, Request, Text
from app.pipeline.registry import upto
from app.pipeline.runner import Plan, run
from eval.parallel import Progress, in_parallel
from eval.questions.cases import Case
from eval.questions.evidence import holds


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
    """Whether the first quotation has the proof, whether any has it, and the answer's characters."""
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

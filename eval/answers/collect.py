"""Lets every contestant answer every question once. Answers are saved immediately, and a stopped run continues."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace

from pydantic import TypeAdapter

from eval.answers.types import Answer, Contestant
from eval.cache import Cache, fingerprint
from eval.parallel import Progress, in_parallel
from eval.questions.cases import Case

ANSWER = TypeAdapter(Answer)


async def collect(
    contestants: Sequence[Contestant],
    cases: Sequence[Case],
    cache: Cache,
    *,
    parallel: int = 4,
    progress: Progress | None = None,
) -> tuple[Answer, ...]:
    """The answers by contestant, in the order of the cases; a later run asks failed ones again."""
    work = [(contestant, case) for contestant in contestants for case in cases]
    return await in_parallel(work, lambda _, one: _answer(*one, cache), parallel, progress)


async def _answer(contestant: Contestant, case: Case, cache: Cache) -> Answer:
    # without its name, which is only what tables call it
    key = fingerprint(contestant.fingerprint, case.id, *(message.content for message in case.messages))
    if kept := cache.get(key):
        return replace(ANSWER.validate_python(kept), contestant=contestant.name)
    answer = await contestant.answer(case)
    if not answer.error:
        cache.put(key, asdict(answer))
    return answer

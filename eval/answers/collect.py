"""Every contestant answers every question, once: answers are kept as they come, and a run taken up again goes on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import asdict

from pydantic import TypeAdapter

from eval.answers.types import Answer, Contestant
from eval.cache import Cache, fingerprint
from eval.judge.loop import Progress
from eval.questions.cases import Case


async def collect(
    contestants: Sequence[Contestant],
    cases: Sequence[Case],
    cache: Cache,
    *,
    parallel: int = 4,
    progress: Progress | None = None,
) -> tuple[Answer, ...]:
    """The answers, contestant by contestant, in the order of the cases; failed ones are asked again by a later run."""
    found: dict[int, Answer] = {}
    work = list(enumerate((contestant, case) for contestant in contestants for case in cases))
    queue: Iterator[tuple[int, tuple[Contestant, Case]]] = iter(work)

    async def answer() -> None:
        for position, (contestant, case) in queue:  # shared: each worker takes the next one
            found[position] = await _answer(contestant, case, cache)
            if progress:
                progress(len(found), len(work))

    async with asyncio.TaskGroup() as group:
        for _ in range(min(parallel, len(work))):
            group.create_task(answer())
    return tuple(found[position] for position, _ in work)


async def _answer(contestant: Contestant, case: Case, cache: Cache) -> Answer:
    key = fingerprint(contestant.name, contestant.made_of, case.id, *(message.content for message in case.messages))
    if kept := cache.get(key):
        return TypeAdapter(Answer).validate_python(kept)
    answer = await contestant.answer(case)
    if not answer.error:
        cache.put(key, asdict(answer))
    return answer

"""What a step is, and the runner that takes a turn through a plan of them."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Any, Protocol

from app.core.errors import AssistantError
from app.core.turn import Done, Events, StepRecord, Text, Turn

log = logging.getLogger("app.pipeline")

Changes = Mapping[str, Any]


class Fallback(Exception):
    """An optional step failed, for the error that this one is raised from, and goes on with these changes instead."""

    def __init__(self, changes: Changes) -> None:
        super().__init__(", ".join(changes))
        self.changes = changes


class Declared(Protocol):
    """What a step says of itself, before there is one: its order is proved by this.

    `reads` must have been written before; `uses` are read when an earlier step wrote them; a step whose
    failure must not fail the answer is `optional`: the turn then goes on without its changes, or with those of a
    `Fallback`. A name with a dot is a part of a field, such as the scores of the hits.
    """

    @property
    def name(self) -> str:
        """As in assistants.toml."""
        ...

    @property
    def reads(self) -> tuple[str, ...]:
        """Fields that must have been written."""
        ...

    @property
    def uses(self) -> tuple[str, ...]:
        """Fields that are used where they are."""
        ...

    @property
    def writes(self) -> tuple[str, ...]:
        """Fields that it changes."""
        ...

    @property
    def optional(self) -> bool:
        """Whether the answer goes on without it."""
        ...

    @property
    def helper_calls(self) -> int:
        """How many helper calls a question may cost it at most."""
        ...


class Step(Declared, Protocol):
    """One box of the pipeline. It gets a `Turn` and returns only what it changes of it."""

    async def __call__(self, turn: Turn) -> Changes:
        """The changes to the turn, by field name."""
        ...


Group = tuple[Step, ...]
Plan = tuple[Group, ...]


async def run(plan: Plan, turn: Turn, *, search: bool = False) -> Turn:
    """The turn after all groups, each step's changes recorded in `trace`. Steps of one group run together.

    A step that isn't optional fails the run with its own error; whatever still runs is cancelled. Small talk ends the
    run: nothing was asked, so there is nothing to find or to write. A `search` goes on: its words are searched for.
    """
    for group in plan:
        if turn.smalltalk and not search:
            break
        records = [await _timed(group[0], turn)] if len(group) == 1 else await _together(group, turn)
        changes = {key: value for record in records for key, value in record.changes.items()}
        turn = replace(turn, **changes, trace=(*turn.trace, *records))
    return turn


async def answer(turn: Turn) -> Events:
    """The answer's events of a turn that `run` took through a whole plan; of small talk, its reply."""
    if turn.smalltalk:
        yield Text(turn.smalltalk)
        yield Done()
        return
    assert turn.events is not None  # proved by make_plan
    async with aclosing(turn.events) as events:
        async for event in events:
            yield event


async def _together(group: Sequence[Step], turn: Turn) -> list[StepRecord]:
    try:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(_timed(step, turn)) for step in group]
    except* AssistantError as errors:
        raise _first(errors) from None
    return [task.result() for task in running]


def _first(errors: BaseExceptionGroup[AssistantError]) -> BaseException:
    error: BaseException = errors
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return error


async def _timed(step: Step, turn: Turn) -> StepRecord:
    started = time.perf_counter()
    changes: Changes = {}
    problem = ""
    try:
        changes = await step(turn)
    except Exception as raised:
        if not step.optional:
            raise
        error: BaseException = raised
        if isinstance(raised, Fallback):
            changes, error = raised.changes, raised.__cause__ or raised
        problem = f"{type(error).__name__}: {error}"
        unexpected = not isinstance(error, AssistantError)
        log.warning(
            "step failed, going on without id=%s step=%s error=%s",
            turn.request.id,
            step.name,
            problem,
            exc_info=unexpected,
        )
    ms = (time.perf_counter() - started) * 1000
    log.debug("step id=%s step=%s ms=%.1f", turn.request.id, step.name, ms)
    return StepRecord(step.name, ms, changes, problem)

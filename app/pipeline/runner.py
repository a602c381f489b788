"""Defines a step, and runs a turn through a plan of steps."""

import asyncio
import logging
import time
from collections.abc import Hashable, Mapping, Sequence
from contextlib import aclosing
from typing import Any, ClassVar, Protocol, runtime_checkable

from app.core import spans
from app.core.errors import AssistantError
from app.core.log_message import LogMessage
from app.core.turn import Done, EarlyRun, Event, Events, Failure, StepRecord, Text, Turn, Usage

log = logging.getLogger("app.pipeline")

Changes = Mapping[str, Any]


class Step:
    """One step of the pipeline. It gets a `Turn` and returns only its changes; the order of steps is proved by what they declare.

    - `name`: the name in assistants.toml
    - `reads`: fields of the turn that an earlier step must have written; `uses`: those that it reads if one did
    - `writes`: fields that it changes
    - `optional`: if it fails, the turn continues without its changes
    - `helper_calls`: the most helper calls that it makes for a question

    A field name with a dot is a part of a field, such as the scores of the hits.
    """

    name: ClassVar[str]
    reads: ClassVar[tuple[str, ...]]
    uses: ClassVar[tuple[str, ...]] = ()
    writes: ClassVar[tuple[str, ...]]
    optional: ClassVar[bool] = False
    helper_calls: ClassVar[int] = 0

    def applies(self, turn: Turn) -> bool:  # noqa: ARG002  # for steps that look at it
        """False if the turn goes on without this step."""
        return True

    async def __call__(self, turn: Turn) -> Changes:
        """The changes to the turn, by field name."""
        raise NotImplementedError

    async def edition(self) -> Hashable:
        """What says which edition of data beside the index its changes are made from, such as a version; None without such data.

        A stored answer is repeated only while it is the same.
        """
        return None


@runtime_checkable
class ScoringStep(Protocol):
    """A step whose scores are checked when the service starts."""

    async def check_scores(self) -> None:
        """Score two passages. Raises `SettingsError` for scores that hits can't have; ignores what is unavailable."""


Group = tuple[Step, ...]
Plan = tuple[Group, ...]


async def ran_early(step: Step, turn: Turn) -> tuple[Changes, EarlyRun]:
    """The changes of a step that another step runs before its turn, and the record with which it isn't run again."""
    changes = await _changes(step, turn)
    return changes, EarlyRun(step, _given(step, turn), changes)


def _given(step: Step, turn: Turn) -> tuple[Any, ...]:
    """The values of the fields that the step declares, on which alone its changes depend."""
    return tuple(getattr(turn, name.partition(".")[0]) for name in (*step.reads, *step.uses))


async def _changes(step: Step, turn: Turn) -> Changes:
    """The changes of a step; none if it doesn't apply, those of an early run if that had the same values."""
    if not step.applies(turn):
        return {}
    for early in turn.early:
        if early.step == step and early.given == _given(step, turn):
            return early.changes
    return await step(turn)


async def run(plan: Plan, turn: Turn, *, search: bool = False) -> Turn:
    """The turn after all groups, with the changes of each step in `trace`. The steps of a group run in parallel.

    An error of a step that isn't optional fails the run and cancels the steps that still run. A `reply` ends the run, unless
    it is a `search`, which looks for the words as they are.
    """
    for group in plan:
        if turn.reply and not search:
            break
        records = [await _timed(group[0], turn)] if len(group) == 1 else await _together(group, turn)
        changes = {key: value for record in records for key, value in record.changes.items()}
        turn = turn.changed(**changes, trace=(*turn.trace, *records))
    return turn


async def answer(turn: Turn) -> Events:
    """The events of the answer, after `run` has run the whole plan; those of a `reply`, if
    a step has given it.

    The tokens of the helper calls come before `Done`, so that those of all calls are counted.
    """
    if turn.reply:
        for event in turn.reply.events:
            yield event
        if turn.calls.usage != Usage():
            yield turn.calls.usage
        yield Done()
        return
    assert turn.events is not None  # make_plan validates this
    helpers = turn.calls.usage
    with spans.span("answer", {"docs_assistant.language": turn.asked.language}, current=False) as span:
        async with aclosing(span.within(turn.events, _note_event)) as events:
            async for event in events:
                if isinstance(event, Done) and helpers != Usage():
                    yield helpers
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
    with spans.span(step.name) as span:
        record = await _recorded(step, turn, span)
        if span:
            span.note(_facts(record.changes, turn))
        return record


def _facts(changes: Changes, turn: Turn) -> spans.Facts:
    """Returns the attributes of a span about the changes of a step; no texts."""
    hits, evidence = changes.get("hits", turn.hits), changes.get("evidence")
    return {
        "docs_assistant.generation": turn.generation and turn.generation.info.id,
        "docs_assistant.language": changes["asked"].language if "asked" in changes else None,
        "docs_assistant.hits": len(hits) if "hits" in changes else None,
        "docs_assistant.passages": len(changes["passages"]) if "passages" in changes else None,
        "docs_assistant.evidence": evidence and evidence.share,
        "docs_assistant.evidence_needed": evidence and evidence.needed,
        "docs_assistant.refused": not hits if evidence else None,
    }


def _note_event(span: spans.NoSpan, event: Event) -> None:
    if isinstance(event, Text):
        span.first("docs_assistant.time_to_first_text")
    elif isinstance(event, Done):
        span.note({"docs_assistant.extractive": event.extractive, "docs_assistant.refused": event.refused})
    elif isinstance(event, Failure):
        span.failed(event.error)


async def _recorded(step: Step, turn: Turn, span: spans.NoSpan) -> StepRecord:
    started = time.perf_counter()
    changes: Changes = {}
    problem = ""
    try:
        changes = await _changes(step, turn)
    except Exception as raised:
        if not step.optional:
            if isinstance(raised, AssistantError):
                raised.step = step.name
            raise
        problem = f"{type(raised).__name__}: {raised}"
        span.failed(raised)
        unexpected = not isinstance(raised, AssistantError)
        said = LogMessage("optional step failed", id=turn.request.id, step=step.name, error=problem)
        log.warning(said, exc_info=unexpected)
    ms = (time.perf_counter() - started) * 1000
    log.debug(LogMessage("step", id=turn.request.id, step=step.name, ms=round(ms, 1)))
    return StepRecord(step.name, ms, changes, problem, started)

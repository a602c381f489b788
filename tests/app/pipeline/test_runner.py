"""The runner: order, groups, merged changes, what optional and other failures do."""

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pytest

from app.core.errors import ModelTimeout, StoreUnavailable
from app.core.turn import Call, Calls, Done, Message, OwnReply, Question, Request, Text, Turn, Usage
from app.pipeline.runner import answer, ran_early, run

START = Turn(request=Request((Message("user", "q"),), id="t"))


@dataclass
class Box:
    name: str
    do: Callable[[Turn], Mapping[str, Any]]
    wait: float = 0.0
    optional: bool = False
    reads: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    cancelled: bool = False
    helper_calls: int = 0
    away: bool = False

    def applies(self, _: Turn) -> bool:
        return not self.away

    async def __call__(self, turn: Turn) -> Mapping[str, Any]:
        try:
            await asyncio.sleep(self.wait)
        except asyncio.CancelledError:
            self.cancelled = True
            raise
        return self.do(turn)


def fail(error: Exception) -> Callable[[Turn], Mapping[str, Any]]:
    def raises(_: Turn) -> Mapping[str, Any]:
        raise error

    return raises


async def test_steps_see_what_earlier_ones_changed_and_the_trace_has_it_all() -> None:
    """Changes are merged in order; the record of each step is the trace."""
    asked = Question("x")
    plan = ((Box("a", lambda _: {"asked": asked}),), (Box("b", lambda t: {"refined": t.asked}),))
    turn = await run(plan, START)
    assert turn.refined == asked
    records = [(r.step, dict(r.changes), r.error) for r in turn.trace]
    assert records == [("a", {"asked": asked}, ""), ("b", {"refined": asked}, "")]
    assert START.asked == Question()


@pytest.mark.parametrize(("refined", "runs"), [(None, 1), (Question("another"), 2)])
async def test_a_step_that_ran_early_runs_again_only_for_other_values(refined: Question | None, runs: int) -> None:
    """A step between them changes what it reads, or not; either way the turn has its changes."""
    ran: list[str] = []

    def search(turn: Turn) -> Mapping[str, Any]:
        ran.append((turn.refined or turn.asked).text)
        return {"more_keywords": {"en": ran[-1]}}

    box = Box("search", search, reads=("asked",), uses=("refined",))

    class Early(Box):
        async def __call__(self, turn: Turn) -> Mapping[str, Any]:
            return {"early": ((await ran_early(box, turn))[1],)}

    plan = ((Early("early", search),), (Box("refine", lambda _: {"refined": refined}),), (box,))
    turn = await run(plan, START.changed(asked=Question("q")))
    assert len(ran) == runs
    assert turn.more_keywords == {"en": "another" if refined else "q"}


async def test_a_step_that_does_not_apply_changes_nothing() -> None:
    """It is in the trace, as one without changes."""
    turn = await run(((Box("a", fail(StoreUnavailable("down")), away=True),),), START)
    assert [(r.step, dict(r.changes), r.error) for r in turn.trace] == [("a", {}, "")]


async def test_small_talk_ends_a_run_that_is_no_search() -> None:
    """Its reply is the answer; a search of the same words goes on."""
    plan = (
        (Box("detect", lambda _: {"reply": OwnReply("smalltalk", (Text("Hello!"),))}),),
        (Box("b", lambda _: {"sure": True}),),
    )
    greeted = await run(plan, START)
    assert (greeted.sure, [r.step for r in greeted.trace]) == (False, ["detect"])
    assert [event async for event in answer(greeted)] == [Text("Hello!"), Done()]
    assert (await run(plan, START, search=True)).sure


async def test_a_group_runs_together() -> None:
    """Each step of the group waits until all have begun."""
    all_begun = asyncio.Barrier(3)

    class Waits(Box):
        async def __call__(self, turn: Turn) -> Mapping[str, Any]:
            await all_begun.wait()
            return {}

    async with asyncio.timeout(60):
        await run((tuple(Waits(str(i), lambda _: {}) for i in range(3)),), START)


async def test_an_optional_step_that_fails_is_left_out() -> None:
    """Its error is in the trace, the others' changes stay, even for errors nobody foresaw."""
    group = (
        Box("helper", fail(ModelTimeout("too slow")), optional=True),
        Box("odd", fail(ZeroDivisionError("bug")), optional=True),
        Box("main", lambda _: {"asked": Question("kept")}),
    )
    turn = await run((group,), START)
    assert turn.asked.text == "kept"
    assert [r.error for r in turn.trace] == ["ModelTimeout: too slow", "ZeroDivisionError: bug", ""]


async def test_a_failing_step_fails_the_run_with_its_own_error_and_cancels_the_rest() -> None:
    """No ExceptionGroup reaches the caller, and nothing goes on behind its back."""
    slow = Box("slow", lambda _: {}, wait=600)
    with pytest.raises(StoreUnavailable, match="away"):
        await run(((slow, Box("main", fail(StoreUnavailable("away")), wait=0.05)),), START)
    assert slow.cancelled
    with pytest.raises(StoreUnavailable):
        await run(((Box("alone", fail(StoreUnavailable("away"))),),), START)


async def test_the_tokens_of_all_calls_are_counted() -> None:
    """Those of the helper calls come once, before the end; a failed call has none."""

    async def answering():
        yield Text("Yes.")
        yield Usage(100, 20)
        yield Done()

    ended = [Call("refine", 1.0, Usage(10, 2)), Call("keywords", 1.0, Usage(30, 5)), Call("hyde", 1.0, error="down")]
    for calls, helpers in ((ended, Usage(40, 7)), ([], Usage())):
        found = [event async for event in answer(replace(START, events=answering(), calls=Calls(ended=calls)))]
        assert isinstance(found[-1], Done)
        used = [event for event in found if isinstance(event, Usage)]
        assert used == [Usage(100, 20), *([helpers] if calls else [])]

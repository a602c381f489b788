"""How many requests are worked on at once."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.core.errors import Overloaded
from app.core.gate import Gate, away, busy, leave


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


class Worker:
    """A request that works until it is told to end."""

    def __init__(self, gate):
        self.entered, self.end = False, asyncio.Event()
        self.task = asyncio.create_task(self._work(gate))

    async def _work(self, gate):
        async with gate.place():
            self.entered = True
            await self.end.wait()

    async def ended(self):
        self.end.set()
        await self.task


async def workers(gate, count):
    made = [Worker(gate) for _ in range(count)]
    await settled()
    return made


async def test_so_many_are_worked_on_the_next_wait_in_order_and_the_rest_are_refused():
    gate = Gate(100, at_once=2, queue=2)
    first, second, third, fourth = await workers(gate, 4)
    assert [w.entered for w in (first, second, third, fourth)] == [True, True, False, False]
    assert gate.full
    with pytest.raises(Overloaded):
        async with gate.place():
            pass
    await first.ended()
    await settled()
    assert (third.entered, fourth.entered, gate.full) == (True, False, False)
    for worker in (second, third, fourth):
        await worker.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_who_waits_too_long_is_refused_and_takes_no_place():
    gate = Gate(100, at_once=1, longest_wait=0.0)
    (first,) = await workers(gate, 1)
    with pytest.raises(Overloaded):
        async with gate.place():
            pass
    assert not gate.full
    await first.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_who_hangs_up_leaves_the_queue_at_any_moment():
    gate = Gate(100, at_once=1, queue=2)
    first, second, third = await workers(gate, 3)
    second.task.cancel()  # while it waits
    await settled()
    gate.count(-1)  # as if the first were done: the third is let in
    third.task.cancel()  # before it could run
    await asyncio.gather(second.task, third.task, return_exceptions=True)
    assert not third.entered
    assert gate.working == 0
    gate.count(1)
    await first.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_one_that_gave_up_but_has_not_run_since_is_passed_over():
    gate = Gate(100, at_once=1, queue=2)
    first, second, third = await workers(gate, 3)
    second.task.cancel()
    first.end.set()  # both run in the same round, the first before the second
    await settled()
    assert third.entered
    await third.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_who_waits_for_a_server_lets_another_work_and_is_not_kept_waiting_afterwards():
    gate, answer = Gate(100, at_once=1), asyncio.Event()

    async def asks_a_server():
        async with gate.place():
            with away():
                await answer.wait()
            return gate.working

    asking = asyncio.create_task(asks_a_server())
    await settled()
    assert gate.working == 0
    (other,) = await workers(gate, 1)
    assert other.entered
    answer.set()
    assert await asking == 2
    await other.ended()
    assert gate.working == 0


async def test_a_request_of_which_one_part_waits_and_another_searches_is_worked_on():
    gate, answer, found = Gate(100, at_once=1), asyncio.Event(), asyncio.Event()

    async def waits():
        with away():
            await answer.wait()

    async def searches():
        with busy():
            await found.wait()

    async def both():
        async with gate.place(), asyncio.TaskGroup() as parts:
            parts.create_task(waits())
            parts.create_task(searches())

    request = asyncio.create_task(both())
    await settled()
    assert gate.working == 1
    found.set()
    await settled()
    assert gate.working == 0
    answer.set()
    await request
    assert (gate.open, gate.working) == (0, 0)


async def test_answers_that_are_being_written_are_bounded_too():
    gate = Gate(2, at_once=1)
    async with AsyncExitStack() as written:
        for _ in range(2):
            await written.enter_async_context(gate.place())
            leave()
        assert gate.full
        assert gate.working == 0
    assert not gate.full

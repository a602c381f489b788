"""The limit of requests that are processed at the same time."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from app.core.errors import Overloaded
from app.core.gate import BURST, QUEUE, Gate, away, busy, leave
from tests.virtual_time import in_virtual_time


async def settled():
    for _ in range(5):
        await asyncio.sleep(0)


class Worker:
    """A request that works until `end` is set."""

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


async def test_requests_beyond_the_limit_wait_in_order():
    gate = Gate(1000, at_once=2)
    burst = await workers(gate, BURST + 1)
    assert [worker.entered for worker in burst[:4]] == [True, True, False, False]
    assert not gate.full
    await burst[0].ended()
    await settled()
    assert [worker.entered for worker in burst[:4]] == [True, True, True, False]
    for worker in burst[1:]:
        await worker.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_a_queue_that_is_too_long_is_cut_and_stays_short_until_it_is_empty():
    gate = Gate(1000, at_once=1)
    all_of_them = await workers(gate, 1 + BURST)
    assert gate.full
    with pytest.raises(Overloaded):
        async with gate.place():
            pass
    await settled()
    kept, cut = [all_of_them[0], *all_of_them[-QUEUE:]], all_of_them[1:-QUEUE]
    assert all(isinstance(worker.task.exception(), Overloaded) for worker in cut)
    await kept[0].ended()
    await settled()
    assert not gate.full
    (newcomer,) = await workers(gate, 1)
    assert gate.full
    for worker in (*kept[1:], newcomer):
        await worker.ended()
    assert (gate.open, gate.working) == (0, 0)
    burst = await workers(gate, QUEUE + 2)  # it was empty: a new burst may wait
    assert not gate.full
    for worker in burst:
        await worker.ended()


@in_virtual_time
async def test_a_queue_whose_oldest_request_waits_too_long_is_cut():
    gate = Gate(1000, at_once=1, longest_wait=1.0)
    first, oldest = await workers(gate, 2)
    await asyncio.sleep(0.5)
    burst = await workers(gate, QUEUE + 5)
    assert not gate.full
    await asyncio.wait({oldest.task})
    await settled()
    assert [worker.task.done() for worker in burst] == [True] * 5 + [False] * QUEUE
    assert gate.full
    for worker in (first, *burst[5:]):
        await worker.ended()


async def test_a_request_that_waits_too_long_is_refused_and_takes_no_place():
    gate = Gate(100, at_once=1, longest_wait=0.0)
    (first,) = await workers(gate, 1)
    with pytest.raises(Overloaded):
        async with gate.place():
            pass
    assert not gate.full
    await first.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_a_cancelled_request_leaves_the_queue_at_any_moment():
    gate = Gate(100, at_once=1)
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


async def test_a_request_cancelled_in_the_same_round_is_passed_over():
    gate = Gate(100, at_once=1)
    first, second, third = await workers(gate, 3)
    second.task.cancel()
    first.end.set()  # both run in the same round, the first before the second
    await settled()
    assert third.entered
    await third.ended()
    assert (gate.open, gate.working) == (0, 0)


async def test_a_request_that_waits_for_a_server_admits_another_and_does_not_queue_again():
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


async def test_a_request_counts_while_one_part_waits_and_another_searches():
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


async def test_the_number_of_answers_in_progress_is_limited_too():
    gate = Gate(2, at_once=1)
    async with AsyncExitStack() as written:
        for _ in range(2):
            await written.enter_async_context(gate.place())
            leave()
        assert gate.full
        assert gate.working == 0
    assert not gate.full

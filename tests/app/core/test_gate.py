"""The limit of requests that are processed at the same time, and computations that they share."""

import asyncio
import gc
import weakref
from contextlib import AsyncExitStack

import pytest

from app.core.errors import Overloaded
from app.core.gate import BURST, QUEUE, Gate, Joined, Shared, StillRunning, away, busy, leave
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


class Computed:
    """Numbers its computations; each waits for `goes_on`, and fails while `broken`."""

    def __init__(self):
        self.begun, self.broken, self.goes_on = 0, False, asyncio.Event()

    async def compute(self):
        self.begun += 1
        number = self.begun
        await self.goes_on.wait()
        if self.broken:
            raise OSError(f"computation {number}")
        return number


@pytest.mark.parametrize("readers", [2, 10, 300])
async def test_each_caller_gets_the_result_that_it_waited_for_whatever_others_begin(readers):
    """A caller whose computation is over runs after others that have begun the next one."""
    joined, ended = Joined(), set()

    async def compute():
        number = len(ended)
        await asyncio.sleep(0)
        ended.add(number)
        return number

    async def ask():
        for _ in range(20):
            assert await joined.get(compute, 60) in ended

    await asyncio.gather(*(ask() for _ in range(readers)))
    assert not joined.running


async def test_callers_join_what_runs_and_nothing_is_kept():
    computed, joined = Computed(), Joined()
    calls = [asyncio.create_task(joined.get(computed.compute)) for _ in range(300)]
    await settled()
    assert joined.running
    computed.goes_on.set()
    assert await asyncio.gather(*calls) == [1] * 300
    assert await joined.get(computed.compute) == 2


async def test_a_value_lives_no_longer_than_its_callers():
    class Value:
        pass

    async def make():
        return Value()

    joined = Joined()
    made = weakref.ref(await joined.get(make))
    await settled()
    gc.collect()
    assert made() is None


async def test_who_is_cancelled_or_loses_patience_leaves_the_computation_to_the_others():
    computed, joined = Computed(), Joined()
    first = asyncio.create_task(joined.get(computed.compute))
    await settled()
    second = asyncio.create_task(joined.get(computed.compute))
    with pytest.raises(StillRunning):
        await joined.get(computed.compute, 0.01)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert first.cancelled()
    computed.goes_on.set()
    assert await second == 1


@pytest.mark.parametrize("kind", [Joined, Shared])
async def test_a_failure_is_told_to_all_who_waited_and_to_nobody_later(kind):
    computed, joined = Computed(), kind()
    computed.broken = True
    calls = [asyncio.create_task(joined.get(computed.compute, 60)) for _ in range(100)]
    await settled()
    computed.goes_on.set()
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert {str(error) for error in told} == {"computation 1"}
    computed.broken = False
    assert await joined.get(computed.compute) == 2


async def test_a_shared_value_is_computed_once():
    computed, shared = Computed(), Shared()
    with pytest.raises(StillRunning):
        await shared.get(computed.compute, 0.01)
    computed.goes_on.set()
    assert await asyncio.gather(*(shared.get(computed.compute, 60) for _ in range(100))) == [1] * 100
    assert await shared.get(computed.compute) == 1


def test_a_computation_of_an_event_loop_that_has_ended_is_begun_again():
    """As in a notebook or a script that calls `asyncio.run` for each question."""
    joined, computed = Joined(), Computed()

    async def leave_it():
        with pytest.raises(StillRunning):
            await joined.get(computed.compute, 0.01)

    async def finish():
        computed.goes_on = asyncio.Event()
        computed.goes_on.set()
        return await joined.get(computed.compute, 60)

    asyncio.run(leave_it())
    assert asyncio.run(finish()) == 2

"""Calls to a server that keeps failing fail at once."""

import pytest

from app.core.breaker import FAILURES, PAUSE, Breaker
from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable


class Clock:
    now = 0.0

    def __call__(self):
        return self.now


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def breaker(clock):
    return Breaker("the model m", (ModelUnavailable, ModelTimeout), ModelUnavailable, clock=clock)


def fail(breaker, error, times=1):
    for _ in range(times):
        with pytest.raises(type(error)), breaker.call():
            raise error


def test_after_some_failures_in_a_row_calls_fail_at_once_with_time_and_reason(breaker):
    fail(breaker, ModelTimeout("took 60 s"), FAILURES - 1)
    assert not breaker.state
    fail(breaker, ModelUnavailable("said 503"))
    with (
        pytest.raises(ModelUnavailable, match=r"^the model m is skipped .* failing since 20\d\d-.*: said 503$"),
        breaker.call(),
    ):
        pytest.fail("was asked")


def test_a_success_or_an_error_that_is_an_answer_keeps_the_breaker_closed(breaker):
    for answer in (None, ModelRateLimited("429"), ModelError("400")):
        fail(breaker, ModelTimeout("slow"), FAILURES - 1)
        if answer:
            fail(breaker, answer)
        else:
            with breaker.call():
                pass
    fail(breaker, ModelRateLimited("429"), 3 * FAILURES)
    assert not breaker.state


def test_after_a_pause_one_call_tries_the_server_while_others_still_fail(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = PAUSE
    with breaker.call(), pytest.raises(ModelUnavailable, match="is skipped"), breaker.call():
        pytest.fail("a second one tried")
    with breaker.call():
        assert not breaker.state
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)  # the count starts from zero again
    assert not breaker.state


def test_a_failed_try_begins_another_pause_and_a_cancelled_try_does_not(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = PAUSE
    fail(breaker, ModelTimeout("still slow"))
    with pytest.raises(ModelUnavailable, match="still slow"), breaker.call():
        pytest.fail("was asked")
    clock.now = 2 * PAUSE
    with pytest.raises(GeneratorExit), breaker.call():
        raise GeneratorExit  # the client hung up
    assert breaker.state
    with breaker.call() as call:  # so the next one may try
        call.worked()
        assert not breaker.state


def test_a_call_that_may_be_cached_does_not_close_the_breaker(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)
    with breaker.call(proves=False):
        pass
    fail(breaker, ModelTimeout("slow"))
    assert breaker.state
    clock.now = PAUSE
    with breaker.call(proves=False):
        pass
    assert breaker.state
    with breaker.call():
        pass
    assert not breaker.state

"""What keeps failing isn't asked for a while."""

import pytest

from app.core.breaker import FAILURES, REST, Breaker
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


def test_after_some_failures_in_a_row_calls_fail_at_once_and_say_since_when_and_why(breaker):
    fail(breaker, ModelTimeout("took 60 s"), FAILURES - 1)
    assert not breaker.state
    fail(breaker, ModelUnavailable("said 503"))
    with (
        pytest.raises(ModelUnavailable, match=r"^the model m isn't asked .* failing since 20\d\d-.*: said 503$"),
        breaker.call(),
    ):
        pytest.fail("was asked")


def test_a_success_between_and_errors_that_are_answers_keep_it_closed(breaker):
    for answer in (None, ModelRateLimited("429"), ModelError("400")):
        fail(breaker, ModelTimeout("slow"), FAILURES - 1)
        if answer:
            fail(breaker, answer)
        else:
            with breaker.call():
                pass
    fail(breaker, ModelRateLimited("429"), 3 * FAILURES)
    assert not breaker.state


def test_after_a_rest_one_call_tries_while_the_others_still_fail_at_once(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = REST
    with breaker.call(), pytest.raises(ModelUnavailable, match="isn't asked"), breaker.call():
        pytest.fail("a second one tried")
    with breaker.call():
        assert not breaker.state
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)  # it counts from nought again
    assert not breaker.state


def test_a_try_that_fails_begins_another_rest_and_one_that_is_given_up_says_nothing(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = REST
    fail(breaker, ModelTimeout("still slow"))
    with pytest.raises(ModelUnavailable, match="still slow"), breaker.call():
        pytest.fail("was asked")
    clock.now = 2 * REST
    with pytest.raises(GeneratorExit), breaker.call():
        raise GeneratorExit  # the client hung up
    assert breaker.state
    with breaker.call() as call:  # so the next one may try
        call.worked()
        assert not breaker.state


def test_a_call_that_is_answered_from_memory_proves_nothing(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)
    with breaker.call(proves=False):
        pass
    fail(breaker, ModelTimeout("slow"))
    assert breaker.state
    clock.now = REST
    with breaker.call(proves=False):
        pass
    assert breaker.state
    with breaker.call():
        pass
    assert not breaker.state

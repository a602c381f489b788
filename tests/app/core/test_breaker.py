"""Calls to a server that keeps failing fail at once."""

from types import SimpleNamespace

import pytest

from app.core.breaker import FAILURES, PAUSE, Breaker
from app.core.errors import ModelError, ModelRateLimited, ModelTimeout, ModelUnavailable, NoIndex


@pytest.fixture
def clock():
    return SimpleNamespace(now=0.0)


@pytest.fixture
def breaker(clock):
    failures = (ModelUnavailable, ModelTimeout)
    return Breaker("model", "the model m", failures, ModelUnavailable, clock=lambda: clock.now)


def fail(breaker, error, times=1):
    for _ in range(times):
        with pytest.raises(type(error)), breaker.call("complete"):
            raise error


def test_after_some_failures_in_a_row_calls_fail_at_once_with_time_and_reason(breaker):
    fail(breaker, ModelTimeout("took 60 s"), FAILURES - 1)
    assert not breaker.state
    fail(breaker, ModelUnavailable("said 503"))
    with (
        pytest.raises(ModelUnavailable, match=r"^the model m is skipped .* failing since 20\d\d-.*: said 503$"),
        breaker.call("complete"),
    ):
        pytest.fail("was asked")


def test_a_success_or_an_error_that_is_an_answer_keeps_the_breaker_closed(breaker):
    for answer in (None, ModelRateLimited("429"), ModelError("400")):
        fail(breaker, ModelTimeout("slow"), FAILURES - 1)
        if answer:
            fail(breaker, answer)
        else:
            with breaker.call("complete"):
                pass
    fail(breaker, ModelRateLimited("429"), 3 * FAILURES)
    assert not breaker.state


def test_after_a_pause_one_call_tries_the_server_while_others_still_fail(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = PAUSE
    with breaker.call("complete"), pytest.raises(ModelUnavailable, match="is skipped"), breaker.call("complete"):
        pytest.fail("a second one tried")
    with breaker.call("complete"):
        assert not breaker.state
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)  # the count starts from zero again
    assert not breaker.state


def test_a_failed_try_begins_another_pause_and_a_cancelled_try_does_not(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = PAUSE
    fail(breaker, ModelTimeout("still slow"))
    with pytest.raises(ModelUnavailable, match="still slow"), breaker.call("complete"):
        pytest.fail("was asked")
    clock.now = 2 * PAUSE
    with pytest.raises(GeneratorExit), breaker.call("complete"):
        raise GeneratorExit  # the client hung up
    assert breaker.state
    with breaker.call("complete") as call:  # so the next one may try
        call.worked()
        assert not breaker.state


def test_calls_that_hung_do_not_keep_the_breaker_open_once_the_server_works(breaker, clock):
    """Calls begin at 0 to 14 s, and each fails after 20 s; the server works again at 15 s."""

    def ends(call, at):
        clock.now = at
        call.__exit__(ModelTimeout, ModelTimeout("hung"), None)

    calls = [breaker.call("complete") for _ in range(15)]
    for clock.now, call in enumerate(calls):
        call.__enter__()
    for began, call in enumerate(calls[:10]):
        ends(call, began + 20)
    assert breaker.state
    clock.now = 20 + PAUSE
    with breaker.call("complete"):
        assert breaker.state  # this one tries
    for began, call in enumerate(calls[10:], start=10):
        ends(call, began + 20)
    assert not breaker.state


def test_while_a_try_hangs_another_one_may_find_that_the_server_works_again(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES)
    clock.now = PAUSE
    with pytest.raises(ModelTimeout), breaker.call("stream"):
        clock.now = 2 * PAUSE
        with breaker.call("complete"):
            pass
        assert not breaker.state
        raise ModelTimeout("hung")
    assert not breaker.state


def test_a_call_that_may_be_cached_does_not_close_the_breaker(breaker, clock):
    fail(breaker, ModelTimeout("slow"), FAILURES - 1)
    with breaker.call("fetch", proves=False):
        pass
    fail(breaker, ModelTimeout("slow"))
    assert breaker.state
    clock.now = PAUSE
    with breaker.call("fetch", proves=False):
        pass
    assert breaker.state
    with breaker.call("complete"):
        pass
    assert not breaker.state


def test_each_ended_call_is_recorded_and_observed_with_the_time_to_its_first_text(breaker, clock):
    observed, refused = [], ModelRateLimited("429")
    breaker.observers.append(lambda *call: observed.append(call))
    with breaker.call("stream") as call:
        clock.now = 2
        call.worked()
        assert breaker.record.last_success == 2
        clock.now = 9
    fail(breaker, refused)  # an answer for the breaker, and no success for a reader
    clock.now = 10
    with pytest.raises(GeneratorExit), breaker.call("stream"):  # a reader left before anything was known
        raise GeneratorExit
    assert observed == [("model", "the model m", "stream", 2, None), ("model", "the model m", "complete", 0, refused)]
    record = breaker.record
    assert (record.last_success, record.latency, record.last_failure, record.error) == (9, 2, 9, "429")
    assert (record.failures, breaker.state) == (1, "")
    with pytest.raises(GeneratorExit), breaker.call("stream") as call:  # left in mid-answer
        call.worked()
        clock.now = 99
        raise GeneratorExit
    assert (record.failures, record.last_success, len(observed)) == (0, 10, 3)


def test_what_may_be_cached_proves_nothing_and_an_empty_index_is_no_failure_of_the_store(breaker):
    with breaker.call("fetch", proves=False):
        pass
    with pytest.raises(NoIndex), breaker.call("live", proves=False):
        raise NoIndex("nothing yet")
    assert (breaker.record.last_success, breaker.record.last_failure) == (None, None)
    with pytest.raises(RuntimeError), breaker.call("search"):
        raise RuntimeError
    assert (breaker.record.error, breaker.record.failures) == ("RuntimeError", 1)

"""A limit for code that may never end, in CPU time: a busy machine changes nothing. It is generous, as only code that
would take many times longer must fail by it.
"""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises `TimeoutError` in the block after that CPU time of the process; a search for a regular expression is interrupted, too."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s of CPU time")

    previous = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)

"""A limit for code that may never end: generous, as only code that would take many times longer must fail by it."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def at_most(seconds: int) -> Iterator[None]:
    """Raises `TimeoutError` in the block after that time; a search for a regular expression is interrupted, too."""

    def stop(*_: object) -> None:
        raise TimeoutError(f"not done after {seconds} s")

    previous = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, previous)

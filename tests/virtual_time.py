"""An event loop whose time passes only while everything waits: tests of timeouts take no time, and load changes nothing."""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any


class VirtualTime(asyncio.SelectorEventLoop):
    """Time jumps to the next timer when nothing is ready. For code without sockets and threads, which take real time."""

    _now = 0.0

    def time(self) -> float:
        """Seconds since the loop was made."""
        return self._now

    def _run_once(self) -> None:
        # cancelled timers stay in the list for a while: after a jump to one of them, the loop really waits for the next timer
        timers = [timer._when for timer in self._scheduled if not timer._cancelled]  # type: ignore[attr-defined]
        if timers and not self._ready:  # type: ignore[attr-defined]
            self._now = max(self._now, min(timers))
        super()._run_once()  # type: ignore[misc]


def in_virtual_time(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """A test that runs in such an event loop."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        with asyncio.Runner(loop_factory=VirtualTime) as runner:
            runner.run(test(*arguments, **named))

    return run

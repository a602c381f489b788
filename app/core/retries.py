"""Requests that are sent again: how often, and after how many seconds, which a server may say by `Retry-After`."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

from app.core.log_message import REQUEST_ID, LogMessage, masked

if TYPE_CHECKING:
    from stamina.instrumentation import RetryDetails

log = logging.getLogger("app.retries")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class Patience:
    """So many `attempts` in all. The `first` wait in seconds doubles from one to the next; a server that names one gets it, up to
    the `longest`, or is `left` alone if it wants more.
    """

    attempts: int = 4
    first: float = 0.5
    longest: float = 30.0
    left: bool = False

    def wait(self, asked: float | None) -> float | bool:
        """The seconds to wait where the server asks for these; True for the usual ones, False for no further attempt."""
        if asked is None:
            return True
        return False if self.left and asked > self.longest else min(asked, self.longest)


OF_RUN = Patience()
OF_QUESTION = Patience(attempts=2, longest=2.0, left=True)
"""Of a question, whose reader waits."""
MAX_RETRY_AFTER = 86_400.0


async def tried(
    once: Callable[[], Awaitable[Result]], patience: Patience, again: Callable[[Exception], bool], url: str = ""
) -> Result:
    """What `once` returns. An error that is worth another try, as `again` says, is followed by one after its `retry_after` seconds.

    Raises the error of the last try. `url` is for the log.
    """

    def wait(error: Exception) -> bool | float:
        return again(error) and patience.wait(getattr(error, "retry_after", None))

    async for attempt in (
        _stamina()
        .retry_context(
            on=wait,
            attempts=patience.attempts,
            timeout=None,
            wait_initial=patience.first,
            wait_max=patience.first * 16,
            wait_jitter=patience.first,
        )
        .with_name(masked(url), (), {"attempts": patience.attempts})
    ):
        with attempt:
            return await once()
    raise AssertionError  # pragma: no cover - the last attempt returns or raises


def retry_after(header: str) -> float | None:
    """The seconds in a Retry-After header, which may be a date; None if it is invalid or longer than a day."""
    try:
        seconds = float(header)
    except ValueError:
        try:
            then = parsedate_to_datetime(header).astimezone(UTC)
        except (ValueError, OverflowError):
            return None
        seconds = max(0.0, (then - datetime.now(UTC)).total_seconds())
    return seconds if 0 <= seconds <= MAX_RETRY_AFTER else None


def _log_retry(details: RetryDetails) -> None:
    attempt = f"{details.retry_num + 1} of {details.kwargs['attempts']}"
    told = {"id": REQUEST_ID.get(), "url": details.name, "reason": details.caused_by}
    shown = {name: value for name, value in told.items() if value}
    log.info(LogMessage("asking again", **shown, in_s=round(details.wait_for, 1), attempt=attempt))


@cache
def _stamina() -> Any:
    import stamina

    stamina.instrumentation.set_on_retry_hooks([_log_retry])  # instead of a line without the address
    return stamina

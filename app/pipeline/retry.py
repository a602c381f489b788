"""Retries once after a rate limit, within seconds, because a reader is waiting."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.core.errors import ModelRateLimited
from app.core.log_message import LogMessage
from app.core.request_id import REQUEST_ID

log = logging.getLogger("app.pipeline")

Result = TypeVar("Result")

LONGEST_WAIT = 2.0  # seconds
DEFAULT_WAIT = 0.5  # seconds, if the server sends no Retry-After


async def retry_once(call: Callable[[], Awaitable[Result]]) -> Result:
    """The result of the call. Retries once after `ModelRateLimited` with a short wait; raises any other error."""
    try:
        return await call()
    except ModelRateLimited as error:
        wait = DEFAULT_WAIT if error.retry_after is None else error.retry_after
        if wait > LONGEST_WAIT:
            raise
        log.info(LogMessage("asking again", id=REQUEST_ID.get(), reason=error, in_s=wait))
        await asyncio.sleep(wait)
    return await call()

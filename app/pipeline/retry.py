"""Waiting once for a model that is asked too often: shortly, because a reader waits too."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from app.core.errors import ModelRateLimited

Result = TypeVar("Result")

LONGEST = 2.0
UNTOLD = 0.5  # seconds to wait where the server doesn't say how long


async def patiently(call: Callable[[], Awaitable[Result]]) -> Result:
    """What the call gives, tried again once after a refusal that asks for a short wait; else its error."""
    try:
        return await call()
    except ModelRateLimited as error:
        wait = UNTOLD if error.retry_after is None else error.retry_after
        if wait > LONGEST:
            raise
        await asyncio.sleep(wait)
    return await call()

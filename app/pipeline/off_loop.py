"""Reads long texts in a thread, so that they don't block other requests."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.core.errors import AnswerTimeout

LONG = 20_000  # characters; shorter texts take too little time to matter
LONGEST = 10.0  # seconds

_threads = ThreadPoolExecutor(2, "reading")  # separate, so that searches of the store don't wait for them
T = TypeVar("T")


async def off_loop(read: Callable[[], T], length: int) -> T:
    """The result of `read`, which runs in a thread if its texts have over `LONG` characters.

    Raises `AnswerTimeout` if it takes over `LONGEST` seconds.
    """
    if length <= LONG:
        return read()
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_threads, read), LONGEST)
    except TimeoutError as error:
        raise AnswerTimeout(
            f"Reading {length} characters of passages took over {LONGEST:.0f} s. Try again, or index shorter passages (DOCS_SPLITTER)."
        ) from error

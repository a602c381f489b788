"""Reading of long texts beside the event loop, so that other requests go on meanwhile."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from app.core.errors import AnswerTimeout

LONG = 20_000  # characters: shorter texts are read in less time than others notice
LONGEST = 10.0  # seconds

_threads = ThreadPoolExecutor(2, "reading")  # of our own: the store's searches don't wait for them
T = TypeVar("T")


async def off_loop(read: Callable[[], T], length: int) -> T:
    """What `read` returns, in a thread where its texts have over `LONG` characters.

    Raises `AnswerTimeout` where it takes over `LONGEST` seconds.
    """
    if length <= LONG:
        return read()
    try:
        return await asyncio.wait_for(asyncio.get_running_loop().run_in_executor(_threads, read), LONGEST)
    except TimeoutError as error:
        raise AnswerTimeout(
            f"Passages of {length} characters weren't read in {LONGEST:.0f} s: try again, or index shorter ones (DOCS_SPLITTER)."
        ) from error

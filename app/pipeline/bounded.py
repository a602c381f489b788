"""Bounds what a model writes: the length of an answer, of its lines and of its pieces, the time for which it keeps the event loop, and the
time for which it may say nothing.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing

from app.core.log_message import REQUEST_ID, LogMessage
from app.core.turn import Done, Event, Events, Text
from app.text.invisible import Visible

log = logging.getLogger("app.pipeline")

LONGEST_PIECE = 1000
"""Characters that are read at once."""
LONGEST_LINE = 4000
"""Characters of a line, which is judged as a whole: the next blank becomes a line end, or any place after as many again."""
LONGEST_BLANK = 100
"""Blanks in a row, and line ends."""
LONGEST_TURN = 0.01
"""Seconds after which others get their turn."""


class Lines:
    """A text that comes piece by piece, without lines and runs of blanks that no honest answer has. Its pieces change nothing."""

    def __init__(self) -> None:
        self._line = ""  # so far; or the line ends, if nothing follows them

    def feed(self, text: str) -> str:
        """The text, with line ends in lines that are too long, and the first `LONGEST_BLANK` of a run of blanks."""
        odd = "\n" in text or "\t" in text or "  " in text or (text[:1] == " " and self._line[-1:] in {" ", "\t"})
        if not odd and len(self._line) + len(text) < LONGEST_LINE:  # nearly every piece
            self._line = self._line.strip("\n") + text if text else self._line
            return text
        signs = list[str]()
        for sign in text:
            length, blank = len(self._line.strip("\n")), sign in " \t"
            if length >= LONGEST_LINE and (blank or length >= 2 * LONGEST_LINE):
                signs.append("\n")
                self._line = "\n"
                if blank:
                    continue
            if (sign == "\n") != self._line.startswith("\n"):
                self._line = ""
            self._line = (self._line[:LONGEST_BLANK] if sign == "\n" else self._line) + sign
            run = self._line[-LONGEST_BLANK - 1 :]
            if len(run) <= LONGEST_BLANK or run.strip(" \t" if blank else "\n"):
                signs.append(sign)
        return "".join(signs)


async def in_turns(events: Iterable[Event]) -> Events:
    """Events that are all there, as of an answer that is sent as a whole; others get their turn between them."""
    clock = asyncio.get_running_loop().time
    began = clock()
    for event in events:
        yield event
        if clock() - began > LONGEST_TURN:
            await asyncio.sleep(0)
            began = clock()


async def bounded(events: Events, longest: int) -> Events:
    """The events of a model's answer with visible text in pieces of at most `LONGEST_PIECE` characters, and in lines.

    After `longest` characters comes a `Done` that is `cut`, and no more is read: closing `events` ends the request to the model.
    """
    visible, lines, left = Visible(), Lines(), longest
    clock = asyncio.get_running_loop().time
    began = clock()
    async for event in events:
        if isinstance(event, Text):
            for start in range(0, len(event.text), LONGEST_PIECE):
                written = event.text[start : start + LONGEST_PIECE]
                if text := lines.feed(visible.feed(written[:left])):
                    yield Text(text)
                if len(written) > left:
                    log.warning(LogMessage("answer cut", id=REQUEST_ID.get(), characters=longest))
                    yield Done("length", cut=True)
                    return
                left -= len(written)
                if clock() - began > LONGEST_TURN:  # pieces that have all arrived come without a wait
                    await asyncio.sleep(0)
                    began = clock()
            continue
        if isinstance(event, Done) and (rest := lines.feed(visible.rest())):
            yield Text(rest)
        yield event


async def with_silences(events: Events, seconds: float) -> AsyncGenerator[Event | None, None]:
    """The events, with a None where none has come for so many seconds. A task reads them; closing this ends it, and closes `events`."""
    came, news = asyncio.Queue[Event](1), asyncio.Event()

    async def read() -> None:
        async with aclosing(events):
            async for event in events:
                await came.put(event)
                news.set()

    reader = asyncio.create_task(read())
    reader.add_done_callback(lambda _: news.set())
    try:
        while not reader.done() or not came.empty():
            if came.empty():
                news.clear()
                timer = asyncio.get_running_loop().call_later(seconds, news.set)
                await news.wait()
                timer.cancel()
            if not came.empty() or not reader.done():
                yield None if came.empty() else came.get_nowait()
        await reader  # which raises what reading has raised
    finally:
        reader.cancel()
        await asyncio.gather(reader, return_exceptions=True)

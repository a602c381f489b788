"""Does for each new generation of the index what its first reader would wait for; a service that starts is ready after it."""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.assistants.health import look_at_servers
from app.assistants.suggestions import Suggester
from app.core.log_message import LogMessage
from app.core.process import give_back_memory
from app.core.turn import Message, Request

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant, Assistants
    from app.core.gate import Gate

EVERY = 2.0  # seconds between two looks for a new generation
LETTER = Request((Message("user", "a"),), id="warm-up", as_you_type=True)
QUESTION = Request((Message("user", "Where does the documentation say how to begin?"),), id="warm-up")
LONGEST = 60.0  # seconds that a start waits; what hangs is no reason to answer nobody

log = logging.getLogger("app.http")
Generations = dict[str, tuple[int, str]]
"""Of each assistant, the generation that something was done for."""


@dataclass
class WarmUp:
    """Searches each index as soon as it is live, and makes first questions of it when nobody has asked between two looks.

    `begun` is False from a start until it has done the former: words, translations and language centres are read, the embedder
    and the connection to the model are open.
    """

    assistants: Assistants
    suggester: Suggester
    gate: Gate
    begun: bool = True
    _searched: Generations = field(default_factory=dict)
    _warm: Generations = field(default_factory=dict)

    async def run(self) -> None:
        """Look for new generations until cancelled."""
        self.begun = False
        try:
            async with asyncio.timeout(LONGEST):
                searched = self._each(self._searched, self._search)
                await asyncio.gather(look_at_servers(self.assistants.breakers), searched)
        except TimeoutError:
            log.warning("the first searches took over %.0f s: the service is ready without them", LONGEST)
        self.begun, opened_before = True, -1
        while True:
            await self._each(self._searched, self._search)
            # pauses between questions are short; a reader who wants first questions meanwhile has them made
            if not self.gate.open and self.gate.opened == opened_before:
                await self._each(self._warm, self._suggest)
            opened_before = self.gate.opened
            await asyncio.sleep(EVERY)

    async def _each(self, known: Generations, prepare: Callable[[Assistant], Awaitable[None]]) -> None:
        """Prepare what is new. An index that can't be searched is tried again at the next look."""
        for assistant in self.assistants.listed():
            try:
                info = (await assistant.store.live()).info
                if known.get(assistant.id) != (info.id, info.built_at):
                    await prepare(assistant)
                    known[assistant.id] = (info.id, info.built_at)
            except Exception as error:  # damaged rows may fail anywhere; requests and /health report it
                log.debug(LogMessage("not warmed up", assistant=assistant.id, error=error), exc_info=error)

    async def _search(self, assistant: Assistant) -> None:
        await assistant.search(LETTER)
        await assistant.search(QUESTION)

    async def _suggest(self, assistant: Assistant) -> None:
        await self.suggester.of(assistant)
        # of the generation before, parts of which wait in reference cycles, and of what suggesting has read: all pages
        await asyncio.to_thread(gc.collect)
        await asyncio.to_thread(give_back_memory)

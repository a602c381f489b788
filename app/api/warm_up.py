"""Does for each new generation of the index what its first reader would wait for."""

from __future__ import annotations

import asyncio
import gc
import logging
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.assistants.suggestions import Suggester
from app.core.log_message import LogMessage
from app.core.process import give_back_memory
from app.core.turn import Message, Request

if TYPE_CHECKING:
    from app.assistants.assistant import Assistant, Assistants

EVERY = 2.0  # seconds between two looks for a new generation
LETTER = Request((Message("user", "a"),), id="warm-up", as_you_type=True)

log = logging.getLogger("app.api")


@dataclass(frozen=True)
class WarmUp:
    """Reads the words of an index and makes first questions of it as soon as it is live."""

    assistants: Assistants
    suggester: Suggester
    _warm: dict[str, tuple[int, str]] = field(default_factory=dict)

    async def run(self) -> None:
        """Look for new generations until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY)

    async def look(self) -> None:
        """Warm up what is new. An index that can't be searched is tried again at the next look."""
        for assistant in self.assistants.listed():
            try:
                await self._look(assistant)
            except Exception as error:  # damaged rows may fail anywhere; requests and /health report it
                log.debug(LogMessage("not warmed up", assistant=assistant.id, error=error), exc_info=error)

    async def _look(self, assistant: Assistant) -> None:
        info = (await assistant.store.live()).info
        if self._warm.get(assistant.id) == (info.id, info.built_at):
            return
        await assistant.search(LETTER)
        await self.suggester.of(assistant)
        await asyncio.to_thread(_give_back_memory)
        self._warm[assistant.id] = (info.id, info.built_at)


def _give_back_memory() -> None:
    """Free the generation before, parts of which wait in reference cycles, and what suggesting has read: all pages."""
    gc.collect()
    give_back_memory()

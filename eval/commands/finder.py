"""The assistants of this process as something that searches."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from app.assistants.assembly import opened
from app.assistants.assistant import Assistants
from app.core.settings import Settings
from app.core.turn import Request, Turn
from app.models.protocols import Model


@dataclass(frozen=True)
class AssistantFinder:
    """Finds with these assistants."""

    assistants: Assistants

    async def find(self, request: Request) -> Turn:
        """Up to the ranked passages."""
        return await self.assistants.get(request.assistant).find(request)

    async def weigh(self, request: Request) -> Turn:
        """Up to the decision whether they say anything."""
        return await self.assistants.get(request.assistant).weigh(request)


@asynccontextmanager
async def open_finder(overrides: Mapping[str, Any], model: Model | None = None) -> AsyncIterator[AssistantFinder]:
    """The configured assistants with some settings replaced, and with this language model where one is given."""
    async with opened(Settings.load(**overrides), model=model) as assistants:
        yield AssistantFinder(assistants)

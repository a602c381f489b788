"""Searches with the assistants of this process."""

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
    """A `Finder` that uses these assistants."""

    assistants: Assistants

    async def find(self, request: Request) -> Turn:
        """The turn after retrieval."""
        return await self.assistants.get(request.assistant).find(request)

    async def assess(self, request: Request) -> Turn:
        """The turn after the decision whether to refuse."""
        return await self.assistants.get(request.assistant).assess(request)


@asynccontextmanager
async def open_finder(overrides: Mapping[str, Any], model: Model | None = None) -> AsyncIterator[AssistantFinder]:
    """The configured assistants with some settings replaced, and with this language model if given."""
    async with opened(Settings.load(**overrides), model=model) as assistants:
        yield AssistantFinder(assistants)

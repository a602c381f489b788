"""GET /v1/admin/gaps: the report, over HTTP."""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.responses import Response

from app.conversations.question_log import Asked
from app.http.bodies import Name, unstored
from app.routes.admin.queries import IndexQuery, chosen_index
from app.routes.routers import operator_router
from app.routes.service import Service
from plugins.gaps.records import GapReport


def router(service: Service) -> APIRouter:
    """The route of the report."""
    summary = "Report what the documentation lacks"
    return operator_router(service, [("GET", "gaps", Gaps(service).report, summary, GapReport, None, {})])


class GapsQuery(IndexQuery):
    """Questions that the report of gaps is about."""

    since: Name = Field("30d", description="How long ago, such as 30d, 12h or 4w, or a day in ISO 8601.")
    until: Name = Field("", description="The end of the period, in the same form; empty for now.")
    assistant: Name = Field("", description="Only questions to this assistant.")


KEPT = 60.0
"""Seconds for which the same report is given again: it reads all questions of the period."""


@dataclass
class Gaps:
    """The handler of the route. It makes one report at a time."""

    service: Service
    clock: Callable[[], float] = time.time
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: tuple[GapsQuery, float, GapReport] | None = None

    async def report(self, query: Annotated[GapsQuery, Query()]) -> Response:
        """The report of a period. Raises `RequestError` with the code `no_log` if nothing was logged in it."""
        from plugins.gaps.making import in_process  # a service that keeps nothing loads no database

        index = chosen_index(self.service, query.index).name
        asked = Asked.read(query.since, query.until, self.clock(), query.assistant)
        async with self._making:
            if self._last is None or self._last[0] != query or self.clock() - self._last[1] > KEPT:
                report = await in_process(self.service.settings, asked, index)
                self._last = query, self.clock(), report
            return unstored(self._last[2])

"""GET /v1/admin/gaps: what the documentation lacks, from the questions that were logged."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.queries import GapsQuery, chosen_index, query_of
from app.api.bodies import JsonResponse
from app.api.runs.route import NO_STORE
from app.api.service import Service
from app.gaps.period import Period
from app.gaps.records import GapReport

KEPT = 60.0
"""Seconds for which the same report is given again: it reads all questions of the period."""


@dataclass
class Gaps:
    """The handler of the route. It makes one report at a time."""

    service: Service
    clock: Callable[[], float] = time.time
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: tuple[GapsQuery, float, GapReport] | None = None

    async def report(self, request: Request) -> Response:
        """The report of a period. Raises `RequestError` with the code `no_log` if nothing was logged in it."""
        self.service.check_admin(request, "The report of gaps can't be made")
        query = query_of(request, GapsQuery)
        from app.gaps.making import Wanted, in_process  # a service that keeps nothing loads no database

        index = chosen_index(self.service, query.index).name
        period = Period.read(query.since, query.until, self.clock())
        async with self._making:
            if self._last is None or self._last[0] != query or self.clock() - self._last[1] > KEPT:
                made = await in_process(self.service.settings, Wanted(period, query.assistant, index))
                self._last = query, self.clock(), made
            body = self._last[2]
        return JsonResponse(body, headers=NO_STORE)

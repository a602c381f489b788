"""GET /v1/admin/gaps: the report, over HTTP, and POST /v1/admin/synonyms, which takes up one of its proposals."""

import asyncio
import logging
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.question_log import Asked
from app.core.errors import RequestError, SettingsError
from app.core.prompts import SYNONYMS
from app.http.bodies import ExactModel, Name, unstored
from app.routes.admin.queries import IndexQuery, chosen_index
from app.routes.routers import operator_router
from app.routes.runs import operator_of
from app.routes.service import Service
from app.text.synonyms import add_synonym
from plugins.gaps.records import GapReport

log = logging.getLogger("plugins.gaps")


def router(service: Service) -> APIRouter:
    """The route of the report."""
    summary = "Report what the documentation lacks"
    gaps = Gaps(service)
    return operator_router(service, (
        ("GET", "gaps", gaps.report, summary, GapReport, None, {}),
        ("POST", "synonyms", gaps.add, "Add a synonym to the file of the site", AddedSynonym, SynonymRequest, {}),
    ))  # fmt: skip


class SynonymRequest(ExactModel):
    """A word or phrase of readers, and that of the pages that is searched in its place, too."""

    phrase: Name = Field(min_length=1, description="As readers write it.")
    other: Name = Field(min_length=1, description="As the pages have it.")


class AddedSynonym(TypedDict):
    """The synonym that the file has now; services read it again at once."""

    object: Literal["synonym"]
    phrase: str
    other: str
    file: str


class GapsQuery(IndexQuery):
    """Questions that the report of gaps is about."""

    since: Name = Field("30d", description="How long ago, such as 30d, 12h or 4w, or a day in ISO 8601.")
    until: Name = Field("", description="The end of the period, in the same form; empty for now.")
    assistant: Name = Field("", description="Only questions to this assistant.")


KEPT = 60.0
"""Seconds for which the same report is given again: it reads all questions of the period."""


@dataclass
class Gaps:
    """The handlers of the routes. One report is made at a time."""

    service: Service
    clock: Callable[[], float] = time.time
    _making: asyncio.Lock = field(default_factory=asyncio.Lock)
    _last: tuple[GapsQuery, float, GapReport] | None = None

    async def report(self, query: Annotated[GapsQuery, Query()]) -> Response:
        """The report of a period. Raises `RequestError` with the code `no_log` if nothing was logged in it."""
        from plugins.gaps.making import gap_report, in_process  # a service that keeps nothing loads no database

        index = chosen_index(self.service, query.index).name
        asked = Asked.read(query.since, query.until, self.clock(), query.assistant)
        async with self._making:
            if self._last is None or self._last[0] != query or self.clock() - self._last[1] > KEPT:
                report = await in_process(gap_report, self.service.settings, asked, index)
                self._last = query, self.clock(), report
            return unstored(self._last[2])

    async def add(self, request: Request) -> Response:
        """The synonym. Raises `RequestError` with the code `synonym_refused` if the file can't be written."""
        wanted = await self.service.read(request, SynonymRequest)
        folder = self.service.settings.prompts
        try:
            await asyncio.to_thread(add_synonym, folder, wanted.phrase, wanted.other)
        except SettingsError as error:
            raise RequestError(str(error), code="synonym_refused") from error
        self._last = None
        log.info("%s added the synonym %r = %r", operator_of(self.service, request), wanted.phrase, wanted.other)
        file = str(Path(folder, SYNONYMS))
        return unstored(AddedSynonym(object="synonym", phrase=wanted.phrase, other=wanted.other, file=file))

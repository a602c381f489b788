"""GET and POST /v1/admin/curated: the curated answers with their versions; tries new ones against the question log."""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.assistants.file import NamedIndex
from app.conversations.question_log import Asked, iso
from app.core.errors import RequestError, quoted
from app.http.bodies import ExactModel, Name, Place, unstored
from app.routes.admin.queries import IndexQuery, chosen_index
from app.routes.description import refusals
from app.routes.keeping import store_of
from app.routes.routers import operator_router
from app.routes.runs import operator_of
from app.routes.service import Service
from plugins.steps import curated
from plugins.steps.curated import KEPT_VERSIONS, NEAR, Entry, Known, Match, Version, telling, versions_of

CLOSE = 0.05
"""How much less than the needed cosine a question may have to be shown as one that nearly gets an entry."""
SHOWN = 100
AT_ONCE = 50
Text = Annotated[str, Field(min_length=1, max_length=1000)]


class EntryRequest(ExactModel):
    """For questions like these, say this and cite that; without an answer, the page is read first."""

    questions: list[Text] = Field(min_length=1, max_length=20, description="Ways to ask it, in one language.")
    language: Name = Field(description="Language of the questions and the answer.")
    page: Place = Field(min_length=1, description="Address of the cited or pinned page; it may have a fragment.")
    answer: str = Field("", max_length=8000, description="Markdown; empty for a pinned page.")

    @property
    def entry(self) -> Entry:
        """The same for the step."""
        return Entry(tuple(self.questions), self.language, self.page, self.answer.strip())


class CuratedRequest(ExactModel):
    """All entries, in the place of those of this version."""

    version: int = Field(ge=0, description="The newest version that the editor has seen; 0 before the first.")
    entries: list[EntryRequest] = Field(max_length=500)
    index: Name | None = Field(None, description="Name of an [[index]], empty for that of DOCS_STORE.")


class TryRequest(CuratedRequest):
    """Entries to try against the question log."""

    version: int = 0
    questions: int = Field(500, ge=1, le=1000, description="How many of the last logged questions to try.")


class CuratedList(TypedDict):
    """The entries by version, the newest first; the first are in use by assistants that have the step `curated`."""

    object: Literal["list"]
    index: str
    near: Annotated[float, Field(description="The least cosine of a question and one of an entry.")]
    assistants: Annotated[list[str], Field(description="Those that have the step; without any, no entry is used.")]
    languages: Sequence[str]
    data: Sequence[Version]


class Tried(TypedDict):
    """A logged question that gets an entry, or nearly does."""

    id: str
    question: str
    outcome: str
    entry: Annotated[int, Field(description="Number of the entry, from 0.")]
    like: Annotated[bool, Field(description="True if the question gets the entry.")]
    cosine: float
    other_words: Annotated[list[str], Field(description="Words by which it differs, as stems.")]


class TriedList(TypedDict):
    """What entries would do to the last questions."""

    object: Literal["curated.try"]
    tried: Annotated[int, Field(description="Different questions with a text.")]
    data: list[Tried]


def router(service: Service) -> APIRouter:
    """The routes of curated answers."""
    handlers = CuratedAnswers(service)
    changed = refusals({409: "Somebody else has saved another version meanwhile."})
    return operator_router(service, (
        ("GET", "curated", handlers.list_all, "The curated answers and their versions", CuratedList, None, {}),
        ("POST", "curated", handlers.save, "Save the curated answers as a new version", CuratedList, CuratedRequest, changed),
        ("POST", "curated/try", handlers.tried, "Try curated answers against the question log", TriedList, TryRequest, {}),
    ))  # fmt: skip


@dataclass(frozen=True)
class CuratedAnswers:
    """The handlers of the routes."""

    service: Service
    _saving: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def list_all(self, query: Annotated[IndexQuery, Query()]) -> Response:
        """All kept versions."""
        return await self._listed(chosen_index(self.service, query.index))

    async def _listed(self, index: NamedIndex) -> Response:
        by_id = self.service.assistants.by_id
        using = [
            one.id
            for one in by_id.values()
            if any(step.name == "curated" for group in one.plans.answer for step in group)
        ]
        versions, languages = await versions_of(index.store), self.service.settings.languages
        body: CuratedList = {
            "object": "list", "index": index.name, "near": NEAR, "assistants": using, "languages": languages, "data": versions,
        }  # fmt: skip
        return unstored(body)

    async def save(self, request: Request) -> Response:
        """The list with the new version, once all services use it. To take one back, save the entries of an earlier version."""
        by = operator_of(self.service, request)
        wanted = await self.service.read(request, CuratedRequest, small=False)
        index = chosen_index(self.service, wanted.index)
        live = await index.store.live()
        self._check_languages(wanted)
        for at, one in enumerate(wanted.entries):
            if await live.page(one.page.partition("#")[0]) is None:
                raise RequestError(
                    f"entries[{at}].page: {quoted(one.page)} isn't an indexed page.", param=f"entries[{at}].page"
                )
        async with self._saving:
            versions = await versions_of(index.store)
            newest = versions[0].version if versions else 0
            if wanted.version != newest:
                raise RequestError(
                    f"version: {newest} is the newest one, not {wanted.version}: somebody has saved meanwhile. Load the list again.",
                    param="version",
                    code="version_outdated",
                )
            new = Version(newest + 1, iso(time.time()), by, tuple(one.entry for one in wanted.entries))
            await index.store.keep("curated", {"versions": [asdict(one) for one in (new, *versions)[:KEPT_VERSIONS]]})
        await asyncio.sleep(curated.FRESH)  # until each service has read it
        return await self._listed(index)

    async def tried(self, request: Request) -> Response:
        """The logged questions that get one of the entries, then those that nearly do."""
        wanted = await self.service.read(request, TryRequest, small=False)
        index = chosen_index(self.service, wanted.index)
        self._check_languages(wanted)
        store = store_of(self.service, "no_log")
        part = await store.listed(Asked(0.0, store.clock()), 0, wanted.questions)
        rows = list({row.text.casefold(): row for row in reversed(part.data if part else ()) if row.text}.values())[
            ::-1
        ]
        prompts, found = self.service.assistants.prompts, list[Tried]()
        known = await Known.of([one.entry for one in wanted.entries], prompts, index.embedder)
        for begin in range(0, len(rows), AT_ONCE):
            some = rows[begin : begin + AT_ONCE]
            vectors = await index.embedder.embed_queries([row.text for row in some])
            for row, vector in zip(some, vectors, strict=True):
                if row.language not in prompts.languages:
                    continue
                said = telling(row.text, prompts.language(row.language))
                matches = [
                    (at, known.match(at, said, vector))
                    for at, entry in enumerate(known.entries)
                    if entry.language == row.language
                ]
                if matches and (best := max(matches, key=_nearness))[1].cosine >= NEAR - CLOSE:
                    at, match = best
                    found.append({
                        "id": row.id, "question": row.text, "outcome": row.outcome, "entry": at, "like": match.like,
                        "cosine": match.cosine, "other_words": sorted(word.rstrip("~*") for word in match.words),
                    })  # fmt: skip
        found.sort(key=lambda one: (not one["like"], -one["cosine"]))
        return unstored(TriedList(object="curated.try", tried=len(rows), data=found[:SHOWN]))

    def _check_languages(self, wanted: CuratedRequest) -> None:
        for at, one in enumerate(wanted.entries):
            if one.language not in self.service.settings.languages:
                raise RequestError(
                    f"entries[{at}].language: {quoted(one.language)} isn't configured.", param=f"entries[{at}].language"
                )


def _nearness(one: tuple[int, Match]) -> tuple[bool, float, int]:
    """The key of the match that a question gets: the first entry that it is like, else the nearest."""
    at, match = one
    return match.like, 0.0 if match.like else match.cosine, -at

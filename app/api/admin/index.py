"""GET /v1/admin/index and generations, POST /v1/admin/rollback: the state of the indexes, and the way back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Literal, cast

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import (
    AdminIndexBody,
    ChunkBody,
    GenerationBody,
    GenerationList,
    IndexBody,
    PageRow,
    ProblemBody,
    RecipeBody,
    RollbackBody,
    SitesBody,
    SourceBody,
)
from app.api.admin.problems import Inspected, problems
from app.api.admin.queries import ChosenIndex, IndexQuery, PageAge, PageState, chosen_index, query_of
from app.api.bodies import JsonResponse
from app.api.health import part_bodies
from app.api.request_models import RollbackRequest
from app.api.runs import NO_STORE, Runs, beside, configured
from app.api.service import Service
from app.assistants.findings import roll_back
from app.assistants.health import IndexState, look_at_servers, part_states
from app.core.errors import AssistantError, IndexMismatch, NoIndex, RequestError, StoreBusy
from app.core.generation import GenerationInfo
from app.core.log_message import masked
from app.core.types import Chunk, Page
from app.index.run_history import RunHistory

AGES: tuple[tuple[PageAge, timedelta], ...] = (
    ("week", timedelta(days=7)),
    ("month", timedelta(days=31)),
    ("quarter", timedelta(days=92)),
    ("year", timedelta(days=366)),
)
FIRST_LINES = 5


def page_row(page: Page, now: datetime) -> PageRow:
    """The facts about a page."""
    return {
        "url": page.url,
        "title": page.title,
        "language": page.language,
        "collection": page.collection,
        "source": page.source,
        "state": state_of(page),
        "age": age_of(page, now),
        "chunks": len(page.chunk_ids),
        "status": page.status,
        "published": page.published,
        "modified": page.modified,
        "last_ok": page.last_ok,
        "stale_since": page.stale_since,
    }


def state_of(page: Page) -> PageState:
    """Returns the state of the page: whether it could be read, and whether it is searched."""
    if page.stale_since:
        return "failing"
    if page.same_as:
        return "duplicate"
    return "ok" if page.chunk_ids else "empty"


def age_of(page: Page, now: datetime) -> PageAge:
    """Returns the age of the page since it was changed, else published, as it says itself."""
    try:
        then = datetime.fromisoformat(page.modified or page.published)
    except ValueError:
        return "unknown"
    age = now - (then if then.tzinfo else then.replace(tzinfo=UTC))
    return next((name for name, most in AGES if age <= most), "older")


def chunk_bodies(chunks: Sequence[Chunk], markdown: str) -> list[ChunkBody]:
    """The chunks of a page in their order."""
    found, after, known = [], 0, frozenset[str]()
    for position, chunk in enumerate(chunks):
        lines = chunk.text.split("\n")
        start = -1 if chunk.translated_from else _start([line for line in lines if line not in known], markdown, after)
        after, known = max(after, start + 1), frozenset(lines)
        found.append(_chunk_body(chunk, position, start))
    return found


def _start(lines: Sequence[str], markdown: str, after: int) -> int:
    """Returns the start of the first of the first lines in the Markdown from `after` on; -1 if none is there.

    A chunk has no ids of headings, so whole texts differ. The lines are without those of the chunk before: a chunk repeats the
    head of a table that it goes on with.
    """
    written = (line for line in lines[:FIRST_LINES] if line.strip())
    return next((at for line in written if (at := f"\n{markdown}".find(f"\n{line}", after)) >= 0), -1)


def _chunk_body(chunk: Chunk, position: int, start: int) -> ChunkBody:
    return {
        "id": chunk.id,
        "position": position,
        "language": chunk.language,
        "translated_from": chunk.translated_from,
        "link": chunk.link,
        "text": chunk.text,
        "sections": [{"offset": one.offset, "path": one.path, "anchor": one.anchor} for one in chunk.sections],
        "questions": chunk.questions,
        "start": None if start < 0 else start,
    }


REFUSED = "The index can't be looked at"


@dataclass(frozen=True)
class IndexStates:
    """The handlers of the routes."""

    service: Service
    runs: Runs

    async def state(self, request: Request) -> Response:
        """All indexes with their sources, runs and problems."""
        self.service.check_admin(request, REFUSED)
        query_of(request, IndexQuery)
        assistants = self.service.assistants
        states, _ = await asyncio.gather(assistants.index_states(), look_at_servers(assistants.breakers))
        used = assistants.used()
        inspected = await asyncio.gather(
            *(_inspected(ChosenIndex(name, *used[name]), state) for name, state in states.items())
        )
        # runs that are started here write to the index without a name
        inspected = [one if one.name else replace(one, run=self.runs.last) for one in inspected]
        parts = {**part_states(assistants.breakers), **part_states(self.service.breakers, kinds=())}
        found = problems(inspected, parts, assistants, self.service.settings)
        body: AdminIndexBody = {
            "object": "admin.index",
            "state": _state(found),
            "problems": found,
            "version": version("docs-assistant"),
            "model": assistants.model.name if assistants.model else None,
            "parts": part_bodies(parts),
            "sites": self._sites(inspected),
            "indexes": [_index(one) for one in inspected],
        }
        return JsonResponse(body, headers=NO_STORE)

    def _sites(self, inspected: Sequence[Inspected]) -> SitesBody:
        """The sites that runs may read; they write to the index without a name."""
        settings = self.service.settings
        infos = [one.state.info for one in inspected if not one.name and one.state.info]
        indexed = [url for info in infos for url in beside(settings, info.sources)]
        return {"configured": [masked(site) for site in configured(settings)], "indexed": indexed}

    async def generations(self, request: Request) -> Response:
        """The kept generations, newest first."""
        self.service.check_admin(request, REFUSED)
        index = chosen_index(self.service, query_of(request, IndexQuery).index)
        live = (await index.store.live()).info.id
        data = [generation_body(info, live=info.id == live) for info in await index.store.generations()]
        body: GenerationList = {"object": "list", "index": index.name, "data": data}
        return JsonResponse(body, headers=NO_STORE)

    async def rollback(self, request: Request) -> Response:
        """Make the previous generation live again."""
        self.service.check_admin(request, "The index can't be rolled back")
        wanted = await self.service.read(request, RollbackRequest)
        index = chosen_index(self.service, wanted.index)
        kept = await index.store.generations()
        earlier = kept[1].id if len(kept) > 1 else None
        if earlier is not None and wanted.generation != earlier:
            raise RequestError(
                f"generation: the generation before the live one is {earlier}, not {wanted.generation}. Nothing was changed.",
                param="generation",
                code="rollback_refused",
            )
        try:
            info = await roll_back(index.store, index.embedder)
        except (NoIndex, IndexMismatch) as error:
            raise RequestError(str(error), code="rollback_refused") from error
        except StoreBusy as error:
            raise RequestError(f"A run is writing to the index: {error}", code="run_under_way") from error
        live = generation_body(info, live=True)
        body: RollbackBody = {"object": "rollback", "index": index.name, "live": live, "dropped": kept[0].id}
        return JsonResponse(body, headers=NO_STORE)


async def _inspected(index: ChosenIndex, state: IndexState) -> Inspected:
    pages: Sequence[Page] = ()
    runs = RunHistory()
    try:
        runs = await index.store.runs()
        pages = await (await index.store.live()).pages() if state.info else ()
    except AssistantError as error:
        state = replace(state, store_problem=state.store_problem or str(error))
    return Inspected(index.name, index.embedder, state, pages, runs)


def _index(one: Inspected) -> IndexBody:
    info = one.state.info
    return {
        "name": one.name,
        "ok": one.state.ok,
        "embedder": one.state.embedder,
        "generation": generation_body(info, live=True) if info else None,
        "pages_by_language": _counts(page.language for page in one.pages),
        "pages_by_collection": _counts(page.collection for page in one.pages),
        "pages_by_source": _counts(page.source for page in one.pages),
        "pages_by_state": _counts(state_of(page) for page in one.pages),
        "runs": {
            "counts": one.runs.counts,
            "ended": {result: _time(at) for result, at in one.runs.ended.items()},
            "last": one.last_result,
            "seconds": one.runs.seconds,
        },
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def _time(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="seconds")


def generation_body(info: GenerationInfo, *, live: bool) -> GenerationBody:
    """A generation, ready for JSON."""
    sources: list[SourceBody] = [
        {
            "url": one.url,
            "collection": one.collection,
            "options": one.options,
            "roots": one.roots,
            "unreadable": one.unreadable,
            "demo": one.demo,
        }
        for one in info.sources
    ]
    return {
        "id": info.id,
        "live": live,
        "built_at": info.built_at,
        "age_s": None if info.age is None else round(info.age),
        "languages": info.languages,
        "pages": info.pages,
        "chunks": info.chunks,
        "recipe": cast("RecipeBody", asdict(info.recipe)),
        "sources": sources,
    }


def _state(found: Sequence[ProblemBody]) -> Literal["ok", "attention", "broken"]:
    severities = {problem["severity"] for problem in found}
    return "broken" if "error" in severities else "attention" if "warning" in severities else "ok"

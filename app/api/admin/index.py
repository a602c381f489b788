"""GET /v1/admin/index and generations, POST /v1/admin/rollback: the state of the indexes, and the way back."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from importlib.metadata import version
from typing import Literal, cast

from starlette.requests import Request
from starlette.responses import Response

from app.api.admin.answer_models import (
    AdminIndexBody,
    GenerationBody,
    GenerationList,
    IndexBody,
    ProblemBody,
    RecipeBody,
    RollbackBody,
    SitesBody,
    SourceBody,
)
from app.api.admin.problems import Inspected, problems
from app.api.admin.queries import ChosenIndex, IndexQuery, chosen_index, query_of
from app.api.admin.records import state_of
from app.api.bodies import JsonResponse
from app.api.health import part_bodies
from app.api.request_models import RollbackRequest
from app.api.runs.processes import Runs
from app.api.runs.route import NO_STORE
from app.api.runs.sites import beside, configured
from app.api.service import Service
from app.assistants.findings import roll_back
from app.assistants.health import IndexState, look_at_servers, part_states
from app.core.errors import AssistantError, IndexMismatch, NoIndex, RequestError, StoreBusy
from app.core.generation import GenerationInfo
from app.core.masking import masked
from app.core.types import Page
from app.index.run_history import RunHistory, runs_of

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
        runs = await runs_of(index.store)
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

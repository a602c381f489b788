"""GET /health, /health/live and /health/ready: whether the service answers questions, lives, and may get requests."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import HealthBody, IndexState, PartBody, ReadyBody
from app.api.bodies import JsonResponse
from app.api.service import Service
from app.assistants.health import Health, PartState, look_at_servers, part_states
from app.core.errors import RequestError
from app.core.generation import GenerationInfo
from app.index import directory_of
from app.index.vector_cache import unfinished


@dataclass(frozen=True)
class HealthCheck:
    """The handlers of the routes. Without a valid API key, a body contains the status only."""

    service: Service

    async def live(self, request: Request) -> Response:  # noqa: ARG002  # required by the signature of a handler
        """Status 200: the process answers, so a restart would help nobody."""
        return _response({"status": "ok"}, 200)

    async def ready(self, request: Request) -> Response:
        """Status 200 if questions can be answered from the index of the first assistant, else 503."""
        request.app.state.checked = time.monotonic()  # a stop then waits for the next checks, see `app.cli.server`
        state = await self.service.assistants.ready()
        body: ReadyBody = {"status": "ok" if state.ok else "unavailable"}
        if self._shows_details(request):
            body["problem"] = state.store_problem or state.problem
        return _response(body, 200 if state.ok else 503)

    async def __call__(self, request: Request) -> Response:
        """The state of all parts. Status 200 if the service can answer questions, even without a part, else 503."""
        health = await self._health()
        body: HealthBody = {"status": health.status}
        if self._shows_details(request):
            body |= {
                "store": health.store,
                "index": _index(health.index) if health.index else None,
                "model": health.model,
                "embedder": health.embedder,
                "parts": part_bodies(health.parts),
                "details": {**health.details, **await asyncio.to_thread(self._next)},
            }
        return _response(body, 200 if health.ok else 503)

    async def _health(self) -> Health:
        """The state of the assistants and of the servers that only the API uses, which no answer needs."""
        health, own = await self.service.assistants.health(), self.service.breakers
        if not own:
            return health
        await look_at_servers(own)
        return replace(health, parts={**health.parts, **part_states(own, kinds=())})

    def _shows_details(self, request: Request) -> bool:
        try:
            self.service.access(request)
        except RequestError:
            return False
        return True

    def _next(self) -> Mapping[str, Any]:
        """The index that a run of another process is making with vectors that take long, or was when it was killed."""
        directory = directory_of(self.service.settings)
        found = unfinished(directory) if directory else {}
        return {"next_index": found} if found else {}


def part_bodies(parts: Mapping[str, PartState | None]) -> dict[str, PartBody | None]:
    """The parts by kind, ready for JSON."""
    return {kind: cast("PartBody", asdict(part)) if part else None for kind, part in parts.items()}


def _index(info: GenerationInfo) -> IndexState:
    return {
        "generation": info.id,
        "built_at": info.built_at,
        "age_seconds": None if (age := info.age) is None else int(age),
        "pages": info.pages,
        "chunks": info.chunks,
        "languages": info.languages,
        "embedder": info.recipe.embedder,
    }


def _response(body: Mapping[str, Any], status: int) -> Response:
    return JsonResponse(body, status, {"cache-control": "no-store"})

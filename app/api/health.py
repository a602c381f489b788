"""GET /health: reports whether the service can answer questions."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.answer_models import HealthBody, IndexState
from app.api.bodies import JsonResponse
from app.api.service import Service
from app.core.types import GenerationInfo
from app.index import directory_of
from app.index.vector_cache import unfinished


@dataclass(frozen=True)
class HealthCheck:
    """The handler of the route. Without a valid API key, the body contains the status only."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """Status 200 if the service can answer questions, else 503; the body has the same form."""
        health = await self.service.assistants.health()
        body: HealthBody = {"status": "ok" if health.ok else "unavailable"}
        if self.service.keys.accepts(request):
            body |= {
                "store": health.store,
                "index": _index(health.index) if health.index else None,
                "model": health.model,
                "embedder": health.embedder,
                "details": {**health.details, **await asyncio.to_thread(self._next)},
            }
        return JsonResponse(body, 200 if health.ok else 503, {"cache-control": "no-store"})

    def _next(self) -> Mapping[str, Any]:
        """The index that a run of another process is making with vectors that take long, or was when it was killed."""
        directory = directory_of(self.service.settings)
        found = unfinished(directory) if directory else {}
        return {"next_index": found} if found else {}


def _index(info: GenerationInfo) -> IndexState:
    return {
        "generation": info.id,
        "built_at": info.built_at,
        "age_seconds": _age(info.built_at),
        "pages": info.pages,
        "chunks": info.chunks,
        "languages": info.languages,
        "embedder": info.recipe.embedder,
    }


def _age(built_at: str) -> int | None:
    """Seconds since this ISO 8601 time; None if it can't be parsed."""
    try:
        then = datetime.fromisoformat(built_at)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0, int((datetime.now(UTC) - then).total_seconds()))

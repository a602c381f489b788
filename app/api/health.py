"""GET /health: whether questions can be answered, for probes and for people."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from app.api.bodies import JsonResponse
from app.api.service import Service
from app.core.types import GenerationInfo


@dataclass(frozen=True)
class HealthCheck:
    """The route's handler; without a key it tells the status alone."""

    service: Service

    async def __call__(self, request: Request) -> Response:
        """200 when a question can be answered, else 503 with the same body."""
        health = await self.service.assistants.health()
        body: dict[str, Any] = {"status": "ok" if health.ok else "unavailable"}
        if self.service.keys.accepts(request):
            body |= {
                "store": health.store,
                "index": _index(health.index) if health.index else None,
                "model": health.model,
                "embedder": health.embedder,
                "details": dict(health.details),
            }
        return JsonResponse(body, 200 if health.ok else 503, {"cache-control": "no-store"})


def _index(info: GenerationInfo) -> dict[str, Any]:
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
    """Seconds since then; None where the time can't be read."""
    try:
        then = datetime.fromisoformat(built_at)
    except ValueError:
        return None
    then = then if then.tzinfo else then.replace(tzinfo=UTC)
    return max(0, int((datetime.now(UTC) - then).total_seconds()))

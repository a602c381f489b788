"""GET /metrics: figures for Prometheus."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from prometheus_client.exposition import choose_encoder
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from app.api.middleware.forwarded import route_path
from app.api.middleware.requestlog import RequestInfo
from app.api.service import Service
from app.core.errors import Overloaded, RequestError
from app.watch.facts import Facts
from app.watch.metrics import Metrics


@dataclass(frozen=True)
class MetricsPage:
    """The handler of the route. It requires an admin key where one is configured, else an API key where one is."""

    service: Service
    metrics: Metrics
    facts: Facts

    async def __call__(self, request: Request) -> Response:
        """The metrics as text, or as OpenMetrics if the client prefers that."""
        if self.service.keys.admins:
            self.service.check_admin(request, "Metrics aren't shown")
        else:
            self.service.access(request)
        await self.facts.look()
        try:
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
        except TypeError:  # the library's error for a version that is no number
            encode, content_type = choose_encoder("")
        return Response(
            encode(self.metrics.registry), headers={"cache-control": "no-store", "content-type": content_type}
        )


class RequestMetrics:
    """Counts each request that has ended, and its answer."""

    def __init__(self, metrics: Metrics, routes: Iterable[BaseRoute]) -> None:
        self._metrics = metrics
        self._paths = frozenset(map(route_label, routes))

    def __call__(self, scope: Scope, info: RequestInfo, seconds: float) -> None:
        """Count this request."""
        path = route_path(scope)  # middleware may have refused it before a route was chosen
        label = path if path in self._paths else route_label(scope.get("route"))
        self._metrics.request(label, scope["method"], info.status, seconds)
        if info.answer:
            self._metrics.answer(info.answer)
        if reason := _rejection(info.error):
            self._metrics.rejected(reason)


def route_label(route: BaseRoute | None) -> str:
    """The path of the route with its parameters in braces; empty for none."""
    return str(getattr(route, "path_format", ""))


def _rejection(error: Exception | None) -> str:
    """The reason if the request was rejected; empty if it wasn't."""
    match error:
        case Overloaded():
            return "overloaded"
        case RequestError():
            return error.code or "invalid"
        case HTTPException(status_code=503):
            return "stopping"
    return ""

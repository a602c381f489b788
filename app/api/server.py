"""Assembles the HTTP service: routes, middleware, exception handlers and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import Lifespan

from app.api import description as apidocs
from app.api import feedback
from app.api.admin import routes as admin
from app.api.admin.routes import Operation
from app.api.chat import Chat
from app.api.health import HealthCheck
from app.api.html_pages import Pages, Site, find_docs
from app.api.interface import Interface
from app.api.mcp import Mcp
from app.api.metrics import Facts, Metrics, MetricsPage, RequestMetrics
from app.api.middleware.admission import Admission, AnswerLimits, Shutdown
from app.api.middleware.keys import Keys
from app.api.middleware.limits import Counters, Limits
from app.api.middleware.proxy_headers import ForwardedHeaders
from app.api.middleware.request_check import AllowedHosts, AllowedOrigins, Cors, RequestCheck
from app.api.middleware.requestlog import RequestLog, Watch, error_response
from app.api.models import Models
from app.api.passages import Passages
from app.api.runs import Ingest, Runs
from app.api.search import Search
from app.api.service import Service
from app.api.warm_up import WarmUp
from app.assistants.answer_cache import AnswerCache
from app.assistants.suggestions import Suggester
from app.core import spans
from app.core.errors import AssistantError
from app.core.hooks import plugins, registered
from app.core.settings import Settings
from app.core.settings_sources import Origin
from app.models.protocols import Closable

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants
    from app.conversations.store import ConversationStore

PROBED = ("/health", "/metrics")


def create_app(  # noqa: PLR0913  # all but the first two are named by the caller
    assistants: Assistants,
    settings: Settings,
    *,
    open_after: float = 10.0,
    keep_alive: float = 10.0,
    ingest_command: Sequence[str] = (),
    origins: Mapping[str, Origin] = MappingProxyType({}),
    conversations: ConversationStore | None = None,
) -> FastAPI:
    """The service as an ASGI application, which closes the assistants and the conversations on shutdown.

    Times are in seconds. A stream sends its headers with the first text, but at the latest after `open_after`; until
    then an error is an HTTP error. After `keep_alive` without an event, it sends a comment. `ingest_command` indexes
    DOCS_SITES and DOCS_SOURCES and prints a JSON report; without it, the service has no /v1/ingest. `origins` says where
    the settings are written. Without `conversations`, nothing is kept.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if conversations:
            conversations.begin()
        warming = asyncio.create_task(warm_up.run())
        with operation.recent.listening():
            yield
        warming.cancel()
        await _close(conversations, runs, mcp, counters, assistants)

    runs = Runs(ingest_command)
    app = _application(lifespan)
    limits = AnswerLimits.of(settings, assistants.llm_timeout)
    counters = Counters(settings.limits_store)
    own = (*counters.breakers, conversations.breaker) if conversations else counters.breakers
    cache = AnswerCache(settings.answer_cache) if settings.answer_cache else None
    service = Service(assistants, settings, Keys(settings), open_after, keep_alive, limits, own, conversations, cache)
    metrics = Metrics(settings.languages)
    warm_up = WarmUp(assistants, _add_api(app, service))
    operation = Operation(service, origins, views=registered("register_admin_views"))
    admin.add_to(app, service, operation, runs)
    _add_metrics(app, service, metrics)
    feedback.add_to(app, service, metrics)
    plugins().hook.register_routes(app=app, service=service, metrics=metrics)
    mcp = Mcp(service)
    # no GET: a stream of messages that the service never sends would stay open, also while it stops
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"]))
    if ingest_command:
        _add_ingest(app, Ingest(service, runs))
    _add_pages(app, service)
    _add_layers(app, service, counters, RequestMetrics(metrics, app.routes))
    return app


async def _close(*parts: Closable | None) -> None:
    for part in parts:
        if part is not None:
            await part.close()


def _application(lifespan: Lifespan[FastAPI]) -> FastAPI:
    return FastAPI(
        title="Docs Assistant",
        description="Answers questions about a documentation site from its own pages, over the OpenAI chat API.",
        version=version("docs-assistant"),
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
        telemetry=_telemetry(),
    )


def _telemetry() -> TelemetryConfig:
    """A span for each request, if there is a tracer; not for what machines call every few seconds."""
    return {
        "tracing": spans.provider() is not None,
        "tracer_provider": spans.provider(),
        "metrics": False,
        "logs": False,
        "operation_spans": False,
        "auto_configure": False,
        "exclude": lambda scope: scope["path"].startswith(PROBED),
    }


async def method_refused(request: Request, error: Exception) -> Response:
    """Exception handler: status 405 with an Allow header that lists the methods of all routes at this path."""
    response = await error_response(request, error)
    routes = (route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE)
    response.headers["allow"] = ", ".join(sorted({method for route in routes for method in route.methods or ()}))
    return response


def _add_pages(app: FastAPI, service: Service) -> None:
    Site(find_docs(), default_language=service.settings.default_language).add_to(app)
    apidocs.add_to(app, service.access)
    Pages().add_to(app)


def _add_layers(app: FastAPI, service: Service, counters: Counters, watch: Watch) -> None:
    """Add the middleware, the innermost first. Requests that it refuses aren't counted by `Limits`."""
    settings = service.settings
    app.add_middleware(Limits, settings=settings, counters=counters, access=service.access)
    app.add_middleware(Admission, gate=service.limits.gate, check_key=service.access)
    origins = AllowedOrigins(settings.origins, service.keys.origins, service.keys.removed_origins)
    app.add_middleware(RequestCheck, hosts=AllowedHosts(settings.allowed_hosts, settings.host), origins=origins)
    app.add_middleware(Shutdown)
    app.add_middleware(RequestLog, client=settings.log_client, watch=watch)
    app.add_middleware(Cors, origins=origins)
    app.add_exception_handler(AssistantError, error_response)
    app.add_exception_handler(HTTPException, error_response)
    app.add_exception_handler(405, method_refused)
    if settings.trusted_proxies:
        app.add_middleware(ForwardedHeaders, trusted_hosts=list(settings.trusted_proxies))


def _add_api(app: FastAPI, service: Service) -> Suggester:
    suggester = Suggester()
    models, health = Models(service, suggester), HealthCheck(service)
    app.add_api_route("/v1/chat/completions", Chat(service), methods=["POST"], **apidocs.CHAT)
    search = Search(service)
    app.add_api_route("/v1/search", search, methods=["POST"], **apidocs.SEARCH)
    app.add_api_route("/v1/search", search.get, methods=["GET"], **apidocs.SEARCH_GET)
    app.add_api_route("/v1/models", models.list_models, methods=["GET"], **apidocs.MODELS)
    app.add_api_route("/v1/models/{id:path}", models.get_model, methods=["GET"], **apidocs.MODEL)
    app.add_api_route("/v1/interface", Interface(service, suggester), methods=["GET"], **apidocs.INTERFACE)
    app.add_api_route("/v1/passages/{id}", Passages(service), methods=["GET"], **apidocs.PASSAGE)
    for path, handler, described in (
        ("/health", health, apidocs.HEALTH),
        ("/health/live", health.live, apidocs.LIVE),
        ("/health/ready", health.ready, apidocs.READY),
    ):
        app.add_api_route(path, handler, methods=["GET"], **described)
        app.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)
    return suggester


def _add_metrics(app: FastAPI, service: Service, metrics: Metrics) -> None:
    breakers = (*service.assistants.breakers, *service.breakers)
    facts = Facts(service.assistants, service.limits.gate, breakers)
    metrics.registry.register(facts)
    for breaker in breakers:
        breaker.observers.append(metrics.call)
    app.add_api_route("/metrics", MetricsPage(service, metrics, facts), methods=["GET"], **apidocs.METRICS)


def _add_ingest(app: FastAPI, ingest: Ingest) -> None:
    app.add_api_route("/v1/ingest", ingest.start, methods=["POST"], **apidocs.INGEST)
    app.add_api_route("/v1/ingest", ingest.list_runs, methods=["GET"], **apidocs.RUNS)
    app.add_api_route("/v1/ingest/{id}", ingest.get_run, methods=["GET"], **apidocs.RUN)
    app.add_api_route("/v1/ingest/{id}/cancel", ingest.cancel, methods=["POST"], **apidocs.CANCEL)

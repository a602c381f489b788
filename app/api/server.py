"""Assembles the HTTP service: routes, middleware, exception handlers and shutdown."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from fastapi import FastAPI
from fastapi.telemetry import TelemetryConfig
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Match, Route

from app.api import description as apidocs
from app.api.chat.route import Chat
from app.api.health import HealthCheck
from app.api.mcp import Mcp
from app.api.metrics import MetricsPage, RequestMetrics
from app.api.middleware.admission import Admission, AnswerLimits
from app.api.middleware.forwarded import ForwardedHeaders
from app.api.middleware.keys import ApiKeys, FailedAttempts
from app.api.middleware.request_check import AllowedHosts, RequestCheck
from app.api.middleware.requestlog import RequestLog, Watch, error_response
from app.api.middleware.shutdown import Shutdown
from app.api.models import Models
from app.api.responses.route import Responses
from app.api.runs.processes import Runs
from app.api.runs.route import Ingest
from app.api.search import Search
from app.api.service import Service
from app.api.site import Site, find_docs
from app.core import spans
from app.core.errors import AssistantError
from app.core.settings import Settings
from app.watch.facts import Facts
from app.watch.metrics import Metrics

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

PROBED = ("/health", "/metrics")


def create_app(
    assistants: Assistants,
    settings: Settings,
    *,
    open_after: float = 10.0,
    keep_alive: float = 10.0,
    ingest_command: Sequence[str] = (),
) -> FastAPI:
    """The service as an ASGI application, which closes the assistants on shutdown.

    Times are in seconds. A stream sends its headers with the first text, but at the latest after `open_after`; until
    then an error is an HTTP error. After `keep_alive` without an event, it sends a comment. `ingest_command` indexes
    DOCS_SITES and DOCS_SOURCES and prints a JSON report; without it, the service has no /v1/ingest.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await runs.close()
        await mcp.close()
        await assistants.close()

    runs = Runs(ingest_command)
    app = FastAPI(
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
    limits = AnswerLimits.of(settings, assistants.llm_timeout)
    failures = FailedAttempts()
    keys, admins = ApiKeys(settings.api_keys, failures), ApiKeys(settings.admin_keys, failures, "admin")
    service = Service(assistants, settings, keys, admins, open_after, keep_alive, limits)
    metrics = Metrics(settings.languages)
    _add_api(app, service)
    _add_metrics(app, service, metrics)
    mcp = Mcp(service)
    app.router.routes.append(Route("/mcp", mcp))
    if ingest_command:
        _add_ingest(app, Ingest(service, runs))
    Site(find_docs(), default_language=settings.default_language).add_to(app)
    apidocs.add_to(app, keys)
    app.add_api_route("/", home, methods=["GET", "HEAD"], include_in_schema=False)
    _add_layers(app, service, RequestMetrics(metrics, app.routes))
    return app


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


async def home(request: Request) -> Response:  # noqa: ARG001  # required by the signature of a handler
    """Redirects to the documentation."""
    return RedirectResponse("docs/", 307)


def _add_layers(app: FastAPI, service: Service, watch: Watch) -> None:
    """Add the middleware, the innermost first."""
    settings = service.settings
    app.add_middleware(Admission, gate=service.limits.gate, check_key=service.check_key)
    app.add_middleware(RequestCheck, hosts=AllowedHosts(settings.allowed_hosts, settings.host))
    app.add_middleware(Shutdown)
    app.add_middleware(RequestLog, client=settings.log_client, watch=watch)
    app.add_exception_handler(AssistantError, error_response)
    app.add_exception_handler(HTTPException, error_response)
    app.add_exception_handler(405, method_refused)
    if settings.trusted_proxies:
        app.add_middleware(ForwardedHeaders, trusted_hosts=list(settings.trusted_proxies))


def _add_api(app: FastAPI, service: Service) -> None:
    models, health = Models(service), HealthCheck(service)
    app.add_api_route("/v1/chat/completions", Chat(service), methods=["POST"], **apidocs.CHAT)
    app.add_api_route("/v1/responses", Responses(service), methods=["POST"], **apidocs.RESPONSES)
    app.add_api_route("/v1/search", Search(service), methods=["POST"], **apidocs.SEARCH)
    app.add_api_route("/v1/models", models.list_models, methods=["GET"], **apidocs.MODELS)
    app.add_api_route("/v1/models/{id:path}", models.get_model, methods=["GET"], **apidocs.MODEL)
    for path, handler, described in (
        ("/health", health, apidocs.HEALTH),
        ("/health/live", health.live, apidocs.LIVE),
        ("/health/ready", health.ready, apidocs.READY),
    ):
        app.add_api_route(path, handler, methods=["GET"], **described)
        app.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)


def _add_metrics(app: FastAPI, service: Service, metrics: Metrics) -> None:
    facts = Facts(service.assistants, service.limits.gate)
    metrics.registry.register(facts)
    for breaker in service.assistants.breakers:
        breaker.observers.append(metrics.call)
    app.add_api_route("/metrics", MetricsPage(service, metrics, facts), methods=["GET"], **apidocs.METRICS)


def _add_ingest(app: FastAPI, ingest: Ingest) -> None:
    app.add_api_route("/v1/ingest", ingest.start, methods=["POST"], **apidocs.INGEST)
    app.add_api_route("/v1/ingest", ingest.list_runs, methods=["GET"], **apidocs.RUNS)
    app.add_api_route("/v1/ingest/{id}", ingest.get_run, methods=["GET"], **apidocs.RUN)

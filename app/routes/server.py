"""Assembles the HTTP service: routes, middleware, exception handlers and shutdown."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Match, Route
from starlette.types import Lifespan

from app.assistants.answer_cache import AnswerCache
from app.assistants.exam import Renewal
from app.assistants.file import assistant_names
from app.assistants.suggestions import Suggester
from app.core import spans
from app.core.errors import AssistantError
from app.core.hooks import answer_listener, plugins, registered
from app.core.settings import Settings
from app.core.settings_sources import Origin
from app.http.bodies import field_error
from app.http.door import Door, ForwardedHeaders, check_shutdown, error_response
from app.http.keys import Keys
from app.http.limits import AnswerLimits, Counters, Limits
from app.http.request_check import AllowedHosts, AllowedOrigins, Cors, RequestCheck
from app.models.protocols import Closable
from app.routes import answer_models as bodies
from app.routes import description, feedback, sign_in
from app.routes.admin import routes as admin
from app.routes.admin.problems import RunAlarm
from app.routes.admin.routes import Operation
from app.routes.chat import Chat
from app.routes.description import (
    ADMIN,
    ADMIN_ERRORS,
    ANSWER_FAILURES,
    ERRORS,
    FAILURES,
    Row,
    add_routes,
    answers,
    body_of,
    described,
    json_of,
    refusals,
)
from app.routes.html_pages import Pages, Site, find_docs
from app.routes.interface import Branding, Interface, InterfaceBody, Models, PassageInPage, Passages
from app.routes.mcp import Mcp
from app.routes.metrics import Facts, HealthCheck, Metrics, MetricsPage, route_label
from app.routes.request_models import ChatRequest, IngestRequest, SearchRequest
from app.routes.runs import Ingest, Runs
from app.routes.search import Search
from app.routes.service import Service
from app.routes.warm_up import WarmUp

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

    Times are in seconds. A stream sends its headers with the first text, but at the latest after `open_after`; until then an error is
    an HTTP error. After `keep_alive` without an event, it sends a comment. `ingest_command` indexes DOCS_SITES and DOCS_SOURCES and prints
    a JSON report; without it, the service has no /v1/ingest. `origins` says where settings are written. Without `conversations`, nothing is kept.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if conversations:
            conversations.begin()
        examining = Renewal(assistants, settings, limits.follow).run()
        with operation.recent.listening():
            async with _working(warm_up.run(), RunAlarm(assistants, settings, runs).run(), examining):
                yield
        await _close(conversations, runs, mcp, counters, assistants)

    runs, app, keys = Runs(ingest_command), _application(lifespan), Keys(settings, partial(assistant_names, settings))
    limits = AnswerLimits.of(settings, assistants.llm_timeout)
    counters = Counters(settings.limits_store)
    own = (*counters.breakers, conversations.breaker) if conversations else counters.breakers
    cache = AnswerCache(settings.answer_cache) if settings.answer_cache else None
    service = Service(assistants, settings, keys, open_after, keep_alive, limits, own, conversations, cache)
    metrics, branding = Metrics(settings.languages), Branding(service)
    app.state.warm_up = warm_up = WarmUp(assistants, _add_api(app, service, branding), service.limits.gate)
    operation = Operation(service, origins, views=registered("register_admin_views"))
    admin.add_to(app, service, operation, runs)
    _add_metrics(app, service, metrics)
    feedback.add_to(app, service, metrics)
    sign_in.add_to(app, service)
    plugins().hook.register_routes(app=app, service=service, metrics=metrics)
    mcp = Mcp(service)
    # no GET: a stream of messages that the service never sends would stay open, also while it stops
    app.router.routes.append(Route("/mcp", mcp, methods=["POST"]))
    if ingest_command:
        _add_ingest(app, Ingest(service, runs))
    Site(find_docs(), default_language=settings.default_language).add_to(app)
    Pages(branding, service.keys).add_to(app)
    _add_layers(app, service, counters, metrics)
    return app


@asynccontextmanager
async def _working(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Context in which these go on in the background."""
    tasks = [asyncio.create_task(one) for one in work]
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


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
        # a span for each request, if there is a tracer; not for what machines call every few seconds
        telemetry={
            "tracing": spans.provider() is not None,
            "tracer_provider": spans.provider(),
            "metrics": False,
            "logs": False,
            "operation_spans": False,
            "auto_configure": False,
            "exclude": lambda scope: scope["path"].startswith(PROBED),
        },
    )


async def method_refused(request: Request, error: Exception) -> Response:
    """Exception handler: status 405 with an Allow header that lists the methods of all routes at this path."""
    response = await error_response(request, error)
    routes = (route for route in request.app.routes if route.matches(request.scope)[0] != Match.NONE)
    methods = {method for route in routes for method in getattr(route, "methods", None) or ()}
    if methods:  # else it is a route of a mount, which has said so itself
        response.headers["allow"] = ", ".join(sorted(methods))
    return response


def _add_layers(app: FastAPI, service: Service, counters: Counters, metrics: Metrics) -> None:
    """Add the middleware, the innermost first."""
    settings = service.settings
    metrics.routes = frozenset(map(route_label, app.routes))
    origins = AllowedOrigins(settings.origins, service.keys.origins)
    checks = (check_shutdown, RequestCheck(AllowedHosts(settings.allowed_hosts, settings.host), origins))
    limits = Limits(settings, service.limits.gate, counters, service.access)

    async def query_refused(request: Request, error: Exception) -> Response:
        """Status 400 that names the first invalid field of the query string, to whom may know."""
        if not service.keys.is_open_to(request):
            service.access(request)
        assert isinstance(error, RequestValidationError)
        first, queries = error.errors()[0], request.scope["route"].dependant.query_params
        known = [name for query in queries for name in query.field_info.annotation.model_fields]
        return await error_response(request, field_error({**first, "loc": first["loc"][1:]}, known, "The query string"))

    app.add_middleware(
        Door,
        checks=checks,
        enter=limits.enter,
        watch=metrics.request,
        answered=answer_listener(metrics),
        client=settings.log_client,
    )
    app.add_middleware(Cors, origins=origins)
    app.add_exception_handler(AssistantError, error_response)
    app.add_exception_handler(HTTPException, error_response)
    app.add_exception_handler(RequestValidationError, query_refused)
    app.add_exception_handler(405, method_refused)
    if settings.trusted_proxies:
        app.add_middleware(ForwardedHeaders, trusted_hosts=list(settings.trusted_proxies))


def _add_api(app: FastAPI, service: Service, branding: Branding) -> Suggester:
    app.state.branding = branding  # plugins show the name, too
    kept = service.conversations
    suggester, search, chat = Suggester(kept.cited if kept else None), Search(service), Chat(service)
    models, interface, passages = Models(service, suggester), Interface(service, suggester, branding), Passages(service)
    completions = answers(
        bodies.ChatCompletion, bodies.ChatCompletionChunk, "The answer, or with `stream` server-sent events.", "[DONE]"
    )
    # serves what FastAPI's route behind it describes, which would look for dependencies at each request
    app.router.routes.append(Route("/v1/chat/completions", chat.__call__, methods=["POST"]))
    add_routes(app, "OpenAI API", (
        ("chat", "POST", "/v1/chat/completions", chat, "Ask a question", None, ANSWER_FAILURES | completions,
         {"description": "Answers the last message of the user from the indexed pages, in the language of the message."}
         | body_of(ChatRequest)),
        ("models", "GET", "/v1/models", models.list_models, "List the assistants", bodies.ModelList, ERRORS, {}),
        ("model", "GET", "/v1/models/{id:path}", models.get_model, "Read one assistant", bodies.ModelObject,
         ERRORS | refusals({404: "There is no such model."}), {}),
    ))  # fmt: skip
    add_routes(app, "Search", (
        ("search", "POST", "/v1/search", search, "Search without a language model", bodies.SearchResult, FAILURES,
         {"description": "Returns the passages for a query, with the scores of both searches."} | body_of(SearchRequest)),
        ("search_get", "GET", "/v1/search", search.get, "Search by an address", bodies.SearchResult, FAILURES,
         {"description": "The same search for browsers and curl. Only `q` is needed."}),
    ))  # fmt: skip
    add_routes(app, "Interface", (
        ("interface", "GET", "/v1/interface", interface, "Read what a page shows before the first question", InterfaceBody, ERRORS, {}),
        ("passage", "GET", "/v1/passages/{id}", passages, "Read the passage of a source with its neighbours", PassageInPage,
         ERRORS | refusals({404: "There is no such passage, or the assistant may not use it."}), {}),
    ))  # fmt: skip
    _add_health(app, HealthCheck(service))
    description.add_to(app, service.access)
    return suggester


def _add_health(app: FastAPI, health: HealthCheck) -> None:
    nothing = "It can't: nothing is indexed yet, or the store can't be reached."
    unready = "It may not, or the index is older than DOCS_MAX_INDEX_AGE."
    restarts = "For a supervisor that restarts the service: a missing index or a failing model doesn't matter."
    balances = "For a load balancer: a failing model doesn't matter, because answers are extractive then."
    rows: Sequence[Row] = (
        ("health", "GET", "/health", health, "Check the health of the service", bodies.HealthBody,
         {503: {"description": nothing, "content": json_of(bodies.HealthBody)}}, {"access": {}}),
        ("health_live", "GET", "/health/live", health.live, "Check that the process answers", bodies.LiveBody, {},
         {"access": {}, "description": restarts}),
        ("health_ready", "GET", "/health/ready", health.ready, "Check that the service may get questions", bodies.ReadyBody,
         {503: {"description": unready, "content": json_of(bodies.ReadyBody)}}, {"access": {}, "description": balances}),
    )  # fmt: skip
    add_routes(app, "Operation", rows)
    for _, _, path, handler, *_ in rows:
        app.add_api_route(path, handler, methods=["HEAD"], include_in_schema=False)


def _add_metrics(app: FastAPI, service: Service, metrics: Metrics) -> None:
    breakers = (*service.assistants.breakers, *service.breakers)
    facts = Facts(service.assistants, service.limits.gate, breakers)
    metrics.registry.register(facts)
    for breaker in breakers:
        breaker.observers.append(metrics.call)
    told = described(
        "Read the metrics",
        name="metrics",
        access={"security": [{"adminKey": []}, {"key": []}, {}]},
        description="Counters, histograms and gauges for Prometheus. Needs an admin key where one is configured, else an API key.",
    )
    page = MetricsPage(service, metrics, facts)
    app.add_api_route("/metrics", page, methods=["GET"], **told, response_class=PlainTextResponse)


def _add_ingest(app: FastAPI, ingest: Ingest) -> None:
    unknown = ADMIN_ERRORS | refusals({404: "There is no such run."})
    refused = ADMIN_ERRORS | refusals({
        400: "The site is neither configured nor in the index, or no site is.",
        409: "Another run is in progress; the message says which, since when and by whom.",
    })  # fmt: skip
    starts = "Starts a run in a separate process, one at a time. Call it after each deployment of the documentation."
    add_routes(app, "Operation", (
        ("ingest", "POST", "/v1/ingest", ingest.start, "Index the configured or indexed sites again", bodies.IngestRun, refused,
         {"access": ADMIN, "status": 202, "description": starts, **body_of(IngestRequest, required=False)}),
        ("ingest_runs", "GET", "/v1/ingest", ingest.list_runs, "List the last runs, newest first", bodies.IngestRunList, ADMIN_ERRORS,
         {"access": ADMIN}),
        ("ingest_run", "GET", "/v1/ingest/{id}", ingest.get_run, "Read one run with its report", bodies.IngestRun, unknown,
         {"access": ADMIN}),
        ("ingest_cancel", "POST", "/v1/ingest/{id}/cancel", ingest.cancel, "Stop a run", bodies.IngestRun,
         unknown | refusals({409: "The run is over."}),
         {"access": ADMIN, "status": 202, "description": "The run ends soon as failed; the index stays as it is."}),
    ))  # fmt: skip

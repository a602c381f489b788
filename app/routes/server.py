"""Assembles the HTTP service: routes, middleware, exception handlers and shutdown."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from importlib.metadata import version
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, FastAPI
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match
from starlette.types import Lifespan

from app.assistants.answer_cache import AnswerCache
from app.assistants.exam import Renewal
from app.assistants.file import assistant_names
from app.assistants.suggestions import Suggester
from app.core import spans
from app.core.errors import AssistantError
from app.core.hooks import answer_listener, registered
from app.core.settings import Settings
from app.core.settings_sources import Origin
from app.http.bodies import field_error
from app.http.door import Door, ForwardedHeaders, check_shutdown, error_response
from app.http.keys import Keys
from app.http.limits import AnswerLimits, Counters, Limits
from app.http.request_check import AllowedHosts, AllowedOrigins, Cors, RequestCheck
from app.models.protocols import Closable
from app.routes import chat, description, feedback, figures, interface, search, sign_in
from app.routes import metrics as measured
from app.routes import runs as ingest
from app.routes.admin import routes as admin
from app.routes.admin.problems import RunAlarm
from app.routes.admin.routes import Operation
from app.routes.html_pages import Pages, Site, find_docs
from app.routes.interface import Branding
from app.routes.mcp import Mcp
from app.routes.metrics import Metrics, route_label
from app.routes.routers import include
from app.routes.runs import Ingest, Runs
from app.routes.service import Service
from app.routes.warm_up import WarmUp

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants
    from app.conversations.store import ConversationStore

log = logging.getLogger("app.http")

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
            own = registered("register_work", service=service)
            async with _working(warm_up.run(), RunAlarm(assistants, settings, runs).run(), examining, *own):
                yield
        await _close(conversations, runs, mcp, counters, assistants)

    runs, app, keys = Runs(ingest_command), _application(lifespan), Keys(settings, partial(assistant_names, settings))
    limits = AnswerLimits.of(settings, assistants.llm_timeout)
    counters = Counters(settings.limits_store)
    own = (*counters.breakers, conversations.breaker) if conversations else counters.breakers
    cache = AnswerCache(settings.answer_cache) if settings.answer_cache else None
    service = Service(assistants, settings, keys, open_after, keep_alive, limits, own, conversations, cache)
    suggester = Suggester(conversations.cited if conversations else None)
    metrics, mcp = Metrics(settings.languages), Mcp(service)
    app.state.warm_up = warm_up = WarmUp(assistants, suggester, service.limits.gate)
    operation = Operation(service, origins, views=registered("register_admin_views"))
    include(app, (*_routers(app, service, metrics, suggester, operation, runs), mcp.router()))
    _add_layers(app, service, counters, metrics)
    return app


def _routers(
    app: FastAPI, service: Service, metrics: Metrics, suggester: Suggester, operation: Operation, runs: Runs
) -> Iterator[APIRouter]:
    """The routers of all groups of routes: those of the service, of its plugins, and of the pages."""
    app.state.branding = branding = Branding(service)  # plugins show the name, too
    yield chat.router(service)
    yield from interface.routers(service, suggester, branding)
    yield search.router(service)
    yield figures.router(service, branding)
    yield from measured.routers(service, metrics)
    yield description.router(app, service.access)
    yield from admin.routers(service, operation, runs)
    yield from feedback.routers(service, metrics)
    yield sign_in.router(service)
    yield from registered("register_routes", app=app, service=service, metrics=metrics)
    yield ingest.router(Ingest(service, runs))
    yield Site(find_docs(), default_language=service.settings.default_language).router()
    yield Pages(branding, service.keys).router()


@asynccontextmanager
async def _working(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Context in which these go on in the background."""
    tasks = [asyncio.create_task(one) for one in work]
    for task in tasks:
        task.add_done_callback(_log_failure)
    yield
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _log_failure(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and (error := task.exception()):
        log.error("work in the background has ended", exc_info=error)


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

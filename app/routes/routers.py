"""Makes the `APIRouter` of a group of routes from its rows, and includes all routers in the service."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from starlette.responses import JSONResponse, Response

from app.routes.description import ADMIN, ERRORS, KEY, OPERATOR_FAILURES, Responses, body_of
from app.routes.service import Service


def include(app: FastAPI, routers: Iterable[APIRouter]) -> None:
    """Add the routes of all routers to the service: the only way in which it gets routes.

    FastAPI's `include_router` would match each request twice, and hide from a 405 and the metrics which routes there are.
    """
    for router in routers:
        app.router.routes.extend(router.routes)


def described(  # noqa: PLR0913  # as many as a route has properties
    summary: str,
    body: type[Any] | None = None,
    failures: Responses = ERRORS,
    *,
    name: str | None = None,
    access: Mapping[str, Any] = KEY,
    status: int = 200,
    description: str | None = None,
    response_class: type[Response] = JSONResponse,
    **extra: Any,
) -> dict[str, Any]:
    """The arguments of `APIRouter.add_api_route` that describe a route whose response is this JSON.

    `extra` is added to its operation in OpenAPI. The routes return responses, which FastAPI sends as they are.
    """
    said = (body.__doc__ or "").split("\n")[0] if body else ""
    return {
        "name": name, "summary": summary, "description": description, "status_code": status, "response_model": body,
        "response_description": said or f"{summary}.", "responses": failures, "response_class": response_class,
        "openapi_extra": {**access, **extra},
    }  # fmt: skip


Row = tuple[str, str, str, Any, str, type[Any] | None, Responses, dict[str, Any]]
"""Name, method, path, handler, summary, body of the response, errors, and what else is to be said of a route."""


def router_of(tag: str, rows: Iterable[Row]) -> APIRouter:
    """The router with these routes and their descriptions, which OpenAPI lists under the tag."""
    router = APIRouter(tags=[tag])
    for name, method, path, handler, summary, body, failures, more in rows:
        router.add_api_route(path, handler, methods=[method], **described(summary, body, failures, name=name, **more))
    return router


OperatorRow = tuple[str, str, Any, str, type[Any] | None, type[Any] | None, Responses]
"""Method, path below /v1/admin, handler, summary, bodies of response and request, and what else it answers: errors of its own, files."""


def operator_router(service: Service, rows: Iterable[OperatorRow], status: int = 200) -> APIRouter:
    """The router with these routes for admins, whose key is checked before anything else of the request is read."""
    router = APIRouter(prefix="/v1/admin", tags=["Operation"], dependencies=[Depends(service.operator)])
    for method, path, handler, summary, model, asked, more in rows:
        extra = body_of(asked) if asked else {}
        told = described(summary, model, OPERATOR_FAILURES | more, access=ADMIN, status=status, **extra)
        router.add_api_route(f"/{path}", handler, methods=[method], **told)
    return router


def unlisted_router(handlers: Mapping[str, Callable[..., Any]], *methods: str) -> APIRouter:
    """The router with these handlers by path, which OpenAPI doesn't list; pages and files, unless other methods are given."""
    router = APIRouter(include_in_schema=False)
    for path, handler in handlers.items():
        router.add_api_route(path, handler, methods=list(methods or ("GET", "HEAD")))
    return router

"""The OpenAPI schema at /openapi.json, and Swagger UI at /api-docs, served without external files."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.staticfiles import StaticFiles

from app.api.answer_models import (
    ChatCompletion,
    ChatCompletionChunk,
    ErrorBody,
    HealthBody,
    IngestRun,
    IngestRunList,
    LiveBody,
    ModelList,
    ModelObject,
    ReadyBody,
    SearchResult,
)
from app.api.bodies import JsonResponse
from app.api.middleware.keys import ApiKeys
from app.api.request_models import ChatRequest, IngestRequest, ResponsesRequest, SearchRequest
from app.api.responses.objects import ResponseObject, ResponseStreamEvent

KEY: dict[str, Any] = {"security": [{"key": []}, {}]}
ERRORS: dict[int | str, dict[str, Any]] = {
    401: {"model": ErrorBody, "description": "The API key is missing or invalid."},
    "default": {"model": ErrorBody, "description": "Any other error, in the form of the OpenAI API."},
}
FAILURES: dict[int | str, dict[str, Any]] = {
    400: {"model": ErrorBody, "description": "The request is invalid; `param` names the field."},
    **ERRORS,
    404: {"model": ErrorBody, "description": "There is no such model."},
    413: {"model": ErrorBody, "description": "The request or the question is too long."},
    502: {"model": ErrorBody, "description": "The language model or the index failed."},
    503: {"model": ErrorBody, "description": "Nothing is indexed yet, or the index can't be reached."},
}
ANSWER_FAILURES: dict[int | str, dict[str, Any]] = {
    **FAILURES,
    429: {"model": ErrorBody, "description": "The language model is overloaded; see Retry-After."},
    504: {"model": ErrorBody, "description": "The language model took too long."},
}


def _body(model: str, *, required: bool = True) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{model}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def _stream(model: str, *ends: str) -> dict[str, Any]:
    """Server-sent events with this model as JSON; `ends` are other possible values of their data."""
    event = {"$ref": f"#/components/schemas/{model}"}
    data: dict[str, Any] = {"type": "string", "contentMediaType": "application/json", "contentSchema": event}
    data = {"anyOf": [data, *({"const": end} for end in ends)]} if ends else data
    schema = {"type": "object", "properties": {"event": {"type": "string"}, "data": data}, "required": ["data"]}
    return {"text/event-stream": {"schema": schema}}


CHAT: dict[str, Any] = {
    "name": "chat",
    "summary": "Ask a question",
    "description": "Answers the last message of the user from the indexed pages, in the language of the message.",
    "tags": ["OpenAI API"],
    "responses": {
        200: {
            "model": ChatCompletion,
            "description": "The answer, or with `stream` server-sent events.",
            "content": _stream("ChatCompletionChunk", "[DONE]"),
        },
        **ANSWER_FAILURES,
    },
    "openapi_extra": {**KEY, **_body("ChatRequest")},
}
RESPONSES: dict[str, Any] = {
    "name": "responses",
    "summary": "Ask a question, in the form of the Responses API",
    "description": "Like the chat API. Responses aren't stored: send the whole conversation as `input`.",
    "tags": ["OpenAI API"],
    "responses": {
        200: {
            "model": ResponseObject,
            "description": "The answer, or with `stream` named server-sent events.",
            "content": _stream("ResponseStreamEvent"),
        },
        **ANSWER_FAILURES,
    },
    "openapi_extra": {**KEY, **_body("ResponsesRequest")},
}
SEARCH: dict[str, Any] = {
    "name": "search",
    "summary": "Search without a language model",
    "description": "Returns the passages for a query, with the scores of both searches.",
    "tags": ["Search"],
    "responses": {200: {"model": SearchResult, "description": "The passages, best first."}, **FAILURES},
    "openapi_extra": {**KEY, **_body("SearchRequest")},
}
MODELS: dict[str, Any] = {
    "name": "models",
    "summary": "List the assistants",
    "tags": ["OpenAI API"],
    "responses": {200: {"model": ModelList, "description": "The assistants."}, **ERRORS},
    "openapi_extra": KEY,
}
MODEL: dict[str, Any] = {
    "name": "model",
    "summary": "One assistant",
    "tags": ["OpenAI API"],
    "responses": {
        200: {"model": ModelObject, "description": "The assistant."},
        **ERRORS,
        404: {"model": ErrorBody, "description": "There is no such model."},
    },
    "openapi_extra": KEY,
}
HEALTH: dict[str, Any] = {
    "name": "health",
    "summary": "Check the health of the service",
    "tags": ["Operation"],
    "responses": {
        200: {"model": HealthBody, "description": "The service can answer questions."},
        503: {"model": HealthBody, "description": "It can't: nothing is indexed yet, or the store can't be reached."},
    },
}
METRICS: dict[str, Any] = {
    "name": "metrics",
    "summary": "Read the metrics",
    "description": "Counters, histograms and gauges for Prometheus. Needs an admin key where one is configured, else an API key.",
    "tags": ["Operation"],
    "response_class": PlainTextResponse,
    "responses": {200: {"description": "The metrics."}, **ERRORS},
    "openapi_extra": {"security": [{"adminKey": []}, {"key": []}, {}]},
}
LIVE: dict[str, Any] = {
    "name": "health_live",
    "summary": "Check that the process answers",
    "description": "For a supervisor that restarts the service: a missing index or a failing model doesn't matter.",
    "tags": ["Operation"],
    "responses": {200: {"model": LiveBody, "description": "The process answers."}},
}
READY: dict[str, Any] = {
    "name": "health_ready",
    "summary": "Check that the service may get questions",
    "description": "For a load balancer: a failing model doesn't matter, because answers are extractive then.",
    "tags": ["Operation"],
    "responses": {
        200: {"model": ReadyBody, "description": "The store is reachable, and the index can be searched."},
        503: {"model": ReadyBody, "description": "It can't, or it is older than DOCS_MAX_INDEX_AGE."},
    },
}
ADMIN: dict[str, Any] = {"security": [{"adminKey": []}]}
ADMIN_ERRORS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    401: {"model": ErrorBody, "description": "The admin key is missing or invalid."},
    403: {"model": ErrorBody, "description": "No admin key is configured."},
}
INGEST: dict[str, Any] = {
    "name": "ingest",
    "summary": "Index the configured sites again",
    "description": "Starts a run in a separate process, one at a time. Call it after each deployment of the documentation.",
    "tags": ["Operation"],
    "status_code": 202,
    "responses": {
        202: {"model": IngestRun, "description": "The run is queued; `Location` is its address."},
        400: {"model": ErrorBody, "description": "The site isn't configured, or no site is."},
        **ADMIN_ERRORS,
        409: {
            "model": ErrorBody,
            "description": "Another run is in progress; the message says which, since when and by whom.",
        },
    },
    "openapi_extra": {
        **ADMIN,
        **_body("IngestRequest", required=False),
    },
}
RUNS: dict[str, Any] = {
    "name": "ingest_runs",
    "summary": "The last runs, newest first",
    "tags": ["Operation"],
    "responses": {200: {"model": IngestRunList, "description": "Since the service was started."}, **ADMIN_ERRORS},
    "openapi_extra": ADMIN,
}
RUN: dict[str, Any] = {
    "name": "ingest_run",
    "summary": "One run with its report",
    "tags": ["Operation"],
    "responses": {
        200: {"model": IngestRun, "description": "The current state of the run."},
        **ADMIN_ERRORS,
        404: {"model": ErrorBody, "description": "There is no such run."},
    },
    "openapi_extra": ADMIN,
}


def add_to(app: FastAPI, keys: ApiKeys) -> None:
    """Add /openapi.json and /api-docs, both of which require an API key if keys are configured."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            components = describe().setdefault("components", {})
            components.setdefault("schemas", {}).update(_schemas())
            components["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer"},
                "adminKey": {"type": "http", "scheme": "bearer", "description": "A key of DOCS_ADMIN_KEYS."},
            }
        return describe()

    async def description(request: Request) -> Response:
        keys.check(request)
        # without it, Swagger UI sends its requests to the root of the host
        return JsonResponse({**app.openapi(), "servers": [{"url": f"{request.scope.get('root_path', '')}/"}]})

    async def page(request: Request) -> Response:
        keys.check(request)
        return get_swagger_ui_html(
            openapi_url="openapi.json",
            title=app.title,
            swagger_js_url="api-docs/files/swagger-ui-bundle.js",
            swagger_css_url="api-docs/files/swagger-ui.css",
            swagger_favicon_url="api-docs/files/favicon-32x32.png",
            swagger_ui_parameters={"validatorUrl": None, "defaultModelsExpandDepth": 0},
        )

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    app.add_api_route("/openapi.json", description, methods=["GET", "HEAD"], include_in_schema=False)
    app.add_api_route("/api-docs", page, methods=["GET", "HEAD"], include_in_schema=False)
    app.mount("/api-docs/files", StaticFiles(directory=str(files("fastapi_swagger") / "resources")))


def _schemas() -> dict[str, Any]:
    """The schemas of the bodies that FastAPI doesn't know: those that the routes read, and the events of streams."""
    kinds: dict[JsonSchemaMode, tuple[Any, ...]] = {
        "validation": (ChatRequest, ResponsesRequest, SearchRequest, IngestRequest),
        "serialization": (ChatCompletionChunk, ResponseStreamEvent),
    }
    _, schema = TypeAdapter.json_schemas(
        [(kind.__name__, mode, TypeAdapter(kind)) for mode, those in kinds.items() for kind in those],
        ref_template="#/components/schemas/{model}",
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions

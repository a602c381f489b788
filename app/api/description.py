"""The OpenAPI schema at /openapi.json, and Swagger UI at /api-docs, served without external files."""

from __future__ import annotations

from collections.abc import Callable
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
from app.api.interface import InterfaceBody
from app.api.passages import PassageInPage
from app.api.request_models import (
    ChatRequest,
    IngestRequest,
    QuestionRequest,
    RollbackRequest,
    SearchRequest,
)

KEY: dict[str, Any] = {"security": [{"key": []}, {}]}


_models: dict[JsonSchemaMode, dict[str, type[Any]]] = {"validation": {}, "serialization": {}}


def json_of(body: type[Any]) -> dict[str, Any]:
    """The description of a JSON body of a response."""
    _models["serialization"][body.__name__] = body
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}


def returned(body: type[Any], description: str) -> dict[str, Any]:
    """The description of a response. By reference, since FastAPI would build a validator for each response of each route,
    which took nine tenths of the time to create the service.
    """
    return {"description": description, "content": json_of(body)}


def refusal(description: str) -> dict[str, Any]:
    """The description of an error."""
    return returned(ErrorBody, description)


ERRORS: dict[int | str, dict[str, Any]] = {
    401: refusal("The API key is missing or invalid."),
    "default": refusal("Any other error, in the form of the OpenAI API."),
}
FAILURES: dict[int | str, dict[str, Any]] = {
    400: refusal("The request is invalid; `param` names the field."),
    **ERRORS,
    404: refusal("There is no such model."),
    413: refusal("The request or the question is too long."),
    502: refusal("The language model or the index failed."),
    503: refusal("Nothing is indexed yet, or the index can't be reached."),
}
ANSWER_FAILURES: dict[int | str, dict[str, Any]] = {
    **FAILURES,
    429: refusal("The language model is overloaded; see Retry-After."),
    504: refusal("The language model took too long."),
}


def body_of(model: type[Any], *, required: bool = True) -> dict[str, Any]:
    """The description of a JSON body of a request."""
    _models["validation"][model.__name__] = model
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def stream_of(model: type[Any], *ends: str) -> dict[str, Any]:
    """Server-sent events with this model as JSON; `ends` are other possible values of their data."""
    _models["serialization"][model.__name__] = model
    event = {"$ref": f"#/components/schemas/{model.__name__}"}
    data: dict[str, Any] = {"type": "string", "contentMediaType": "application/json", "contentSchema": event}
    data = {"anyOf": [data, *({"const": end} for end in ends)]} if ends else data
    schema = {"type": "object", "properties": {"event": {"type": "string"}, "data": data}, "required": ["data"]}
    return {"text/event-stream": {"schema": schema}}


def _parameter(name: str, description: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {
        "name": name, "in": "query", "required": required, "description": description,
        "schema": {"type": "string"} | schema,
    }  # fmt: skip


CHAT: dict[str, Any] = {
    "name": "chat",
    "summary": "Ask a question",
    "description": "Answers the last message of the user from the indexed pages, in the language of the message.",
    "tags": ["OpenAI API"],
    "responses": {
        200: {
            "description": "The answer, or with `stream` server-sent events.",
            "content": {**json_of(ChatCompletion), **stream_of(ChatCompletionChunk, "[DONE]")},
        },
        **ANSWER_FAILURES,
    },
    "openapi_extra": {**KEY, **body_of(ChatRequest)},
}
SEARCH: dict[str, Any] = {
    "name": "search",
    "summary": "Search without a language model",
    "description": "Returns the passages for a query, with the scores of both searches.",
    "tags": ["Search"],
    "responses": {200: returned(SearchResult, "The passages, best first."), **FAILURES},
    "openapi_extra": {**KEY, **body_of(SearchRequest)},
}
SEARCH_GET: dict[str, Any] = {
    "name": "search_get",
    "summary": "Search by an address",
    "description": "The same search for browsers and curl. Only `q` is needed.",
    "tags": ["Search"],
    "responses": SEARCH["responses"],
    "openapi_extra": {
        **KEY,
        "parameters": [
            _parameter("q", "The query.", required=True),
            _parameter("limit", "Number of passages.", type="integer", minimum=1, maximum=50),
            _parameter("collection", "Only pages of this collection; may be repeated."),
            _parameter("language", "Only pages in this language; may be repeated."),
            _parameter("model", "Assistant whose pages are searched."),
            _parameter("page", "Address of the page that the reader looks at."),
            _parameter("as_you_type", "The last word may be incomplete.", type="boolean"),
        ],
    },
}
INTERFACE: dict[str, Any] = {
    "name": "interface",
    "summary": "What a page shows before the first question",
    "tags": ["Interface"],
    "responses": {200: returned(InterfaceBody, "Assistants, first questions and the index."), **ERRORS},
    "openapi_extra": KEY,
}
PASSAGE: dict[str, Any] = {
    "name": "passage",
    "summary": "The passage of a source with its neighbours",
    "tags": ["Interface"],
    "responses": {
        200: returned(PassageInPage, "The passage."),
        **ERRORS,
        404: refusal("There is no such passage, or the assistant may not use it."),
    },
    "openapi_extra": KEY,
}
MODELS: dict[str, Any] = {
    "name": "models",
    "summary": "List the assistants",
    "tags": ["OpenAI API"],
    "responses": {200: returned(ModelList, "The assistants."), **ERRORS},
    "openapi_extra": KEY,
}
MODEL: dict[str, Any] = {
    "name": "model",
    "summary": "One assistant",
    "tags": ["OpenAI API"],
    "responses": {
        200: returned(ModelObject, "The assistant."),
        **ERRORS,
        404: refusal("There is no such model."),
    },
    "openapi_extra": KEY,
}
HEALTH: dict[str, Any] = {
    "name": "health",
    "summary": "Check the health of the service",
    "tags": ["Operation"],
    "responses": {
        200: returned(HealthBody, "The service can answer questions."),
        503: returned(HealthBody, "It can't: nothing is indexed yet, or the store can't be reached."),
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
    "responses": {200: returned(LiveBody, "The process answers.")},
}
READY: dict[str, Any] = {
    "name": "health_ready",
    "summary": "Check that the service may get questions",
    "description": "For a load balancer: a failing model doesn't matter, because answers are extractive then.",
    "tags": ["Operation"],
    "responses": {
        200: returned(ReadyBody, "The store is reachable, and the index can be searched."),
        503: returned(ReadyBody, "It can't, or it is older than DOCS_MAX_INDEX_AGE."),
    },
}
ADMIN: dict[str, Any] = {"security": [{"adminKey": []}]}
ADMIN_ERRORS: dict[int | str, dict[str, Any]] = {
    **ERRORS,
    401: refusal("The admin key is missing or invalid."),
    403: refusal("No admin key is configured."),
}
INGEST: dict[str, Any] = {
    "name": "ingest",
    "summary": "Index the configured or indexed sites again",
    "description": "Starts a run in a separate process, one at a time. Call it after each deployment of the documentation.",
    "tags": ["Operation"],
    "status_code": 202,
    "responses": {
        202: returned(IngestRun, "The run is queued; `Location` is its address."),
        400: refusal("The site is neither configured nor in the index, or no site is."),
        **ADMIN_ERRORS,
        409: refusal("Another run is in progress; the message says which, since when and by whom."),
    },
    "openapi_extra": {
        **ADMIN,
        **body_of(IngestRequest, required=False),
    },
}
RUNS: dict[str, Any] = {
    "name": "ingest_runs",
    "summary": "The last runs, newest first",
    "tags": ["Operation"],
    "responses": {200: returned(IngestRunList, "Since the service was started."), **ADMIN_ERRORS},
    "openapi_extra": ADMIN,
}
RUN: dict[str, Any] = {
    "name": "ingest_run",
    "summary": "One run with its report",
    "tags": ["Operation"],
    "responses": {
        200: returned(IngestRun, "The current state of the run."),
        **ADMIN_ERRORS,
        404: refusal("There is no such run."),
    },
    "openapi_extra": ADMIN,
}
ROLLBACK_BODY, QUESTION_BODY = body_of(RollbackRequest), body_of(QuestionRequest)
CANCEL: dict[str, Any] = {
    "name": "ingest_cancel",
    "summary": "Stop a run",
    "description": "The run ends soon as failed; the index stays as it is.",
    "tags": ["Operation"],
    "status_code": 202,
    "responses": {
        202: returned(IngestRun, "The run is told to stop."),
        **ADMIN_ERRORS,
        404: refusal("There is no such run."),
        409: refusal("The run is over."),
    },
    "openapi_extra": ADMIN,
}


def add_to(app: FastAPI, check_key: Callable[[Request], object]) -> None:
    """Add /openapi.json and /api-docs, both of which require an API key if keys are configured (`check_key`)."""
    describe = app.openapi

    def openapi() -> dict[str, Any]:
        if not app.openapi_schema:
            components = describe().setdefault("components", {})
            components.setdefault("schemas", {}).update(_schemas())
            components["securitySchemes"] = {
                "key": {"type": "http", "scheme": "bearer"},
                "adminKey": {"type": "http", "scheme": "bearer", "description": "An admin key."},
            }
        return describe()

    async def description(request: Request) -> Response:
        check_key(request)
        # without it, Swagger UI sends its requests to the root of the host
        return JsonResponse({**app.openapi(), "servers": [{"url": f"{request.scope.get('root_path', '')}/"}]})

    async def page(request: Request) -> Response:
        check_key(request)
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
    """The schemas of all bodies: FastAPI knows none of them."""
    _, schema = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter(model)) for mode, models in _models.items() for name, model in models.items()],
        ref_template="#/components/schemas/{model}",
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions

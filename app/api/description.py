"""The OpenAPI schema at /openapi.json, and Swagger UI at /api-docs, served without external files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
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
    SearchRequest,
)

_models: dict[JsonSchemaMode, dict[str, type[Any]]] = {"validation": {}, "serialization": {}}


def json_of(body: type[Any]) -> dict[str, Any]:
    """The JSON body of a response of a route that FastAPI doesn't describe: an error, or one of several forms."""
    _models["serialization"][body.__name__] = body
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}


Responses = dict[int | str, dict[str, Any]]


def refusals(descriptions: Mapping[int | str, str]) -> Responses:
    """The errors of a route by their status. By reference, since FastAPI would build a validator for each of each route."""
    return {status: {"description": said, "content": json_of(ErrorBody)} for status, said in descriptions.items()}


KEY: dict[str, Any] = {"security": [{"key": []}, {}]}
ADMIN: dict[str, Any] = {"security": [{"adminKey": []}]}
ERRORS = refusals(
    {
        401: "The API key is missing or invalid.",
        "default": "Any other error, in the form of the OpenAI API.",
    }
)
ADMIN_ERRORS = ERRORS | refusals(
    {401: "The admin key is missing or invalid.", 403: "No admin key is configured."},
)
FAILURES = ERRORS | refusals(
    {
        400: "The request is invalid; `param` names the field.",
        404: "There is no such model.",
        413: "The request or the question is too long.",
        502: "The language model or the index failed.",
        503: "Nothing is indexed yet, or the index can't be reached.",
    }
)
ANSWER_FAILURES = FAILURES | refusals(
    {429: "The language model is overloaded; see Retry-After.", 504: "The language model took too long."}
)


def described(  # noqa: PLR0913  # as many as a route has properties
    summary: str,
    body: type[Any] | None = None,
    failures: Responses = ERRORS,
    *,
    name: str | None = None,
    tag: str = "Operation",
    access: Mapping[str, Any] = KEY,
    status: int = 200,
    description: str | None = None,
    **extra: Any,
) -> dict[str, Any]:
    """The arguments of `FastAPI.add_api_route` that describe a route whose response is this JSON.

    `extra` is added to its operation in OpenAPI. The routes return responses, which FastAPI sends as they are.
    """
    said = (body.__doc__ or "").split("\n")[0] if body else ""
    return {
        "name": name, "summary": summary, "description": description, "tags": [tag], "status_code": status, "response_model": body,
        "response_description": said or f"{summary}.", "responses": failures, "openapi_extra": {**access, **extra},
    }  # fmt: skip


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


def _unavailable(body: type[Any], description: str) -> Responses:
    return {503: {"description": description, "content": json_of(body)}}


def _parameter(name: str, description: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {
        "name": name, "in": "query", "required": required, "description": description,
        "schema": {"type": "string"} | schema,
    }  # fmt: skip


CHAT = described(
    "Ask a question",
    failures=ANSWER_FAILURES
    | {
        200: {
            "description": "The answer, or with `stream` server-sent events.",
            "content": {**json_of(ChatCompletion), **stream_of(ChatCompletionChunk, "[DONE]")},
        }
    },
    name="chat",
    tag="OpenAI API",
    description="Answers the last message of the user from the indexed pages, in the language of the message.",
    **body_of(ChatRequest),
)
SEARCH = described(
    "Search without a language model",
    SearchResult,
    FAILURES,
    name="search",
    tag="Search",
    description="Returns the passages for a query, with the scores of both searches.",
    **body_of(SearchRequest),
)
SEARCH_GET = described(
    "Search by an address",
    SearchResult,
    FAILURES,
    name="search_get",
    tag="Search",
    description="The same search for browsers and curl. Only `q` is needed.",
    parameters=[
        _parameter("q", "The query.", required=True),
        _parameter("limit", "Number of passages.", type="integer", minimum=1, maximum=50),
        _parameter("collection", "Only pages of this collection; may be repeated."),
        _parameter("language", "Only pages in this language; may be repeated."),
        _parameter("model", "Assistant whose pages are searched."),
        _parameter("page", "Address of the page that the reader looks at."),
        _parameter("as_you_type", "The last word may be incomplete.", type="boolean"),
    ],
)
INTERFACE = described(
    "Read what a page shows before the first question", InterfaceBody, name="interface", tag="Interface"
)
PASSAGE = described(
    "Read the passage of a source with its neighbours",
    PassageInPage,
    ERRORS | refusals({404: "There is no such passage, or the assistant may not use it."}),
    name="passage",
    tag="Interface",
)
MODELS = described("List the assistants", ModelList, name="models", tag="OpenAI API")
MODEL = described(
    "Read one assistant",
    ModelObject,
    ERRORS | refusals({404: "There is no such model."}),
    name="model",
    tag="OpenAI API",
)
HEALTH = described(
    "Check the health of the service",
    HealthBody,
    _unavailable(HealthBody, "It can't: nothing is indexed yet, or the store can't be reached."),
    name="health",
    access={},
)
LIVE = described(
    "Check that the process answers",
    LiveBody,
    {},
    name="health_live",
    access={},
    description="For a supervisor that restarts the service: a missing index or a failing model doesn't matter.",
)
READY = described(
    "Check that the service may get questions",
    ReadyBody,
    _unavailable(ReadyBody, "It may not, or the index is older than DOCS_MAX_INDEX_AGE."),
    name="health_ready",
    access={},
    description="For a load balancer: a failing model doesn't matter, because answers are extractive then.",
)
METRICS = described(
    "Read the metrics",
    name="metrics",
    access={"security": [{"adminKey": []}, {"key": []}, {}]},
    description="Counters, histograms and gauges for Prometheus. Needs an admin key where one is configured, else an API key.",
) | {"response_class": PlainTextResponse}
_NO_RUN = ADMIN_ERRORS | refusals({404: "There is no such run."})
INGEST = described(
    "Index the configured or indexed sites again",
    IngestRun,
    ADMIN_ERRORS
    | refusals(
        {
            400: "The site is neither configured nor in the index, or no site is.",
            409: "Another run is in progress; the message says which, since when and by whom.",
        }
    ),
    name="ingest",
    access=ADMIN,
    status=202,
    description="Starts a run in a separate process, one at a time. Call it after each deployment of the documentation.",
    **body_of(IngestRequest, required=False),
)
RUNS = described("List the last runs, newest first", IngestRunList, ADMIN_ERRORS, name="ingest_runs", access=ADMIN)
RUN = described("Read one run with its report", IngestRun, _NO_RUN, name="ingest_run", access=ADMIN)
CANCEL = described(
    "Stop a run",
    IngestRun,
    _NO_RUN | refusals({409: "The run is over."}),
    name="ingest_cancel",
    access=ADMIN,
    status=202,
    description="The run ends soon as failed; the index stays as it is.",
)


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
    """The schemas of the bodies that FastAPI doesn't know: of requests, errors and streams."""
    _, schema = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter(model)) for mode, models in _models.items() for name, model in models.items()],
        ref_template="#/components/schemas/{model}",
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions

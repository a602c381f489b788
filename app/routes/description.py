"""The OpenAPI schema at /openapi.json, and Swagger UI at /api-docs, served without external files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI
from fastapi.openapi.docs import get_swagger_ui_html
from pydantic import TypeAdapter
from pydantic.json_schema import JsonSchemaMode
from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles

from app.http.bodies import JsonResponse
from app.http.errors import ErrorBody

_models: dict[JsonSchemaMode, dict[str, type[Any]]] = {"validation": {}, "serialization": {}}


def json_of(body: type[Any]) -> dict[str, Any]:
    """The JSON body of a response of a route that FastAPI doesn't describe: an error, or one of several forms."""
    _models["serialization"][body.__name__] = body
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{body.__name__}"}}}


Responses = dict[int | str, dict[str, Any]]


def refusals(descriptions: Mapping[Any, str]) -> Responses:
    """The errors of a route by their status. By reference, since FastAPI would build a validator for each of each route."""
    return {status: {"description": said, "content": json_of(ErrorBody)} for status, said in descriptions.items()}


KEY: dict[str, Any] = {"security": [{"key": []}, {}]}
ADMIN: dict[str, Any] = {"security": [{"adminKey": []}]}
ERRORS = refusals({
    401: "The API key is missing or invalid.", "default": "Any other error, in the form of the OpenAI API.",
})  # fmt: skip
ADMIN_ERRORS = ERRORS | refusals({401: "The admin key is missing or invalid.", 403: "No admin key is configured."})
OPERATOR_FAILURES = ADMIN_ERRORS | refusals({
    400: "The request is invalid; `param` names the field.", 404: "There is no such thing.", 502: "The index failed.",
    503: "Nothing is indexed yet, or the index can't be reached.",
})  # fmt: skip
FAILURES = ERRORS | refusals({
    400: "The request is invalid; `param` names the field.", 404: "There is no such model.",
    413: "The request or the question is too long.", 502: "The language model or the index failed.",
    503: "Nothing is indexed yet, or the index can't be reached.",
})  # fmt: skip
ANSWER_FAILURES = FAILURES | refusals({
    429: "The language model is overloaded; see Retry-After.", 504: "The language model took too long.",
})  # fmt: skip


def body_of(model: type[Any], *, required: bool = True) -> dict[str, Any]:
    """The description of a JSON body of a request."""
    _models["validation"][model.__name__] = model
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": required, "content": {"application/json": {"schema": schema}}}}


def answers(whole: type[Any], event: type[Any], said: str, *ends: str) -> Responses:
    """The response of a route that answers as a `whole`, or with server-sent events that have this `event` as JSON; `ends` are
    other possible values of their data.
    """
    content = json_of(event)["application/json"]["schema"]
    data: dict[str, Any] = {"type": "string", "contentMediaType": "application/json", "contentSchema": content}
    data = {"anyOf": [data, *({"const": end} for end in ends)]} if ends else data
    schema = {"type": "object", "properties": {"event": {"type": "string"}, "data": data}, "required": ["data"]}
    return {200: {"description": said, "content": {**json_of(whole), "text/event-stream": {"schema": schema}}}}


def router(app: FastAPI, check_key: Callable[[Request], object]) -> APIRouter:
    """/openapi.json and /api-docs, both of which require an API key if keys are configured (`check_key`)."""
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

    app.openapi = openapi  # type: ignore[method-assign]  # FastAPI's documented way to extend it
    made = APIRouter(include_in_schema=False)

    @made.api_route("/openapi.json", methods=["GET", "HEAD"])
    async def description(request: Request) -> Response:
        check_key(request)
        # without it, Swagger UI sends its requests to the root of the host
        return JsonResponse({**app.openapi(), "servers": [{"url": f"{request.scope.get('root_path', '')}/"}]})

    @made.api_route("/api-docs", methods=["GET", "HEAD"])
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

    made.mount("/api-docs/files", StaticFiles(directory=str(files("fastapi_swagger") / "resources")))
    return made


def _schemas() -> dict[str, Any]:
    """The schemas of the bodies that FastAPI doesn't know: of requests, errors and streams."""
    _, schema = TypeAdapter.json_schemas(
        [(name, mode, TypeAdapter(model)) for mode, models in _models.items() for name, model in models.items()],
        ref_template="#/components/schemas/{model}",
    )
    definitions: dict[str, Any] = schema["$defs"]
    return definitions

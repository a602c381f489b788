"""The types of what the API answers on /admin, as TypeScript: `make frontend` writes them to frontend/api.ts from /openapi.json."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from app.core.settings import Settings
from app.routes.server import create_app
from tests.app.routes.scripted import ScriptedAssistants

FILE = Path(__file__).parents[1] / "frontend/api.ts"
HEAD = "/** What the API answers, as /openapi.json describes it. Written by `make frontend`: change the models of `app/routes`. */\n"
PATHS = (
    "/v1/admin/",
    "/v1/ingest",
    "/v1/interface",
    "/v1/passages/",
    "/v1/search",
    "/v1/shared/",
    "/v1/answers/{id}/link",
)
NAMES = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}


def types() -> str:
    """The file: each model that one of the `PATHS` answers with, the pieces of answers and traces, with all models in them."""
    app = create_app(ScriptedAssistants(()), Settings.load(None), ingest_command=["ingest"])
    api = app.openapi()
    models: Mapping[str, Any] = api["components"]["schemas"]
    answers = [
        operation["responses"][status]
        for path, operations in api["paths"].items()
        if path.startswith(PATHS)
        for operation in operations.values()
        for status in operation["responses"]
        if status.startswith("2")
    ]
    wanted, waiting = set[str](), ["ChatCompletionChunk", "Trace", *_names_in(answers)]
    while waiting:
        name = waiting.pop()
        if name not in wanted:
            wanted.add(name)
            waiting += _names_in(models[name])
    return "\n".join([HEAD, *(_interface(name, models[name]) for name in sorted(wanted))])


def _names_in(schema: Any) -> Iterator[str]:
    """The names of the models that a part of the description refers to."""
    if isinstance(schema, list):
        for item in schema:
            yield from _names_in(item)
    elif isinstance(schema, Mapping):
        if "$ref" in schema:
            yield schema["$ref"].rpartition("/")[2]
        for item in schema.values():
            yield from _names_in(item)


def _interface(name: str, model: Mapping[str, Any]) -> str:
    required = set(model.get("required", ()))
    lines = [
        f"  {field}{'' if field in required or 'default' in schema else '?'}: {_type(schema)};"
        for field, schema in sorted(model["properties"].items())  # their order in Python is no type
    ]
    return "\n".join([f"export interface {name} {{", *lines, "}", ""])


def _type(schema: dict[str, Any]) -> str:
    match schema | ({"enum": [schema["const"]]} if "const" in schema else {}):
        case {"$ref": str(place)}:
            return place.rpartition("/")[2]
        case {"anyOf": list(kinds)}:
            return " | ".join(map(_type, kinds))
        case {"enum": list(values)}:
            return " | ".join(map(json.dumps, values))
        case {"type": "array"}:
            items = _type(schema.get("items", {}))
            return f"({items})[]" if " | " in items else f"{items}[]"
        case {"type": "object"}:
            values = schema.get("additionalProperties")
            return f"Record<string, {_type(values) if isinstance(values, dict) else 'unknown'}>"
    return NAMES.get(schema.get("type", ""), "unknown")


if __name__ == "__main__":
    FILE.write_text(types(), "utf-8")

"""OpenAPI documents as sources: real ones, and those that are made to do harm. `files/petstore.yaml` is Swagger's own."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.types import Page
from app.routes.server import create_app
from ingestion.convert import ConversionError, SourceText, convert
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest
from ingestion.sources import RENDERERS, Source
from ingestion.split import Splitter
from tests.app.routes.scripted import client_of
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import LocalSite

FILES = Path(__file__).parents[2] / "ingestion/files"
PETSTORE = (FILES / "petstore.yaml").read_text("utf-8")
URL = "https://api.example.org/openapi.yaml"


def markdown(document: str | dict[str, Any], anchors: str = "auto") -> str:
    text = document if isinstance(document, str) else json.dumps(document)
    return convert(SourceText(URL, text, "application/yaml", anchors=anchors)).markdown


def test_petstore_is_the_markdown_beside_it() -> None:
    """Each operation with its parameters, bodies and responses, as a person reads it."""
    assert markdown(PETSTORE, "swagger") == (FILES / "petstore.md").read_text("utf-8")


def test_links_to_operations_are_those_of_the_renderer() -> None:
    """Swagger UI, Redoc, Scalar or a pattern; ids that a document lacks are made as the renderer makes them."""
    paths = {"/a b/{id}": {"delete": {"tags": ["My pets"], "operationId": "del"}, "get": {}}}
    document = {"openapi": "3.0.0", "info": {"title": "T"}, "paths": paths}
    found = {
        form: re.findall(r"\{#(\S+)\}", markdown(document, form)) for form in (*RENDERERS, "x-{operation}-{METHOD}")
    }
    assert found == {
        "swagger": ["/default/get_a_b__id_", "/My%20pets/del"],
        "redoc": ["paths/~1a%20b~1%7Bid%7D/get", "tag/My-pets/operation/del"],
        "scalar": ["GET/a%20b/%7Bid%7D", "tag/my-pets/DELETE/a%20b/%7Bid%7D"],
        "x-{operation}-{METHOD}": ["x--GET", "x-del-DELETE"],
    }
    assert "{#" not in markdown(document)


SCHEMAS = {
    "Node": {"type": "object", "properties": {"next": {"$ref": "#/components/schemas/Node"}, "value": {"type": "integer"}}},
    "Cat": {"allOf": [{"$ref": "#/components/schemas/Animal"}, {"properties": {"lives": {"type": "integer", "maximum": 9}}}]},
    "Animal": {"required": ["name"], "properties": {"name": {"type": ["string", "null"], "description": "As *called*."}}},
    "Dog": {"properties": {"tricks": {"type": "array", "items": {"type": "string", "enum": ["sit", "roll"]}}}},
    "Unused": {"type": "object", "properties": {"alone": {"type": "boolean", "default": False}}},
}  # fmt: skip


def test_schemas_are_resolved_and_each_is_written_somewhere() -> None:
    """Cycles are cut, `allOf` is one list, alternatives are named, unused ones have sections, foreign ones only a name."""
    body = {"oneOf": [{"$ref": "#/components/schemas/Cat"}, {"$ref": "#/components/schemas/Dog"}]}
    operation = {
        "summary": "Make a pet",
        "description": "## Not a section\n\nSee [help](help.html).",
        "parameters": [{"$ref": "#/components/parameters/dry"}],
        "requestBody": {"content": {"application/json": {"schema": body, "example": {"name": "Tom"}}}},
        "responses": {
            200: {"description": "Done", "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Node"}}}},
            "4XX": {"description": "No", "content": {"text/plain": {"schema": {"$ref": "other.yaml#/Error"}}}},
        },
        "security": [{}, {"key": []}],
        "deprecated": True,
    }  # fmt: skip
    dry = {"name": "dry", "in": "query", "schema": {"type": "boolean"}, "description": "Try only."}
    made = markdown(
        {
            "openapi": "3.1.0",
            "info": {"title": "Pets", "version": "1.10"},
            "paths": {"/pets": {"post": operation}},
            "components": {"schemas": SCHEMAS, "parameters": {"dry": dry}},
        }
    )
    assert made == (FILES / "schemas.md").read_text("utf-8")


def test_swagger_2_has_the_same_form() -> None:
    """Bodies among the parameters, types beside their names, definitions, host and base path."""
    body = {"in": "body", "name": "pet", "required": True, "schema": {"$ref": "#/definitions/Pet"}}
    size = {"in": "query", "name": "size", "type": "integer", "format": "int32", "default": 10, "description": "Rows."}
    operation = {"summary": "Add", "parameters": [body, size], "responses": {"200": {"schema": {"$ref": "#/definitions/Pet"}}}}  # fmt: skip
    document = {
        "swagger": "2.0", "info": {"title": "T", "version": 1}, "host": "api.example.org", "basePath": "/v1",
        "paths": {"/pets": {"put": operation}}, "definitions": {"Pet": {"properties": {"id": {"type": "integer"}}}},
    }  # fmt: skip
    made = markdown(document)
    assert "- `https://api.example.org/v1`" in made
    assert "- `size` (query, integer int32) - Rows. Default: `10`." in made
    assert "**Request body** (required)\n\n- `application/json`: Pet\n  - `id` (integer)" in made
    assert "- `200`\n  - `application/json`: Pet\n" in made


BOMB = "openapi: 3.0.0\nx-0: &a0 [x, x]\n" + "".join(f"x-{n}: &a{n} [{f'*a{n - 1}, ' * 9}]\n" for n in range(1, 12))
MERGES = "openapi: 3.0.0\nx-0: &a0 {k: 1}\n" + "".join(
    f"x-{n}: &a{n}\n  <<: [*a{n - 1}, *a{n - 1}, *a{n - 1}]\n" for n in range(1, 30)
)


def test_hostile_documents_are_bounded() -> None:
    """Bombs of aliases and merges, values that hold themselves, 10,000 operations, depth, and nonsense."""
    get = "paths:\n  /a:\n    get:\n      responses: {'200': {description: ok, content: {a/b: {schema: *a11, example: *a11}}}}\n"
    assert len(markdown(BOMB + get)) < 1_000
    circle = "paths:\n  /a:\n    get: &g\n      requestBody: {content: {a/b: {schema: &s {properties: {again: *s}}}}}\n"
    assert len(markdown("openapi: 3.0.0\n" + circle)) < 5_000
    wide = {f"p{n}": {"$ref": "#/components/schemas/S"} for n in range(300)}
    tree = {"openapi": "3.0.0", "paths": {"/a": {"get": {"responses": {"200": {"content": {"a/b": {"schema": {
        "properties": wide}}}}}}}}, "components": {"schemas": {"S": {"items": {"properties": wide}}}}}  # fmt: skip
    assert len(markdown(tree)) < 100_000
    many = {"openapi": "3.0.0", "paths": {f"/{n}": {"get": {}} for n in range(10_000)}}
    deep = "openapi: 3.0.0\npaths: " + "[" * 100_000
    refused = {MERGES: "merges", json.dumps(many): "10,000 operations", deep: "levels",
               "openapi: 3.0.0\n": "without operations", "openapi: 3.0.0\npaths: {a: [": "isn't readable",
               '{"openapi": "3.0.0",': "isn't readable"}  # fmt: skip
    for text, reason in refused.items():
        with pytest.raises(ConversionError, match=reason):
            markdown(text)
    nonsense = {"openapi": "3.0.0", "info": [], "tags": 5, "servers": {}, "paths": {"/a": {"get": {
        "tags": [None, {}], "parameters": [1, {"$ref": 3}, {"$ref": "#/paths/0/9"}], "responses": [], "security": "x",
        "requestBody": {"content": {"a/b": {"schema": {"allOf": 1, "properties": [], "enum": "x", "type": {}}}}}}}}}  # fmt: skip
    assert "`GET /a`" in markdown(nonsense)


def test_only_documents_that_say_so_are_read_as_openapi() -> None:
    """A tutorial that shows one stays Markdown, other JSON is no page."""
    tutorial = "# Write a document\n\nBegin with:\n\n```yaml\nopenapi: 3.0.0\npaths: {}\n```\n"
    for kind in ("text/markdown", "text/plain"):
        assert convert(SourceText("https://docs.example.org/a.md", tutorial, kind)).markdown == tutorial
    with pytest.raises(ConversionError, match="no converter reads that"):
        convert(SourceText("https://docs.example.org/package.json", '{"name": "x"}', "application/json"))


def test_no_chunk_holds_parameters_without_their_operation() -> None:
    """Each chunk of an operation, however small, has the operation in its heading path."""
    made = convert(SourceText(URL, PETSTORE, "application/yaml", anchors="swagger"))
    chunks = Splitter(size=300).split(Page(URL, "docs", made.title, "en", made.markdown, ""))
    assert len(chunks) > 50
    for chunk in chunks:
        for found in re.finditer(r"(?m)^- `\w+` \((?:path|query|header),", chunk.text):
            section = [one for one in chunk.sections if one.offset <= found.start()][-1]
            assert re.match(r"[A-Z]+ /", section.path[-1]), chunk.text
            assert section.anchor.startswith("/")


QUESTIONS = {
    "how do I delete a pet": "DELETE /pet/{petId}",
    "How do I add a new pet to the store?": "POST /pet",
    "find pets by status": "GET /pet/findByStatus",
    "upload a photo of a pet": "POST /pet/{petId}/uploadImage",
    "How do I place an order?": "POST /store/order",
    "cancel an order": "DELETE /store/order/{orderId}",
    "How do I log in?": "GET /user/login",
    "createUsersWithListInput": "POST /user/createWithList",
    "Which parameter filters pets by tags?": "GET /pet/findByTags",
    "rename a pet with form data": "POST /pet/{petId}",
}


@pytest.mark.slow
async def test_a_question_finds_its_operation_first(site: LocalSite, tmp_path: Path) -> None:
    """Without any model, in at least 8 of 10 questions."""
    site.put("/openapi.yaml", PETSTORE, "application/yaml")
    settings = Settings.load(None, store=str(tmp_path / "index"))
    source = Source(url=f"{site.url}/docs/", openapi=f"{site.url}/openapi.yaml", anchors="swagger")
    async with opened(settings) as assistants, Fetcher(settings) as fetcher:
        await ingest([source], store=assistants.store, embedder=assistants.embedder, settings=settings, fetcher=fetcher)
        async with client_of(create_app(assistants, settings)) as client:
            first = {
                asked: (await client.post("/v1/search", json={"query": asked})).json()["data"][0]["section"]
                for asked in QUESTIONS
            }
    right = [asked for asked, wanted in QUESTIONS.items() if first[asked].startswith(f"{wanted} ")]
    assert len(right) >= 8, first


async def test_a_document_is_a_page_over_http_and_from_a_directory(
    site: LocalSite, index: Index, tmp_path: Path
) -> None:
    """Links lead to the page that shows it; an unchanged one isn't read again; other JSON of a directory is no page."""
    site.put("/v3/api-docs", PETSTORE, "application/vnd.oai.openapi;version=3.0")
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "api.yml").write_text(PETSTORE.replace("pet", "cat"), "utf-8")
    (docs / "package.json").write_text('{"name": "x"}', "utf-8")
    sources = (
        Source(url=f"{site.url}/docs/", openapi=f"{site.url}/v3/api-docs", anchors="swagger"),
        Source(url=f"{site.url}/own/", directory=str(docs), anchors="redoc"),
    )
    report = await index.run(*sources)
    assert outcomes(report) == {"/docs/": "new", "/own/api": "new"}
    live = await index.store.live()
    pages = await index.pages()
    chunks = await live.fetch(pages["/docs/"].derived.chunk_ids)
    anchors = {section.anchor for chunk in chunks for section in chunk.sections}
    assert "/pet/deletePet" in anchors
    assert "tag/cat/operation/deletePet" in (await live.page(f"{site.url}/own/api")).markdown  # type: ignore[union-attr]
    assert pages["/docs/"].versions
    again = await index.run(*sources)
    assert set(outcomes(again).values()) == {"unchanged"}
    assert site.statuses("/v3/api-docs") == [200, 304]
    site.page("/v3/api-docs", "Log in", "With your name.")
    assert {page.reason for page in (await index.run(*sources)).pages} == {"", "is text/html, not JSON or YAML"}

"""Models, health, keys, the description of the API, and the end of the service."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import TypeAdapter

from app.core.settings import Settings
from app.core.turn import Done, Text
from app.http.errors import ErrorBody
from app.routes import answer_models as answers
from app.routes.server import create_app
from tests.app.routes.scripted import CHAT, INFO, TABLE, Scripted, ScriptedAssistants, State, chat, client_of, refused

QUESTION = chat()


def service(settings=None, state=None, **fields):
    assistants = ScriptedAssistants(
        (Scripted(**fields), Scripted(id="team/two:brief", table=TABLE.model_copy(update={"names": {}}))),
        state or State(),
    )
    return create_app(assistants, settings or Settings.load(None), ingest_command=("false",))


async def get(app, path, **options):
    async with client_of(app) as client:
        return await client.get(path, **options)


async def test_models_are_listed_with_their_friendly_names():
    body = (await get(service(), "/v1/models")).json()
    for model in body["data"]:
        assert model.pop("info")["meta"]["description"] == model["description"]
    both = {"object": "model", "created": 1_700_000_000, "owned_by": "docs-assistant", "description": "Answers."}
    named = (("docs-assistant", "Docs Assistant"), ("team/two:brief", "team/two:brief"))
    assert body == {"object": "list", "data": [{"id": id_, "name": name, **both} for id_, name in named]}


async def test_the_friendly_name_is_in_the_default_language():
    response = await get(service(Settings.load(None, default_language="cs")), "/v1/models/docs-assistant")
    assert response.json()["name"] == "Asistent"


async def test_one_model_is_found_by_its_id_and_an_unknown_one_is_a_404():
    for path in ("team/two:brief", "team%2Ftwo%3Abrief"):
        assert (await get(service(), f"/v1/models/{path}")).json()["id"] == "team/two:brief"
    response = await get(service(), "/v1/models/gpt-4o")
    assert refused(response) == (404, "model_not_found")


async def test_health_reports_what_is_indexed():
    hour_ago = (datetime.now(UTC) - timedelta(hours=1)).isoformat()
    response = await get(service(state=State(index=replace(INFO, built_at=hour_ago))), "/health")
    body = response.json()
    assert response.status_code == 200
    assert 3600 <= body["index"].pop("age_seconds") < 3660
    index = body.pop("index")
    assert (index.pop("languages"), index.pop("embedder")) == (["cs", "en"], "static-1")
    assert index == {"generation": 3, "built_at": hour_ago, "pages": 12, "chunks": 345}
    parts = {"store": "ok", "model": "m-1", "embedder": "static-1", "parts": {}, "details": {}}
    assert body == {"status": "ok", **parts}


async def test_health_is_503_when_nothing_can_be_answered_and_tells_strangers_no_addresses():
    state = State(ok=False, store="http://10.0.0.1 is away", index=None, details={"a": "10.0.0.1"})
    app = service(Settings.load(None, api_keys="first-key-of-tests"), state)
    for path in ("/health", "/health/ready"):
        stranger = await get(app, path)
        assert (stranger.status_code, stranger.json()) == (503, {"status": "unavailable"})
    known = await get(app, "/health", headers={"authorization": "Bearer first-key-of-tests"})
    assert known.status_code == 503
    assert (known.json()["store"], known.json()["index"]) == ("http://10.0.0.1 is away", None)
    assert (await get(app, "/health/live")).json() == {"status": "ok"}


async def test_without_a_right_key_nothing_is_answered_and_each_key_opens():
    settings = Settings.load(None, api_keys="first-key-of-tests, klíč-třetího-čtenáře")
    async with client_of(service(settings)) as client:

        async def answers(shown):
            headers = {"authorization": shown.encode()} if shown else {}
            asked = ((CHAT, QUESTION), ("/v1/responses", {"input": "x"}), ("/v1/search", {"query": "x"}), ("/mcp", {}))
            for path, body in asked:
                yield await client.post(path, json=body, headers=headers)
            for path in ("/v1/models", "/v1/models/docs-assistant", "/api-docs", "/openapi.json"):
                yield await client.get(path, headers=headers)

        async for response in answers(None):
            assert refused(response) == (401, "invalid_api_key")
            assert response.headers["www-authenticate"] == "Bearer"
        for key in ("first-key-of-tests", "klíč-třetího-čtenáře"):
            headers = {"authorization": f"Bearer {key}".encode()}
            assert (await client.post(CHAT, json=QUESTION, headers=headers)).status_code == 200
        for path in ("/health", "/docs/en/start"):
            assert (await client.get(path)).status_code == 200
    near = ("Basic first-key-of-tests", "first-key-of-tests", "Bearer first-key-of-testsx")
    for shown in ("Bearer wrong", "Bearer ", "Bearer čau", *near):
        async with client_of(service(settings)) as client:
            async for response in answers(shown):
                assert response.status_code == 401, shown


@pytest.mark.plugins
async def test_the_description_knows_every_route_and_never_says_422():
    schema = (await get(service(), "/openapi.json")).json()
    paths = {CHAT, "/v1/models", "/v1/models/{id}", "/v1/ingest", "/v1/ingest/{id}"}
    paths |= {"/v1/responses", "/v1/search", "/health", "/health/live", "/health/ready", "/metrics"}
    paths |= {"/v1/interface", "/v1/passages/{id}", "/v1/ingest/{id}/cancel"}
    admin = {"index", "generations", "rollback", "pages", "page", "chunks/{id}", "chunks/{id}/neighbours", "settings"}
    admin |= {"runs", "question-log", "question-log/days", "question-log/{id}"}
    admin |= {"curated", "curated/try", "sites", "sites/preview", "sites/pause", "sites/remove"}
    admin |= {"keys", "keys/limits", "keys/revoke", "verdicts", "verdicts/{id}", "quality"}
    paths |= {
        f"/v1/admin/{path}"
        for path in admin | {"errors", "prompts", "gaps", "synonyms", "questions", "views", "feedback"}
    }
    talk = "/v1/conversations/{id}"
    paths |= {"/v1/conversations", talk, f"{talk}/answers", f"{talk}/reset", "/v1/responses/{id}"}
    paths |= {"/v1/answers/{id}/feedback", "/v1/answers/{id}/link", "/v1/shared/{token}"}
    assert set(schema["paths"]) == paths
    assert set(schema["paths"]["/v1/ingest"]) == {"get", "post"}
    assert "422" not in str(schema["paths"])
    assert "HTTPValidationError" not in schema["components"]["schemas"]


def references(node):
    if isinstance(node, dict):
        yield from ([node["$ref"]] if "$ref" in node else [])
        node = list(node.values())
    for child in node if isinstance(node, list) else ():
        yield from references(child)


async def test_the_description_refers_only_to_what_it_has():
    schema = (await get(service(), "/openapi.json")).json()
    found = set(references(schema))
    assert {"#/components/schemas/ChatRequest", "#/components/schemas/IngestRequest"} <= found
    for reference in found:
        assert reference.removeprefix("#/components/schemas/") in schema["components"]["schemas"]


async def test_answers_are_as_described():
    app = service(script=(Text("a"), Done(extractive=True)))
    unhealthy = service(state=State(ok=False, store="away", index=None))
    async with client_of(app) as client:
        whole = await client.post(CHAT, json=QUESTION)
        stream = await client.post(CHAT, json=chat(stream=True, stream_options={"include_usage": True}))
        described = [
            (answers.ChatCompletion, whole.content),
            (ErrorBody, (await client.get("/nothing")).content),
            (ErrorBody, (await client.post(CHAT, json={})).content),
            (answers.ModelList, (await client.get("/v1/models")).content),
            (answers.ModelObject, (await client.get("/v1/models/docs-assistant")).content),
            (answers.HealthBody, (await client.get("/health")).content),
            (answers.HealthBody, (await get(unhealthy, "/health")).content),
            (answers.ReadyBody, (await get(unhealthy, "/health/ready")).content),
            (answers.LiveBody, (await get(unhealthy, "/health/live")).content),
            *((answers.ChatCompletionChunk, x[6:]) for x in stream.content.split(b"\n\n")[:-2]),
        ]
    for model, content in described:
        TypeAdapter(model).validate_json(content, extra="forbid")


async def test_swagger_ui_comes_from_here_alone():
    app = service()
    async with client_of(app) as client:
        page = (await client.get("/api-docs")).text
        assert "http://" not in page.replace("http://localhost", "")
        assert "https://" not in page
        files = {"swagger-ui-bundle.js": "javascript", "swagger-ui.css": "css", "favicon-32x32.png": "png"}
        for name, kind in files.items():
            assert f"api-docs/files/{name}" in page
            response = await client.get(f"/api-docs/files/{name}")
            assert response.status_code == 200
            assert kind in response.headers["content-type"]


async def test_the_front_door_is_the_page_of_readers():
    response = await get(service(), "/")
    assert (response.status_code, response.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert "static/page.js" in response.text


async def test_the_end_of_the_service_closes_what_it_holds():
    assistants = ScriptedAssistants((Scripted(),))
    app = create_app(assistants, Settings.load(None))
    async with app.router.lifespan_context(app):
        assert not assistants.closed
    assert assistants.closed

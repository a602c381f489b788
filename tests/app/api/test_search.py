"""POST /v1/search on a real index: passages with scores, filters, and no language model."""

import pytest
from pydantic import TypeAdapter

from app.api.answer_models import SearchResult
from tests.app.api.indexed import URL, VOLUME, indexed
from tests.app.api.scripted import client_of

QUERY = "How do I create a persistent volume?"


@pytest.fixture
async def service(tmp_path):
    async with indexed(tmp_path) as running:
        yield running


async def search(service, **body):
    async with client_of(service.app) as client:
        return await client.post("/v1/search", json=body)


async def test_the_best_passage_comes_with_link_text_and_scores(service):
    body = (await search(service, query=QUERY)).json()
    assert TypeAdapter(SearchResult).validate_python(body, extra="forbid")
    assert (body["model"], body["language"], body["generation"]) == ("docs-assistant", "en", 1)
    first = body["data"][0]
    assert first["url"] == f"{URL}volumes#create"
    assert (first["number"], first["title"], first["section"]) == (1, "Volumes", "Create")
    assert first["headings"] == ["Volumes", "Create"]
    assert first["text"] == VOLUME
    assert first["score"] == first["scores"]["fused"] == pytest.approx(1.0)
    assert first["scores"]["lexical"] > 0
    assert -1 <= first["scores"]["vector"] <= 1


async def test_no_language_model_is_asked(service):
    assert (await search(service, query=QUERY)).status_code == 200
    assert service.llm.calls == []


async def test_a_limit_is_kept(service):
    assert len((await search(service, query="volume memory")).json()["data"]) == 2
    assert len((await search(service, query="volume memory", limit=1)).json()["data"]) == 1


async def test_filters_restrict(service):
    for filters, urls in (
        ({}, {"volumes", "limits"}),
        ({"collections": ["docs"], "languages": ["en"]}, {"volumes", "limits"}),
        ({"collections": ["blog"]}, set()),
        ({"languages": ["cs"]}, set()),
        ({"url_prefixes": [f"{URL}lim"]}, {"limits"}),
        ({"sections": ["/limits"]}, {"limits"}),
        ({"sections": ["/lim"]}, set()),
        ({"versions": ["1.2"]}, set()),
    ):
        data = (await search(service, query="volume memory", filters=filters)).json()["data"]
        assert {p["url"].removeprefix(URL).partition("#")[0] for p in data} == urls, filters


async def test_a_wrong_field_is_a_400_that_names_it(service):
    for body, param in (
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": 5}, "query"),
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": 51}, "limit"),
        ({"query": "x", "limt": 5}, "limt"),
        ({"query": "x", "filters": {"language": ["en"]}}, "filters.language"),
        ({"query": "x", "filters": {"languages": "en"}}, "filters.languages"),
        ({"query": "x", "filters": {"versions": [1.2]}}, "filters.versions[0]"),
    ):
        response = await search(service, **body)
        assert (response.status_code, response.json()["error"]["param"]) == (400, param)


async def test_too_long_a_query_and_an_unknown_assistant(service):
    assert (await search(service, query="x" * 20_001)).status_code == 413
    assert (await search(service, query="x", model="nobody")).status_code == 404


async def test_an_assistant_is_not_left_by_filters(tmp_path):
    own = tmp_path / "own.toml"
    own.write_text(
        '[[assistant]]\nid = "blog"\ncollections = ["blog"]\nsteps = ["detect", "retrieve", "synthesize"]\n',
        encoding="utf-8",
    )
    async with indexed(tmp_path, assistants=str(own)) as service:
        for filters in ({}, {"collections": ["docs"]}):
            assert (await search(service, query="volume", filters=filters)).json()["data"] == []


@pytest.mark.parametrize(
    ("path", "asked"),
    [
        ("chat/completions", {"messages": [{"role": "user", "content": "Memory of a notebook?"}]}),
        ("responses", {"input": "Memory of a notebook?"}),
    ],
)
async def test_answers_keep_to_filters_too(service, path, asked):
    """Nothing is found outside of them, and a filter that there isn't is refused, not ignored."""
    async with client_of(service.app) as client:
        body = {"model": "docs-assistant", **asked}
        free = (await client.post(f"/v1/{path}", json=body)).json()
        assert [source["url"] for source in free["sources"]][:1] == [f"{URL}limits#create"]
        kept = (await client.post(f"/v1/{path}", json={**body, "filters": {"sections": ["volumes"]}})).json()
        assert f"{URL}limits" not in str(kept)
        wrong = await client.post(f"/v1/{path}", json={**body, "filters": {"section": ["volumes"]}})
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "filters.section")

"""POST /v1/search on a real index: passages with scores, filters, and no language model."""

import gc

import pytest
from pydantic import TypeAdapter

from app.core.types import Candidate, Chunk, Page
from app.index import vocabulary
from app.routes.answer_models import SearchResult
from tests.app.http.test_keys import entry, key, write
from tests.app.routes.indexed import URL, VOLUME, indexed
from tests.app.routes.scripted import CHAT, chat, client_of

QUERY = "How do I create a persistent volume?"


async def search(service, **body):
    async with client_of(service.app) as client:
        return await client.post("/v1/search", json=body)


def paths(found):
    """The pages of the passages, without the site's address."""
    return [one["url"].removeprefix(URL).partition("#")[0] for one in found["data"]]


async def test_the_best_passage_comes_with_link_text_and_scores_and_no_language_model_is_asked(service):
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
    assert service.llm.calls == []


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
    own.write_text('[[assistant]]\nid = "blog"\ncollections = ["blog"]\nsteps = ["detect", "retrieve", "synthesize"]\n')
    async with indexed(tmp_path, assistants=str(own)) as service:
        for filters in ({}, {"collections": ["docs"]}):
            assert (await search(service, query="volume", filters=filters)).json()["data"] == []


@pytest.mark.plugins
@pytest.mark.parametrize("path", ["chat/completions", "responses"])
async def test_answers_keep_to_filters_too(service, path):
    """Nothing is found outside of them, and a filter that there isn't is refused, not ignored."""
    asked = "Memory of a notebook?"
    async with client_of(service.app) as client:
        body = {"model": "docs-assistant", "input": asked} if path == "responses" else chat(asked)
        free = (await client.post(f"/v1/{path}", json=body)).json()
        assert [source["url"] for source in free["sources"]][:1] == [f"{URL}limits#create"]
        kept = (await client.post(f"/v1/{path}", json={**body, "filters": {"sections": ["volumes"]}})).json()
        assert f"{URL}limits" not in str(kept)
        wrong = await client.post(f"/v1/{path}", json={**body, "filters": {"section": ["volumes"]}})
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "filters.section")


MORE = {
    "backup": "# Backup\n\nBack up the index each night. The setting DOCS_TOP_K doesn't matter for it.",
    "cs-zaloha": "# Zálohování\n\nZálohujte úložiště každou noc, jinak přijdete o [všechna](https://x.example/) **data**.",
    "storage": "# Storage\n\nA volume is a disk.",
}


@pytest.fixture
async def typing(tmp_path):
    async with indexed(tmp_path, more=MORE) as running:
        yield running


def marked(pieces):
    return [piece["text"] for piece in pieces if piece["match"]]


async def test_a_search_as_you_type_finds_half_words_mistypes_and_words_without_diacritics(typing):
    for query, first, words in (
        ("v", "volumes", "volume"),
        ("vol", "volumes", "volume"),
        ("persistent vol", "volumes", "persistent"),
        ("zalohuj", "cs-zaloha", "Zálohujte"),
        ("ULOZIS", "cs-zaloha", "úložiště"),
        ("docs_to", "backup", "DOCS_TOP_K"),
        ("notebok mem", "limits", "notebook"),
        ("PersistentVolumeCl", "volumes", "PersistentVolumeClaim"),
    ):
        body = (await search(typing, query=query, as_you_type=True)).json()
        TypeAdapter(SearchResult).validate_python(body, extra="forbid")
        assert paths(body)[0] == first, query
        assert words in marked(body["data"][0]["highlights"]["excerpt"]), query
    assert (await search(typing, query="qxz", as_you_type=True)).json()["data"] == []
    assert body["query"] == "PersistentVolumeCl"
    assert (await search(typing, query="notebok mem", as_you_type=True)).json()["query"] == "notebook mem"


async def test_a_correction_is_tried_beside_the_words_that_begin_so(tmp_path):
    """Promtool begins as typed; who mistyped "prompt" finds it, too."""
    more = {"tool": "# Tool\n\nRun promtool.", "prompts": "# Prompts\n\nChange a prompt here."}
    async with indexed(tmp_path, more=more) as service:
        assert paths((await search(service, query="promt", as_you_type=True)).json())[:2] == ["prompts", "tool"]


async def test_a_word_with_accents_or_a_whole_word_shows_its_language_to_a_reader_of_another(typing):
    """A half-typed one doesn't: most words of an English reader begin as a Czech one."""
    for query, language in (
        ("úlož", "cs"),
        ("úložiště", "cs"),
        ("uloz", "en"),
        ("zalohujte uloziste", "cs"),
        ("volumes", "en"),
    ):
        assert (await search(typing, query=query, as_you_type=True, language="en")).json()["language"] == language, (
            query
        )


async def test_a_page_named_like_the_query_comes_before_a_section_of_another_page(tmp_path):
    more = {
        "computed": "# Computed properties\n\nThey depend on others.\n\n## Caching\n\nIt is read again when they change.",
        "performance": "# Performance\n\nMeasure first.\n\n## Computed\n\nComputed, computed twice.\n\n## Computed caching\n\nComputed.",
    }
    async with indexed(tmp_path, more=more) as service:
        for query, first in (("comp", "computed"), ("computed", "computed"), ("caching twice", "performance")):
            assert paths((await search(service, query=query, as_you_type=True)).json())[0] == first, query


@pytest.fixture
def alive():
    """What is alive of a kind that was made in the test: what was there before is frozen, so looking costs next to nothing."""

    def found(kind):
        gc.collect()
        return [one.id for one in gc.get_objects() if type(one) is kind]

    gc.freeze()
    yield found
    gc.unfreeze()


async def test_a_search_as_you_type_keeps_no_candidates_and_no_chunks_of_an_earlier_generation(tmp_path, alive):
    async with indexed(tmp_path, more={"quokka": "# Quokka\n\nQuokkas sleep.", "last": "# Last\n\nText."}) as service:
        for number in range(3):
            for query in ("q", "quo", "sleeping quo"):
                assert (await search(service, query=query, as_you_type=True)).json()["data"]
            assert alive(Chunk).count("quokka") == 1
            assert not alive(Candidate)
            recipe = (await service.store.live()).info.recipe
            async with await service.store.draft(recipe) as draft:
                chunk = Chunk(f"new{number}", "docs", f"{URL}new{number}", 0, "# New\n\nText.", "en", "New")
                page = Page(chunk.url, "docs", "New", "en", chunk.text, chunk.id)
                await draft.put(page, [chunk], {chunk.id: (1.0,) + (0.0,) * (recipe.dimension - 1)})
                await draft.publish()


async def test_a_limited_key_learns_no_words_and_languages_of_other_collections(tmp_path):
    """A mistyped word is corrected in the answer only if the correction is a word of what was found."""
    keys = write(tmp_path / "keys.toml", entry("all"), entry("docs", collections='["docs"]'))
    more = {"cs-secret-plan": "# Akvizice\n\nVolumes of Aquariumsoft are bought in May.", "notes": "# Notes\n\nMay."}
    async with indexed(tmp_path, more=more, keys=keys) as service, client_of(service.app) as client:
        rights = (("all", "aquariumsoft volume", ["cs", "en"]), ("docs", "aquariumsft volume", ["en"]))
        for name, corrected, languages in rights:
            client.headers.update(key(name))
            for query, shown in (("aquariumsft volume", corrected), ("notebok mem", "notebook mem")):
                body = {"query": query, "as_you_type": True}
                found = (await client.post("/v1/search", json=body)).json()
                assert (found["query"], found["facets"]["languages"]) == (shown, languages)


async def test_a_row_is_a_section_with_breadcrumbs_and_an_excerpt_in_plain_text(typing):
    row = (await search(typing, query="uloziste dat", as_you_type=True, language="en")).json()["data"][0]
    assert (row["url"], row["breadcrumbs"], row["language"]) == (f"{URL}cs-zaloha#create", ["Cs-Zaloha"], "cs")
    excerpt = "".join(piece["text"] for piece in row["highlights"]["excerpt"])
    assert excerpt == "Zálohujte úložiště každou noc, jinak přijdete o všechna data."
    assert marked(row["highlights"]["excerpt"]) == ["úložiště", "data"]
    row = (await search(typing, query="volu", as_you_type=True)).json()["data"][0]
    assert row["breadcrumbs"] == ["Volumes", "Create"]
    assert [marked(pieces) for pieces in row["highlights"]["breadcrumbs"]] == [["Volumes"], []]
    assert (typing.llm.calls, typing.llm.embedded) == ([], [])  # no model, and no embedder that takes its time


async def test_an_address_searches_too(typing):
    async with client_of(typing.app) as client:
        found = (await client.get("/v1/search?q=zaloh&as_you_type=true&language=cs&limit=1")).json()
        assert [row["language"] for row in found["data"]] == ["cs"]
        assert found["facets"] == {"collections": ["docs"], "languages": ["cs", "en"]}
        assert found["language"] == "cs"
        assert (await client.get("/v1/search?q=volume&collection=blog")).json()["data"] == []
        wrong = {"": "q", "q=x&limit=a": "limit", "q=x&limit=99": "limit", "q=x&foo=1": "foo", "q=": "query"}
        for address, param in wrong.items():
            response = await client.get(f"/v1/search?{address}")
            assert (response.status_code, response.json()["error"]["param"]) == (400, param), address
        misspelt = (await client.get("/v1/search?q=x&langage=en")).json()["error"]["message"]
        assert misspelt == "langage: there is no such field. Did you mean language?"

    for query, filters, urls in (
        ("zal", {"languages": ["cs"]}, {"cs-zaloha"}),
        ("zal", {"languages": ["en"]}, set()),
        ("vol", {"sections": ["/storage"]}, {"storage"}),
        ("vol", {"collections": ["blog"]}, set()),
    ):
        found = (await search(typing, query=query, as_you_type=True, filters=filters)).json()
        assert set(paths(found)) == urls, filters


GUIDES = {
    "kubernetes/quota": "# Quota\n\nThe default quota is four cores.",
    "notebooks/quota": "# Quota\n\nThe default quota is eight cores.",
    "notebooks/start": "# Start\n\nStart a notebook from the menu.",
    # found for one of the words, so that both quotas are at the top of the ranking
    **{f"other/{i}": f"# Other {i}\n\nSomething else, whose default differs a lot." for i in range(4)},
}


async def test_a_text_that_is_pasted_into_the_search_field_costs_no_more_than_words_that_are_typed(
    tmp_path, monkeypatch
):
    tried = []

    def counted(word):
        for one in neighbours(word):
            tried.append(len(one))
            yield one

    neighbours = vocabulary._neighbours
    monkeypatch.setattr(vocabulary, "_neighbours", counted)
    async with indexed(tmp_path, with_model=False) as service:
        for query in ("q" * 1500, "ěščř" * 400, "volumw quotq " * 300):
            tried.clear()
            assert (await search(service, query=query, as_you_type=True)).status_code == 200
            assert sum(tried) < 500_000, query[:10]  # letters
        index = await (await service.store.live()).vocabulary()
        index.completions("q" * 20_000, 1)
        assert index._completed.cache_info().currsize < 100


@pytest.mark.plugins
async def test_the_page_of_the_reader_raises_its_section_and_hides_nothing(tmp_path):
    async with indexed(tmp_path, more=GUIDES, vector_weight={"*": 0.0}) as service:

        async def first(query, page, **fields):
            return paths((await search(service, query=query, page=page, **fields)).json())[0]

        for fields in ({}, {"as_you_type": True}):
            for section in ("kubernetes", "notebooks"):
                assert await first("default quota", f"{URL}{section}/start", **fields) == f"{section}/quota"
                assert await first("default quota", f"{URL}{section}/quota#x", **fields) == f"{section}/quota"
                # a question about something else finds that
                assert await first("persistent volume", f"{URL}{section}/start", **fields) == "volumes"
            without = await first("default quota cores", None, **fields)
            for nowhere in ("", "https://other.example/notebooks/start", URL):
                assert await first("default quota cores", nowhere, **fields) == without
        async with client_of(service.app) as client:
            for section in ("kubernetes", "notebooks"):
                body = chat("What is the default quota?", page=f"{URL}{section}/start")
                answer = await client.post(CHAT, json=body)
                assert answer.json()["sources"][0]["url"].startswith(f"{URL}{section}/quota")
            for path, body in (
                ("chat/completions", chat()),
                ("responses", {"model": "docs-assistant", "input": "x"}),
                ("search", {"query": "x"}),
            ):
                for wrong in ("volumes", "javascript:alert(1)", "https://", "https://a b/"):
                    refused = await client.post(f"/v1/{path}", json={**body, "page": wrong})
                    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "page"), wrong
                    assert "address of a page" in refused.json()["error"]["message"]

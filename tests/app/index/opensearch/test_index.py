"""The indices of the OpenSearch store as others see them: mapping, alias, rows."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from app.core.filters import Filters
from app.core.types import LexicalText, Query
from tests.app.index.opensearch.rows import RECIPE, SITE, found, name_of, page, publish, put


@pytest.mark.opensearch
@pytest.mark.server
class TestIndex:
    async def test_an_unknown_field_is_refused(self, store, http):
        """The mapping is strict, so that a stranger's write fails instead of changing how the index is read."""
        await publish(store, "text")
        for document in ({"surprise": 1}, {"metadata": {"surprise": "x"}}):
            answer = await http.post(f"/{name_of(store)}-1/_doc", json=document)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "strict_dynamic_mapping_exception"

    async def test_dates_are_words(self, store):
        """A date that is none, after one that is, must not fail the row as a date field would."""
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/a", "first text", modified="2024-05-01")
            await put(draft, "/b", "second text", modified="unknown")
            await draft.publish()
        assert sorted(await found(store, "text")) == ["first text", "second text"]

    async def test_the_alias_shows_the_live_generation_only(self, store, http):
        """A client that knows the alias alone sees what readers see, before and after publish and rollback."""

        async def shown() -> set[str]:
            answer = (await http.get(f"/{name_of(store)}/_search?size=100")).json()
            return {hit["_source"]["content"] for hit in answer["hits"]["hits"]}

        await publish(store, "old", "same")
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/0", "new")
            await draft._batch.flush()
            await http.post(f"/{name_of(store)}-*/_refresh")
            assert await shown() == {"old", "same"}
            await draft.publish()
        assert await shown() == {"new", "same"}
        await store.rollback()
        assert await shown() == {"old", "same"}

    async def test_every_look_at_the_alias_sees_one_whole_generation(self, store, http):
        """The pointer moves in one step: no moment without an alias, none with rows of two generations."""
        recipes = [RECIPE, replace(RECIPE, splitter="other")]
        await publish(store, *["version0"] * 5)
        stop = asyncio.Event()
        looks = 0

        async def look() -> None:
            nonlocal looks
            while not stop.is_set():
                answer = await http.get(f"/{name_of(store)}/_search?size=100")
                assert answer.status_code == 200, answer.text
                texts = [hit["_source"]["content"] for hit in answer.json()["hits"]["hits"]]
                assert len(texts) == 5
                assert len(set(texts)) == 1
                looks += 1

        async with asyncio.TaskGroup() as tasks:
            for _ in range(4):
                tasks.create_task(look())
            for number in range(1, 5):
                await publish(store, *[f"version{number}"] * 5, recipe=recipes[number % 2])
            await store.rollback()
            stop.set()
        assert looks > 10
        assert set(await found(store, "version3")) == {"version3"}

    async def test_what_no_generation_has_is_deleted(self, store, http):
        """Rows of dropped generations go, and whole indices after a rebuild that nothing refers to any more."""
        for number in range(5):
            await publish(store, f"text {number}")
        await http.post(f"/{name_of(store)}-1/_refresh")
        rows = (await http.get(f"/{name_of(store)}-1/_search?size=100")).json()["hits"]["hits"]
        assert {row["_source"]["content"] for row in rows} <= {"text 2", "text 3", "text 4"}
        for number in range(4):
            await publish(store, f"text {number}", recipe=replace(RECIPE, splitter=str(number % 2)))
        indices = set((await http.get(f"/{name_of(store)}-*/_alias")).json())
        assert f"{name_of(store)}-1" not in indices
        assert len(indices) == 7  # two kept, one for readers that are still at it, each with pages; and the catalog

    @pytest.mark.parametrize("language", ["de", "sk", "zh", "tr", "no", "el", "ga", "pt"])
    async def test_any_language_has_an_analysis(self, open_store, language):
        """A code without a dictionary of its own is folded, and found all the same."""
        store = open_store()
        async with await store.draft(RECIPE) as draft:
            await put(draft, "/a", "kubernetes 集群配置", language=language)
            await draft.publish()
        assert await found(store, "Kubernetes", language) == ["kubernetes 集群配置"]

    async def test_a_page_of_encoded_data_is_indexed(self, store):
        """A word longer than Lucene takes doesn't fail its row."""
        text = "x" * 40_000 + " key"
        await publish(store, text)
        assert await found(store, "key") == [text]

    @pytest.mark.parametrize(
        "rest",
        ["a.b/c-d_e " * 2000, "a1.b2.c3.d4.e5.f6.g7.h8/i9 " * 500, "集群配置" * 3000, "集群 配置 " * 2000, "🙂" * 5000, "x" * 20000],
    )  # fmt: skip
    async def test_a_long_question_of_any_script_stays_within_the_servers_limit(self, store, rest):
        """Words that the analysis takes apart count as many: the server refuses more than 1,024 clauses."""
        await publish(store, "some quota", "unrelated")
        live = await store.live()
        texts = tuple(LexicalText(language, "quota " + rest) for language in ("en", "cs", ""))
        legs = await live.search(Query(texts))
        assert legs.lexical[0].url == SITE + "/0"

    async def test_an_approximate_search_finds_what_an_exact_one_does(self, store):
        """On a small index both legs' nearest are the same rows with the same cosines."""
        async with await store.draft(RECIPE) as draft:
            for number in range(80):
                record, chunks = page(f"/{number}", f"text {number}")
                angle = [1.0, number / 40, (number * 7 % 80) / 80, -number / 80]
                await draft.put(record, chunks, {chunks[0].id: angle})
            await draft.publish()
        live = await store.live()
        for vector in ([1.0, 0.1, 0.2, 0.0], [0.0, 1.0, 1.0, -1.0], [-1.0, 0.0, 0.0, 0.0]):
            near = await live.search(Query((), vector, depth=80))
            exact = await live.search(Query((), vector, depth=80, exact=True))
            assert [c.score for c in near.vector] == pytest.approx([c.score for c in exact.vector], abs=1e-5)
            assert {c.id for c in near.vector} == {c.id for c in exact.vector}
            assert len(near.vector) == 80

    async def test_an_index_without_said_versions_is_read_and_then_built_anew(self, open_store, http):
        """That of an earlier release has no such field: addresses tell versions until the next run, which rebuilds."""
        store = open_store()
        await publish(store, "common one", "common two")
        await as_before_versions(http, name_of(store))
        other = open_store()
        assert sorted(await found(other, "common")) == ["common one", "common two"]
        limited = Query((LexicalText("en", "common"),), [1.0, 2.0, 3.0, 4.0], filters=Filters(versions=("1.0",)))
        legs = await (await other.live()).search(limited)
        assert (legs.lexical, legs.vector) == ((), ())
        assert {page.versions for page in await (await other.live()).pages()} == {()}
        async with await other.draft(RECIPE) as draft:
            assert draft.rebuilds
            await put(draft, "/0", "common one", versions=("1.0",))
            await draft.publish()
        legs = await (await other.live()).search(limited)
        assert len(legs.lexical) == len(legs.vector) == 1
        async with await other.draft(RECIPE) as draft:
            assert not draft.rebuilds


async def as_before_versions(http, name: str) -> None:
    """Move the rows of the only generation into indices with the mapping and the layout of the release before."""
    state = (await http.get(f"/{name}-meta/_doc/state")).json()["_source"]
    old, new = state["kept"][0]["chunks"], f"{name}-7"
    for suffix, source in (("", "ctx._source.metadata"), ("-pages", "ctx._source.record")):
        described = (await http.get(f"/{old}{suffix}")).json()[old + suffix]
        described["mappings"]["properties"]["metadata"]["properties"].pop("versions", None)
        index = {"knn": described["settings"]["index"].get("knn", "false")}
        analysis = described["settings"]["index"].get("analysis", {})
        body = {"settings": {"index": index, "analysis": analysis}, "mappings": described["mappings"]}
        assert (await http.put(f"/{new}{suffix}", json=body)).status_code == 200
        moved = {
            "source": {"index": old + suffix},
            "dest": {"index": new + suffix},
            "script": {"source": f"{source}.remove('versions')"},
        }
        answer = (await http.post("/_reindex?refresh=true", json=moved)).json()
        assert (answer["created"], answer["failures"]) == (2, [])
    state["kept"][0] |= {"chunks": new, "layout": 2}
    state["last_index"] = 7
    assert (await http.put(f"/{name}-meta/_doc/state?refresh=true", json=state)).status_code == 200
    alias = (await http.get(f"/_alias/{name}")).json()[old]["aliases"][name]
    actions = [
        {"remove": {"index": old, "alias": name}},
        {"add": {"index": new, "alias": name, "filter": alias["filter"]}},
    ]
    assert (await http.post("/_aliases", json={"actions": actions})).status_code == 200

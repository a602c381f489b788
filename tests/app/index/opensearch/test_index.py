"""The indices of the OpenSearch store as others see them: mapping, alias, rows."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.core.types import LexicalText, Query
from app.index.opensearch import generation
from app.index.opensearch.catalog import Catalog
from tests.app.index.opensearch.rows import RECIPE, SITE, found, name_of, publish, put


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

    async def test_a_run_that_ends_while_its_indices_are_made_leaves_none(self, store, http):
        """They are made beside the reading of pages, so a run may end before they are there."""
        with pytest.raises(ZeroDivisionError):
            async with await store.draft(RECIPE):
                raise ZeroDivisionError
        assert set((await http.get(f"/{name_of(store)}-*/_alias")).json()) == {f"{name_of(store)}-meta"}

    async def test_a_large_index_finds_the_same_without_keeping_what_its_chunks_are(
        self, store, open_store, monkeypatch
    ):
        """Its searches return what those of a small one return as ids alone."""
        await publish(store, "red text", "blue text", "green")
        query = Query((LexicalText("en", "red text"),), (1.0,) * 16, "en")
        small = await (await store.live()).search(query)
        monkeypatch.setattr(generation, "MOST_READ", 2)
        assert await (await open_store().live()).search(query) == small
        assert len(small.lexical) == 2

    @pytest.mark.parametrize("after", [False, True])
    async def test_a_rebuild_that_ends_beside_the_move_of_the_pointer_leaves_a_whole_index(
        self, open_store, monkeypatch, after
    ):
        """As a killed process ends: at once before the pointer moves, or at once after."""

        class Killed(BaseException):
            pass

        store = open_store()
        await publish(store, "old text")
        point = Catalog.point

        async def killed(catalog, to):
            if after:
                await point(catalog, to)
            raise Killed

        draft = await store.draft(RECIPE, rebuild=True)
        await put(draft, "/0", "new text")
        monkeypatch.setattr(Catalog, "point", killed)
        with pytest.raises(Killed):
            await draft.publish()
        monkeypatch.undo()
        await draft._lock.release()
        expected = "new text" if after else "old text"
        assert await found(open_store(), "text") == [expected]
        await publish(open_store(), "next text")
        assert await found(open_store(), "text") == ["next text"]

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
        # two kept, one more because each is a rebuild, one for readers that are still at it, each with pages; and the catalog
        assert len(indices) == 9

    async def test_a_page_of_encoded_data_is_indexed(self, store):
        """A word longer than Lucene takes doesn't fail its row."""
        text = "x" * 40_000 + " key"
        await publish(store, text)
        assert await found(store, "key") == [text]

    async def test_a_long_question_of_any_script_stays_within_the_servers_limit(self, store):
        """Words that the analysis takes apart count as many: the server refuses more than 1,024 clauses."""
        await publish(store, "some quota", "unrelated")
        live = await store.live()
        parts = ("a.b/c-d_e " * 2000, "a1.b2.c3.d4.e5.f6.g7.h8/i9 " * 500, "集群配置" * 3000, "集群 配置 " * 2000)
        for rest in (*parts, "🙂" * 5000, "x" * 20000):
            texts = tuple(LexicalText(language, "quota " + rest) for language in ("en", "cs", ""))
            legs = await live.search(Query(texts))
            assert legs.lexical[0].url == SITE + "/0"

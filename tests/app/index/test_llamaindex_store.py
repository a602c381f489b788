"""LlamaIndex's stock OpenSearch classes read our index through its alias, as they come."""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator

import pytest

from app.core.errors import SettingsError, StoreError
from app.core.generation import Recipe
from app.core.settings import Settings
from app.core.types import Chunk, Page, Section
from app.index.opensearch.rows import OPEN
from app.index.opensearch.store import OpenSearchStore

pytest.importorskip("llama_index.vector_stores.opensearch", exc_type=ImportError)

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.vector_stores import FilterOperator, MetadataFilter, MetadataFilters
from llama_index.core.vector_stores.types import VectorStoreQuery, VectorStoreQueryMode
from llama_index.vector_stores.opensearch import OpensearchVectorClient, OpensearchVectorStore

from app.index.opensearch.vector_store import open_vector_store
from tests.opensearch import opensearch_address, own_name, store_at

pytestmark = [pytest.mark.opensearch, pytest.mark.server]

TOPICS = ("storage", "network", "login", "gpu")
RECIPE = Recipe(embedder="topics", dimension=len(TOPICS), splitter="none", analyzer="1")
WEIGHT = 0.2
SITE = "https://docs.example.org"
ENDED = MetadataFilter(key="gen_to", value=OPEN, operator=FilterOperator.EQ)


def vector(text: str) -> list[float]:
    return [float(text.lower().count(topic)) + 0.01 for topic in TOPICS]


class TopicEmbedding(BaseEmbedding):
    """How often each topic is named."""

    def _get_text_embedding(self, text: str) -> list[float]:
        return vector(text)

    def _get_query_embedding(self, query: str) -> list[float]:
        return vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return vector(query)


def chunk(path: str, text: str, language: str = "en", collection: str = "docs") -> Chunk:
    return Chunk(
        id=uuid.uuid5(uuid.NAMESPACE_URL, path + text).hex,
        collection=collection,
        url=SITE + path,
        position=0,
        text=text,
        language=language,
        title="A page",
        sections=(Section(0, ("Guide", "Part: one"), "part-one"),),
        modified="2024-05-01",
    )


async def publish(store: OpenSearchStore, *chunks: Chunk, remove: str = "") -> None:
    async with await store.draft(RECIPE) as draft:
        for one in chunks:
            record = Page(one.url, one.collection, one.title, one.language, one.text, "hash")
            await draft.put(record, [one], {one.id: vector(one.text)})
        if remove:
            await draft.remove(SITE + remove)
        await draft.publish()


@pytest.fixture
async def index() -> AsyncIterator[tuple[OpenSearchStore, OpensearchVectorStore]]:
    """Our store, and LlamaIndex's on the same alias."""
    address = opensearch_address()
    with own_name() as name:
        store = store_at(address, name, vector_share=WEIGHT)
        await publish(
            store,
            chunk("/en/storage", "Storage has a quota."),
            chunk("/cs/storage", "Úložiště (storage) má kvótu.", language="cs"),
            chunk("/en/network", "The network is fast."),
            chunk("/blog/gpu", "A GPU for each.", collection="blog"),
        )
        pipeline = f"{name}-hybrid"
        client = OpensearchVectorClient(address, name, dim=len(TOPICS), engine="lucene", search_pipeline=pipeline)
        yield store, OpensearchVectorStore(client)
        await client.aclose()
        await store.close()


async def texts(theirs: OpensearchVectorStore, question: str, *filters: MetadataFilter, top: int = 10) -> list[str]:
    retriever = VectorStoreIndex.from_vector_store(theirs, embed_model=TopicEmbedding()).as_retriever(
        similarity_top_k=top, filters=MetadataFilters(filters=list(filters)) if filters else None
    )
    return [node.text for node in await retriever.aretrieve(question)]


async def test_a_stock_index_retrieves_with_text_score_and_metadata(index):
    """A node carries what a source link needs, although we write no _node_content."""
    retriever = VectorStoreIndex.from_vector_store(index[1], embed_model=TopicEmbedding()).as_retriever(
        similarity_top_k=1
    )
    (node,) = await retriever.aretrieve("network")
    assert node.text == "The network is fast."
    assert node.score == pytest.approx(1.0, abs=1e-3)
    assert node.metadata["link"] == SITE + "/en/network#part-one"
    assert (node.metadata["title"], node.metadata["heading_path"]) == ("A page", "Guide > Part: one")
    assert (node.metadata["language"], node.metadata["modified"]) == ("en", "2024-05-01")


FILTERS = [
    ([MetadataFilter(key="language", value="cs")], {"/cs/storage"}),
    ([MetadataFilter(key="language", value="cs", operator=FilterOperator.NE)], {"/en/storage", "/en/network", "/blog/gpu"}),
    ([MetadataFilter(key="collection", value=["blog"], operator=FilterOperator.IN)], {"/blog/gpu"}),
    ([MetadataFilter(key="url", value="/en/", operator=FilterOperator.CONTAINS)], {"/en/storage", "/en/network"}),
    ([MetadataFilter(key="language", value="en"), MetadataFilter(key="collection", value="blog")], {"/blog/gpu"}),
    ([MetadataFilter(key="position", value=0)], {"/en/storage", "/cs/storage", "/en/network", "/blog/gpu"}),
    ([MetadataFilter(key="language", value="sk")], set()),
]  # fmt: skip


async def test_metadata_filters_hold(index):
    """Equality, inequality, lists, parts of a word and numbers, on fields that LlamaIndex suffixes with .keyword."""
    for filters, expected in FILTERS:
        retriever = VectorStoreIndex.from_vector_store(index[1], embed_model=TopicEmbedding()).as_retriever(
            similarity_top_k=10, filters=MetadataFilters(filters=filters)
        )
        nodes = await retriever.aretrieve("storage")
        assert {node.metadata["url"].removeprefix(SITE) for node in nodes} == expected, filters


async def test_a_stock_text_search_reads_the_words(index):
    """Its own lexical query looks at `content`, where diacritics are folded."""
    query = VectorStoreQuery(query_str="kvotu uloziste", similarity_top_k=5, mode=VectorStoreQueryMode.TEXT_SEARCH)
    result = await index[1].aquery(query)
    assert [node.text for node in result.nodes] == ["Úložiště (storage) má kvótu."]


async def test_a_stock_hybrid_search_merges_both_by_the_weights_of_the_pipeline_that_ingesting_made(index):
    """The best of both is first; one that only the vectors find has their weight, one that only the words find theirs."""
    query = VectorStoreQuery(
        query_str="fast quota",
        query_embedding=vector("network"),
        similarity_top_k=10,
        mode=VectorStoreQueryMode.HYBRID,
        filters=MetadataFilters(filters=[ENDED, MetadataFilter(key="language", value="en")]),
    )
    result = await index[1].aquery(query)
    assert result.nodes[0].text == "The network is fast."
    assert result.similarities[0] == pytest.approx(1.0, abs=1e-3)
    query.query_embedding = vector("gpu")
    result = await index[1].aquery(query)
    scores = {node.text: score for node, score in zip(result.nodes, result.similarities, strict=True)}
    assert scores["A GPU for each."] == pytest.approx(WEIGHT, abs=1e-3)
    assert scores["The network is fast."] == pytest.approx(1 - WEIGHT, abs=1e-2)


async def test_the_pipeline_follows_the_settings_and_a_server_without_it_can_be_indexed_to(index, caplog):
    """Another weight replaces it with the next run; a pipeline that the server refuses is a warning."""
    store, theirs = index
    pipeline = theirs.client._search_pipeline
    path = f"/_search/pipeline/{pipeline}"
    store._vector_share = 0.5
    await publish(store, chunk("/en/storage", "Storage has a quota."))
    (steps,) = (await store._connection.call("GET", path))[pipeline]["phase_results_processors"]
    assert steps["normalization-processor"]["combination"]["parameters"]["weights"] == [0.5, 0.5]
    store._vector_share = -1.0
    await publish(store, chunk("/en/storage", "Storage has one."))
    assert pipeline in caplog.text
    assert "neural-search" in caplog.text


async def test_a_filter_on_gen_to_leaves_no_place_to_ended_rows(index):
    """The alias filters after the nearest were taken; with this filter inside, the nearest are all of them current."""
    store, theirs = index
    for number in range(2):
        await publish(store, chunk("/en/storage", f"Storage has a quota of {number} TB."))
    found = await texts(theirs, "storage quota", ENDED, top=2)
    assert set(found) == {"Storage has a quota of 1 TB.", "Úložiště (storage) má kvótu."}


async def test_the_store_that_we_open_reads_the_published_generation_alone(index):
    """With the chunks' own ids, filters of its own, and no way to write; what a later run changes doesn't reach it."""
    store, theirs = index
    name = theirs.client._index
    settings = Settings.load(None, store=f"{opensearch_address().replace('http', 'opensearch')}/{name}")
    opened = open_vector_store(settings)
    await publish(store, chunk("/en/storage", "Storage has no quota any more."))
    retriever = VectorStoreIndex.from_vector_store(opened, embed_model=TopicEmbedding()).as_retriever(
        similarity_top_k=2, filters=MetadataFilters(filters=[MetadataFilter(key="language", value="en")])
    )
    nodes = await retriever.aretrieve("storage")
    assert nodes[0].text == "Storage has a quota."
    assert nodes[0].node.node_id == chunk("/en/storage", "Storage has a quota.").id
    now = await texts(open_vector_store(settings), "storage")
    assert "Storage has no quota any more." in now
    assert "Storage has a quota." not in now
    with pytest.raises(StoreError, match="read-only"):
        opened.add([])
    with pytest.raises(StoreError, match="read-only"):
        await opened.aclear()


def test_a_store_elsewhere_is_named():
    with pytest.raises(SettingsError, match="isn't in OpenSearch"):
        open_vector_store(Settings.load(None, store="data"))

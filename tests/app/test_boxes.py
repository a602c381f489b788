"""Each box of the pipeline is a LlamaIndex component: a tracer of LlamaIndex sees it work on a default question and a default page,
and one of LlamaIndex's own does its work in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.event_handlers import BaseEventHandler
from llama_index.core.instrumentation.events import BaseEvent
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import QueryBundle, TextNode

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.index.retriever import GenerationRetriever
from app.models import open_embedder
from ingestion.convert.reader import PageLoader
from ingestion.split import open_splitter
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite, local_site

QUESTION = "How do I create a persistent volume?"


@pytest.fixture
def site() -> Iterator[LocalSite]:
    with local_site() as served:
        yield served


class Events(BaseEventHandler):
    """Notes the names of events."""

    names: set[str] = set()

    def handle(self, event: BaseEvent, **_: object) -> None:
        self.names.add(event.class_name())


@contextmanager
def traced() -> Iterator[set[str]]:
    """The methods of LlamaIndex that are called, as `Class.method`, and the names of its events."""
    dispatcher, handler, events = get_dispatcher(), SimpleSpanHandler(), Events()
    dispatcher.span_handlers.append(handler)
    dispatcher.event_handlers.append(events)
    called: set[str] = set()
    try:
        yield called
    finally:
        dispatcher.span_handlers.remove(handler)
        dispatcher.event_handlers.remove(events)
        called |= events.names
        called |= {span.id_.partition("-")[0] for span in handler.completed_spans}


async def test_a_default_question_is_answered_by_the_boxes(tmp_path: Path) -> None:
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        with traced() as called:
            response = await client.post(CHAT, json=chat(QUESTION))
    assert response.status_code == 200
    assert called >= {
        "AssistantQueryEngine.aquery",
        "GenerationRetriever.aretrieve",
        "OpenAIEmbedder.aget_query_embedding",
        "OpenAIModel.astream_chat",
    }


class Limits(VectorIndexRetriever):
    """A stock retriever over a stock index that has one chunk of ours, so that all questions find it first."""

    def __init__(self) -> None:
        index = VectorStoreIndex([TextNode(id_="limits", text="Memory")], embed_model=MockEmbedding(4))
        super().__init__(index)

    async def _aretrieve(self, query_bundle: QueryBundle) -> list:
        return await super()._aretrieve(QueryBundle(query_bundle.query_str))  # a MockEmbedding has vectors of its own


async def test_a_retriever_of_llamaindex_does_the_work_of_ours(tmp_path: Path) -> None:
    file = tmp_path / "assistants.toml"
    file.write_text(
        f"""[[step]]
id = "stock"
class = "{__name__}:Limits"

[[assistant]]
id = "docs-assistant"
steps = ["detect", "stock", "relevance", "overview", "synthesize", "cite"]
"""
    )
    async with indexed(tmp_path, assistants=str(file)) as service, client_of(service.app) as client:
        with traced() as called:
            answer = (await client.post(CHAT, json=chat("How much memory does a notebook get?"))).json()
    assert "Limits.aretrieve" in called
    assert [source["url"].partition("#")[0] for source in answer["sources"]] == ["https://docs.example.org/limits"]


async def test_a_query_engine_and_a_model_of_llamaindex_do_the_work_of_ours(tmp_path: Path) -> None:
    """Over our retriever, with any `LLM`."""
    async with indexed(tmp_path) as service:
        generation = await service.store.live()
        engine = RetrieverQueryEngine.from_args(GenerationRetriever(generation), llm=MockLLM())
        response = await engine.aquery("create a volume")
    assert "persistent volume" in str(response)
    assert response.source_nodes[0].node.node_id == "volumes"


async def test_our_engine_answers_any_program(tmp_path: Path) -> None:
    """Its response streams texts, and has sources and trace after the end."""
    async with indexed(tmp_path) as service:
        settings = Settings.load(
            None, store=str(tmp_path / "index"), embedding_url=service.llm.url, embedding_model="e", exact=True
        )
        async with opened(settings) as assistants:
            response = await assistants.get("").engine.aquery(QUESTION)
            text = "".join([piece async for piece in response.async_response_gen()])
    assert text
    assert response.source_nodes[0].node.node_id == "volumes"
    assert [source.url for source in response.metadata["sources"]]
    assert {"detect", "retrieve"} <= {step["step"] for step in response.metadata["trace"]}


async def test_a_default_page_is_read_cut_and_embedded_by_the_boxes(site: LocalSite, tmp_path: Path) -> None:
    """The run's loader of pages is a `BaseReader`, and what cuts them in its processes a `NodeParser`."""
    site.page("/a", "Alpha", "Words of alpha.")
    loaded: list[object] = []
    load = PageLoader.aload_data

    async def noted(self: PageLoader, *given: object) -> object:
        loaded.append(self)
        return await load(self, *given)

    async with Index(tmp_path, site) as index:
        index.embedder = open_embedder(Settings.load(None))  # type: ignore[assignment]
        with pytest.MonkeyPatch.context() as patch, traced() as called:
            patch.setattr(PageLoader, "aload_data", noted)
            await index.run(site.sitemap("/a"))
            page = await (await index.store.live()).page(f"{site.url}/a")
            assert page
            open_splitter(Settings.load(None)).split(page)
    assert all(isinstance(one, BaseReader) for one in loaded)
    assert loaded
    assert {"SectionParser._parse_nodes", "EmbeddingEndEvent"} <= called

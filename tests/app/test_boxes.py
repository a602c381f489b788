"""Each box of the pipeline is a LlamaIndex component: a tracer of LlamaIndex sees it work on a default question and a default page,
and one of LlamaIndex's own does its work in its place.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from llama_index.core import VectorStoreIndex
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.instrumentation import get_dispatcher
from llama_index.core.instrumentation.span_handlers import SimpleSpanHandler
from llama_index.core.llms import MockLLM
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.retrievers import VectorIndexRetriever
from llama_index.core.schema import QueryBundle, TextNode

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.index.retriever import GenerationRetriever
from tests.app.api.indexed import indexed
from tests.app.api.scripted import CHAT, chat, client_of

QUESTION = "How do I create a persistent volume?"


@contextmanager
def traced() -> Iterator[set[str]]:
    """The methods of LlamaIndex that are called, as `Class.method`."""
    dispatcher, handler = get_dispatcher(), SimpleSpanHandler()
    dispatcher.span_handlers.append(handler)
    called: set[str] = set()
    try:
        yield called
    finally:
        dispatcher.span_handlers.remove(handler)
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

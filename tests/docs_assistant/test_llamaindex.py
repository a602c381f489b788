"""The retriever and the query engine inside LlamaIndex's own agents, evaluators, workflows and engines."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

pytest.importorskip("llama_index.llms.openai_like", reason="needs the extra llamaindex", exc_type=ImportError)

from llama_index.core.agent.workflow import ReActAgent
from llama_index.core.tools import QueryEngineTool
from llama_index.llms.openai_like import OpenAILike

from app.core.errors import ModelError, NoIndex
from app.core.settings import Settings
from docs_assistant.llama_index import DocsAssistantQueryEngine, open_embedding
from tests.docs_assistant.corpus import SITE
from tests.fake_llm import FakeLLM, Reply

pytestmark = pytest.mark.server  # a scripted model

QUESTION = "How do I set API keys?"


@pytest.fixture
async def llm_class(llm: FakeLLM) -> AsyncIterator[OpenAILike]:
    """LlamaIndex's class for the same server."""
    made = OpenAILike(model="m", api_base=llm.url, api_key="k", is_chat_model=True, max_retries=0, timeout=60)
    yield made
    await made._get_aclient().close()


async def test_an_engine_answers_with_the_assistant_s_text_and_sources(address, open_retriever):
    """Without a language model it quotes passages; the nodes are the retriever's, with the numbers of the text."""
    retriever = open_retriever(address)
    engine = DocsAssistantQueryEngine(retriever)
    response = await engine.aquery(QUESTION)
    assert str(response) == str(engine.query(QUESTION))
    assert response.metadata == {"extractive": True}
    searched = retriever.loop.arun(retriever.search(QUESTION, 20))
    found = {node.node_id: (node.score, node.text) for node in await searched}
    numbers = [node.metadata["number"] for node in response.source_nodes]
    assert numbers == sorted(numbers)
    assert numbers[0] == 1
    for node in response.source_nodes:
        score, text = found[node.node_id]
        assert (node.score, node.text) == (pytest.approx(score), text)  # merging segments may change the last candidate
        assert node.metadata["url"] in str(response)
        assert node.metadata["heading_path"].startswith(node.metadata["title"])
        assert node.metadata["link"].startswith(f"{SITE}/{node.metadata['language']}/")


async def test_an_engine_cites_what_the_model_of_the_assistant_cited(directory, llm, open_retriever):
    """Only the cited page is a source; the request goes to the assistant's pages and language."""
    llm.reply = lambda _: Reply("Klíče jsou v DOCS_API_KEYS [1].")
    settings = Settings.load(None, store=directory, llm_url=llm.url, llm_model="m", unproven="off")
    engine = DocsAssistantQueryEngine(open_retriever(settings, filters={"languages": ["cs"]}))
    response = await engine.aquery("Jak nastavím klíče k API?")
    assert str(response).startswith("Klíče jsou v DOCS_API_KEYS [1].")
    assert response.metadata == {"extractive": False}
    assert {(node.metadata["number"], node.metadata["language"]) for node in response.source_nodes} == {(1, "cs")}
    assert len({node.metadata["url"] for node in response.source_nodes}) == 1


async def test_an_engine_raises_our_errors(tmp_path, open_retriever):
    """As the retriever does."""
    engine = DocsAssistantQueryEngine(open_retriever(str(tmp_path)))
    with pytest.raises(NoIndex):
        engine.query(QUESTION)
    with pytest.raises(NoIndex):
        await engine.aquery(QUESTION)


# LlamaIndex's agent itself uses old names of pydantic and of its workflows
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
async def test_an_agent_uses_it_as_a_tool(address, llm, llm_class, open_retriever):
    """The agent's model sees the answer of the tool, and the tool was asked what the model wrote."""
    asks = f'Thought: I need the docs.\nAction: docs\nAction Input: {{"input": "{QUESTION}"}}'
    said = iter((asks, "Thought: I can answer without using any more tools.\nAnswer: With DOCS_API_KEYS."))
    llm.reply = lambda _: Reply(next(said))
    engine = DocsAssistantQueryEngine(open_retriever(address))
    tool = QueryEngineTool.from_defaults(engine, name="docs", description="The documentation of Docs Assistant.")
    agent = ReActAgent(tools=[tool], llm=llm_class)
    answer = await agent.run("Where do keys go?")
    assert "With DOCS_API_KEYS." in str(answer)
    assert f"{SITE}/en/" in str(llm.calls[-1]["messages"])
    (call,) = answer.tool_calls
    assert call.tool_output.raw_output.source_nodes[0].metadata["number"] == 1


async def test_the_embedding_class_gives_the_vectors_of_the_configured_embedder(llm):
    """With its prefixes, of a question and of passages, with and without an event loop."""
    settings = Settings.load(
        None, embedding_url=llm.url, embedding_model="e", embedding_query_prefix="query: ", embedding_passage_prefix="passage: "
    )  # fmt: skip
    embedding = open_embedding(settings)
    question = await embedding.aget_query_embedding("keys")
    assert await asyncio.to_thread(embedding.get_query_embedding, "keys") == question
    passages = await embedding.aget_text_embedding_batch(["a", "b"])
    assert [await asyncio.to_thread(embedding.get_text_embedding, text) for text in "ab"] == passages
    assert llm.embedded == [["query: keys"]] * 2 + [["passage: a", "passage: b"], ["passage: a"], ["passage: b"]]
    llm.embedding_status = 500
    with pytest.raises(ModelError):
        await embedding.aget_query_embedding("keys")
    await embedding.aclose()

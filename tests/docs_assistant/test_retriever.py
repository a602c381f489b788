"""The retriever for LlamaIndex finds what the service finds, in each of the places that it can search."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from concurrent.futures import CancelledError, ThreadPoolExecutor
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest
from llama_index.core.schema import MetadataMode, NodeWithScore

from app.assistants.assembly import build, opened
from app.core.errors import (
    IndexMismatch,
    NoIndex,
    RequestError,
    SettingsError,
    StoreError,
    StoreUnavailable,
)
from app.core.settings import Settings
from app.routes.request_models import SearchRequest
from app.routes.search import search_result
from app.routes.server import create_app
from docs_assistant.llama_index import DocsAssistantRetriever
from tests.app.routes.scripted import serving, wait_for
from tests.docs_assistant.conftest import KEY
from tests.docs_assistant.corpus import SITE
from tests.fake_llm import fake_llm

QUESTION = "How do I set API keys?"
SEARCHES: tuple[tuple[dict[str, Any], tuple[str, ...]], ...] = (
    ({}, (QUESTION, "Jak přidám nový jazyk?", "jak se meri kvalita odpovedi", "DOCS_LLM_URL", "xyzzy")),
    ({"limit": 12, "language": "cs"}, ("docker", "errors of a stream")),
    ({"filters": {"languages": ["en"], "url_prefixes": [f"{SITE}/en/c"], "sections": ["/en"]}}, ("keys", "klíče")),
)


@asynccontextmanager
async def searching(address: str) -> AsyncIterator[Callable[[dict[str, Any]], Awaitable[list[Any]]]]:
    """A function with the passages of `/v1/search`, without LlamaIndex."""

    async def over_http(body: dict[str, Any]) -> list[Any]:
        data: list[Any] = (await client.post(f"{address}/v1/search", json=body)).json()["data"]
        return data

    async def here(body: dict[str, Any]) -> list[Any]:
        language, request = body.get("language", ""), SearchRequest(**body)
        found = await search_result(assistants.get(""), request, "t", language=language)
        return list(found["data"])

    if address.startswith("http"):
        async with httpx.AsyncClient(headers={"authorization": f"Bearer {KEY}"}) as client:
            yield over_http
    else:
        async with opened(Settings.load(None, store=address)) as assistants:
            yield here


async def test_it_finds_the_passages_of_the_service_with_their_scores(address, open_retriever):
    """In the same order; the nodes say where they come from, and the model reads title, headings and link."""
    compared = 0
    async with searching(address) as search:
        for options, questions in SEARCHES:
            given = {"similarity_top_k" if name == "limit" else name: value for name, value in options.items()}
            retriever = open_retriever(address, **given)
            for question in questions:
                found, expected = await retriever.aretrieve(question), await search({**options, "query": question})
                assert [(node.node_id, node.score, node.text) for node in found] == [
                    (one["id"], one["score"], one["text"]) for one in expected
                ]
                for node, one in zip(found, expected, strict=True):
                    assert_told(node, one)
                    compared += 1
    assert compared > 30


def assert_told(node: NodeWithScore, passage: dict[str, Any]) -> None:
    url, _, anchor = passage["url"].partition("#")
    told = node.metadata
    assert (told["url"], told["anchor"], told["link"], node.node.ref_doc_id) == (url, anchor, passage["url"], url)
    assert told["heading_path"] == " > ".join(passage["headings"])
    shared = ("title", "section", "language", "collection", "modified")
    assert {name: told[name] for name in shared} == {name: passage[name] for name in shared}
    read = node.node.get_content(MetadataMode.LLM)
    assert all(passage[name].strip() in read for name in ("text", "title", "url"))
    assert "2026-03-04" not in read


def test_it_answers_with_and_without_an_event_loop(address, open_retriever):
    """Synchronously, inside a running loop, in a second loop, and from several threads at once."""
    retriever, question = open_retriever(address), QUESTION

    def found() -> list[str]:
        return [node.node_id for node in retriever.retrieve(question)]

    async def inside() -> list[list[str]]:
        nodes = await asyncio.gather(*(retriever.aretrieve(question) for _ in range(5)))
        return [found(), *([node.node_id for node in of_one] for of_one in nodes), await asyncio.to_thread(found)]

    expected = found()
    assert len(expected) == 5
    for _ in range(2):
        assert asyncio.run(inside()) == [expected] * 7


def test_a_closed_or_forgotten_retriever_leaves_no_thread(address, open_retriever):
    """Also without `close`; a search after it opens everything again, and what runs while it closes is cancelled."""
    with open_retriever(address) as retriever:
        first = retriever.retrieve(QUESTION)
    assert retriever.retrieve(QUESTION) == first
    with ThreadPoolExecutor() as pool:
        slow = pool.submit(retriever.loop.run, asyncio.sleep(60))
        wait_for(slow.running)
        retriever.close()
        with pytest.raises(CancelledError):
            slow.result()
    retriever.close()
    for collected_in in ("here", "its own thread"):
        forgotten = DocsAssistantRetriever(address, api_key=KEY)
        assert forgotten.retrieve(QUESTION) == first
        forgotten.itself, loop = forgotten, forgotten.loop._loop
        del forgotten
        assert loop is not None
        if collected_in == "here":
            gc.collect()
        else:
            loop.call_soon_threadsafe(gc.collect)
        wait_for(lambda: "docs-assistant" not in {thread.name for thread in threading.enumerate()})
        assert loop.is_closed()


async def test_failures_of_an_index_are_our_errors(tmp_path, directory, open_retriever):
    """Nothing indexed, another embedder, no server, and questions that the service would refuse."""
    other = {"embedding_url": "http://127.0.0.1:9/v1", "embedding_model": "m"}
    for wrong, error in (
        (str(tmp_path), NoIndex),
        ("opensearch://127.0.0.1:9/docs", StoreUnavailable),
        (Settings.load(None, store=directory, **other), IndexMismatch),
    ):
        retriever = DocsAssistantRetriever(wrong)
        with pytest.raises(error):
            await retriever.aretrieve("keys")
        with pytest.raises(error):
            retriever.retrieve("keys")
        retriever.close()
    with pytest.raises(SettingsError, match="ftp"):
        open_retriever("ftp://x/y").retrieve("keys")


def test_wrong_arguments_and_questions_are_refused(address, open_retriever):
    """Arguments at once, a question when it is asked."""
    for options in ({"similarity_top_k": 51}, {"filters": {"language": ["en"]}}, {"top": 3}):
        with pytest.raises(RequestError):
            open_retriever(address, **options)
    for options, question, param in (
        ({}, "  ", "query"),
        ({}, "x" * 30_000, "query"),
        ({"language": "xx"}, "keys", "language"),
        ({"model": "gpt-4"}, "keys", "model"),
    ):
        with pytest.raises(RequestError) as raised:
            open_retriever(address, **options).retrieve(question)
        assert raised.value.param == param


def test_failures_over_http_have_the_class_that_they_have_in_the_service(tmp_path, service, open_retriever):
    """A wrong key, no index, no service, another service; the address may end in /v1."""
    with pytest.raises(RequestError) as raised:
        open_retriever(service, api_key="wrong").retrieve("keys")
    assert raised.value.code == "invalid_api_key"
    assert open_retriever(f"{service}/v1/").retrieve("keys")
    with pytest.raises(SettingsError, match="isn't the address of a service"):
        open_retriever("http://")
    with pytest.raises(StoreUnavailable, match="can't be reached") as unreachable:
        open_retriever("http://reader:s3cret@127.0.0.1:9").retrieve("keys")
    assert "s3cret" not in str(unreachable.value)
    empty = Settings.load(None, store=str(tmp_path))
    with serving(create_app(build(empty), empty)) as url, pytest.raises(NoIndex, match="Nothing has been indexed"):
        open_retriever(url).retrieve("keys")


async def test_another_server_at_the_address_is_an_error_that_says_so(open_retriever):
    """One that speaks the OpenAI API, but has no search."""
    async with fake_llm() as llm:
        with pytest.raises(StoreError, match="answered 404, not as Docs Assistant does"):
            await open_retriever(llm.url).aretrieve("keys")

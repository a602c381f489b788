"""/mcp over a socket, asked by the official client: two tools, their errors, and keys."""

import asyncio
from contextlib import ExitStack
from dataclasses import replace

import httpx
import pytest
from mcp import Client

from app.core.errors import StoreUnavailable
from app.core.settings import Settings
from app.core.types import Chunk, Hit, Page, Section
from app.routes.server import create_app
from tests.app.routes.scripted import Scripted, ScriptedAssistants, serving

pytestmark = pytest.mark.server
URL = "https://docs.test/volumes"
HIT = Hit(
    Chunk("c", "docs", URL, 0, "Create a claim.", "en", "Volumes", (Section(0, ("Volumes", "Create"), "create"),))
)
OLD = "https://docs.test/v1.2/volumes"
PAGE = Page(URL, "docs", "Volumes", "en", "# Volumes\n\nCreate a claim.", "h")
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class Broken(Scripted):
    async def search(self, request):
        raise StoreUnavailable("http://10.0.0.1 is away")


@pytest.fixture
def serve():
    with ExitStack() as running:

        def start(assistant=None, settings=None):
            assistant = assistant or Scripted(id="", hits=(HIT,), pages=(PAGE,))
            app = create_app(ScriptedAssistants((assistant,)), settings or Settings.load(None))
            return running.enter_context(serving(app))

        yield start


async def test_the_tools_say_what_they_are_for(serve):
    async with Client(serve() + "/mcp") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    assert set(tools) == {"search_docs", "read_page"}
    assert tools["search_docs"].input_schema["required"] == ["query"]
    assert all(tool.description and tool.annotations.read_only_hint for tool in tools.values())


async def test_passages_and_pages_are_given_as_text_and_as_data(serve):
    async with Client(serve() + "/mcp") as client:
        passages = await client.call_tool("search_docs", {"query": "create a volume", "limit": 3})
        page = await client.call_tool("read_page", {"url": f"{URL}#create"})
    assert not passages.is_error
    assert passages.content[0].text == f"[1] Volumes > Create\n{URL}#create (en)\n\nCreate a claim."
    assert passages.structured_content["data"][0]["url"] == f"{URL}#create"
    assert page.content[0].text == f"{URL} (en)\n\n{PAGE.markdown}"
    assert page.structured_content["title"] == "Volumes"


async def test_passages_and_pages_say_their_language_and_their_version(serve):
    """That of the address, or those that the page states; the descriptions of both tools tell of them."""
    chunks = replace(HIT.chunk, url=OLD, language="cs"), replace(HIT.chunk, id="d", versions=("2.0", "2.1"))
    pages = replace(PAGE, url=OLD, language="cs"), replace(PAGE, versions=("2.0", "2.1"))
    assistant = Scripted(id="", hits=tuple(map(Hit, chunks)), pages=pages)
    async with Client(serve(assistant) + "/mcp") as client:
        tools = (await client.list_tools()).tools
        found = await client.call_tool("search_docs", {"query": "create a volume"})
        read = [await client.call_tool("read_page", {"url": page.url}) for page in pages]
    assert all("language" in tool.description and "version" in tool.description for tool in tools)
    editions = ["(cs, version 1.2)", "(en, version 2.0 and 2.1)"]
    assert [line.split(" ", 1)[1] for line in found.content[0].text.splitlines() if line.startswith("http")] == editions
    assert [page.content[0].text.splitlines()[0].split(" ", 1)[1] for page in read] == editions
    for data in (found.structured_content["data"], [page.structured_content for page in read]):
        assert [(one["language"], one["versions"]) for one in data] == [("cs", ["1.2"]), ("en", ["2.0", "2.1"])]


async def test_an_invalid_call_is_reported_to_the_agent(serve):
    async with Client(serve() + "/mcp") as client:
        for tool, arguments, said in (
            ("search_docs", {}, "query: field required"),
            ("search_docs", {"query": " "}, "query: is empty"),
            ("search_docs", {"query": "x", "limit": 500}, "limit"),
            ("search_docs", {"query": "x", "filters": {"tag": "a"}}, "filters.tag"),
            ("read_page", {"url": "file:///etc/passwd"}, "There is no page"),
            ("delete_docs", {}, "There is no tool"),
        ):
            result = await client.call_tool(tool, arguments)
            assert result.is_error
            assert said in result.content[0].text


async def test_a_failure_reveals_no_addresses(serve):
    async with Client(serve(Broken(id="")) + "/mcp") as client:
        result = await client.call_tool("search_docs", {"query": "x"})
    assert result.is_error
    assert result.content[0].text.startswith("The index can't be reached at the moment.")
    assert "10.0.0.1" not in result.content[0].text


async def test_a_key_is_needed_where_keys_are(serve):
    base = serve(settings=Settings.load(None, api_keys="first-key-of-tests"))
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=base, headers=headers) as client:
        refused = await client.post("/mcp", json=PING)
        served = await client.post("/mcp", json=PING, headers={"authorization": "Bearer first-key-of-tests"})
        # nothing stays open that a stop would wait for; agents go on without this stream
        listening = await client.get("/mcp", headers={"authorization": "Bearer first-key-of-tests"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (401, "invalid_api_key")
    assert served.status_code == 200
    assert (listening.status_code, listening.headers["allow"]) == (405, "POST")


async def test_many_first_calls_at_once_are_all_served(serve):
    base = serve()
    headers = {"accept": "application/json, text/event-stream"}
    async with httpx.AsyncClient(base_url=base, headers=headers, timeout=30) as client:
        answers = await asyncio.gather(*(client.post("/mcp", json=PING) for _ in range(20)))
    assert {answer.status_code for answer in answers} == {200}

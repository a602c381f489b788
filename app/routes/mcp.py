"""/mcp: offers search and pages to coding agents over the Model Context Protocol (extra `mcp`)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from importlib import import_module
from importlib.metadata import version
from importlib.util import find_spec
from inspect import getdoc
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from pydantic import Field
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.core.errors import AssistantError, RequestError, quoted
from app.core.gate import Shared
from app.core.generation import page_versions
from app.http.bodies import SMALL, RequestModel, validated
from app.http.door import info_of, log_error
from app.http.errors import api_error
from app.routes.answer_models import Passage
from app.routes.request_models import SearchFilters, SearchRequest
from app.routes.search import search_result
from app.routes.service import Service

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

log = logging.getLogger("app.http")


class SearchDocs(RequestModel):
    """Search the documentation. Returns the best passages with links, titles and scores, and of each its language and, if its page
    has one, the version that it is for. Any of its languages works; `filters` limits the search to languages or versions.
    """

    query: str = Field(description="A question or keywords.")
    limit: int | None = Field(None, ge=1, le=50, description="Number of passages; 5 by default.")
    filters: SearchFilters = Field(default_factory=SearchFilters)


class ReadPage(RequestModel):
    """Read a whole page of the documentation as Markdown, by an address that search_docs returned. Its language and, if it has one,
    its version are in the first line.
    """

    url: str = Field(description="Address of the page; a fragment (#...) is ignored.")


TOOLS: dict[str, type[RequestModel]] = {"search_docs": SearchDocs, "read_page": ReadPage}


class Mcp:
    """The ASGI application of the route. Loads the SDK (27 MB of memory) with the first call."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._starting: Shared[StreamableHTTPSessionManager] = Shared()
        self._running: asyncio.Task[None] | None = None
        self._closing = asyncio.Event()

    def router(self) -> APIRouter:
        """The route. No GET: a stream of messages that the service never sends would stay open, also while it stops."""
        return APIRouter(routes=[Route("/mcp", self, methods=["POST"])])

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request. Raises `RequestError` without a valid key, or if the SDK isn't installed."""
        self._service.access(Request(scope))
        if not find_spec("mcp"):
            raise RequestError(
                "MCP is not installed. Install docs-assistant[mcp] and start the service again.",
                code="mcp_missing",
            )
        manager = await self._starting.get(self._start)
        await manager.handle_request(scope, receive, send)

    async def close(self) -> None:
        """Stop the session manager."""
        self._closing.set()
        if self._running:
            await self._running

    async def _start(self) -> StreamableHTTPSessionManager:
        await asyncio.to_thread(import_module, "mcp.server.streamable_http_manager")
        from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

        manager = StreamableHTTPSessionManager(
            self._server(),
            json_response=True,
            stateless=True,
            max_request_body_size=SMALL,
        )
        ready = asyncio.Event()

        async def run() -> None:  # the manager must be closed in the task that opened it
            async with manager.run():
                ready.set()
                await self._closing.wait()

        self._running = asyncio.create_task(run())
        await ready.wait()
        return manager

    def _server(self) -> Server[Any]:
        from mcp import types
        from mcp.server.lowlevel import Server

        async def list_tools(_: object, __: object) -> types.ListToolsResult:
            return types.ListToolsResult(
                tools=[
                    types.Tool(
                        name=name,
                        description=getdoc(tool),
                        input_schema=tool.model_json_schema(),
                        annotations=types.ToolAnnotations(read_only_hint=True, open_world_hint=False),
                    )
                    for name, tool in TOOLS.items()
                ]
            )

        async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
            try:
                async with self._service.limits.answer():
                    text, data = await self._call(context.request, params.name, params.arguments or {})
            except AssistantError as error:
                info = info_of(context.request)
                log_error(info, error)
                text, data = api_error(error, info.id).error["message"], None
            content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
            return types.CallToolResult(content=content, structured_content=data, is_error=data is None)

        return Server(
            "docs-assistant", version=version("docs-assistant"), on_list_tools=list_tools, on_call_tool=call_tool
        )

    async def _call(self, request: Request, name: str, arguments: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The result of a tool as text for the model and as structured data."""
        assistant = self._service.assistant(self._service.access(request), "")
        if name not in TOOLS:
            raise RequestError(f"There is no tool {quoted(name)}. Available: {', '.join(TOOLS)}.")
        given = validated(TOOLS[name], arguments, "The arguments")
        if isinstance(given, SearchDocs):
            body = SearchRequest(query=given.query, limit=given.limit, filters=given.filters)
            data = await search_result(assistant, body, "mcp")
            return _passages(data["data"]), dict(data)
        assert isinstance(given, ReadPage)
        url = given.url.strip().partition("#")[0]
        page = await assistant.page(url)
        if not page:
            raise RequestError(
                f"There is no page {quoted(url)}. Use an address that search_docs returned.", param="url"
            )
        about = {"url": page.url, "title": page.title, "language": page.language, "modified": page.modified}
        versions = page_versions(page.url, page.versions)
        text = f"{page.url} ({_edition(page.language, versions)})\n\n{page.markdown}"
        return text, {**about, "versions": versions, "markdown": page.markdown}


def _passages(passages: list[Passage]) -> str:
    """The passages as text, each with its headings and address."""
    if not passages:
        return "Nothing was found."
    return "\n\n---\n\n".join(
        f"[{passage['number']}] {' > '.join(dict.fromkeys((passage['title'], *passage['headings'])))}\n"
        f"{passage['url']} ({_edition(passage['language'], passage['versions'])})\n\n{passage['text']}"
        for passage in passages
    )


def _edition(language: str, versions: Sequence[str]) -> str:
    """The language and the versions of a page, such as "en, version 1.2"."""
    return f"{language}, version {' and '.join(versions)}" if versions else language

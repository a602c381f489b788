"""Assistants that follow a script of the test, and a real server to reach them over a socket."""

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any, Self

import httpx
import uvicorn
from fastapi import FastAPI

from app.assistants.file import AssistantTable
from app.assistants.health import PartState
from app.conversations.store import ConversationStore
from app.core.breaker import Breaker
from app.core.errors import NoIndex, RequestError, quoted
from app.core.generation import GenerationInfo, Recipe
from app.core.settings import Settings
from app.core.turn import AnswerRecord, Done, Event, Question, Request, Text, Turn, Usage
from app.core.types import Filters, Hit, Page
from app.http.connections import ConnectionLimits, Connections
from app.http.protocol import BoundedProtocol
from app.models import Model
from app.routes.server import create_app

INFO = GenerationInfo(
    id=3,
    recipe=Recipe(embedder="static-1", dimension=256, splitter="s", analyzer="a"),
    built_at="2026-01-02T03:04:05+00:00",
    languages=("cs", "en"),
    pages=12,
    chunks=345,
)
CHAT = "/v1/chat/completions"
JSON = {"content-type": "application/json"}
TABLE = AssistantTable(
    id="docs-assistant",
    steps=["detect"],
    names={"cs": "Asistent", "en": "Docs Assistant"},
    descriptions={"en": "Answers."},
    suggestions={"cs": ["Jak na to?"], "en": ["How?"]},
)
HELLO = (Text("Ah"), Text("oj č"), Usage(7, 2), Usage(3, 1), Done())


@dataclass
class Scripted:
    """An assistant whose script is events to yield, errors to raise and seconds to wait, in order."""

    id: str = "docs-assistant"
    table: AssistantTable = TABLE
    script: tuple[Event | Exception | float, ...] = HELLO
    asked: list[Request] = field(default_factory=list)
    closed: list[str] = field(default_factory=list)
    prompts: Any = field(default_factory=lambda: SimpleNamespace(personas={}))
    limits: Filters = field(default_factory=Filters)
    hits: tuple[Hit, ...] = ()
    pages: tuple[Page, ...] = ()

    @property
    def store(self) -> Any:
        raise NoIndex("Nothing is indexed yet.")

    async def still_reading(self) -> dict[str, str]:
        """No run is under way."""
        return {}

    async def search(self, request: Request) -> Turn:
        self.asked.append(request)
        generation = SimpleNamespace(info=INFO)
        return Turn(request=request, generation=generation, asked=Question(request.question, "en"), hits=self.hits)

    async def page(self, url: str) -> Page | None:
        return next((page for page in self.pages if page.url == url), None)

    async def answer(self, request: Request, record: AnswerRecord | None = None) -> AsyncIterator[Event]:
        self.asked.append(request)
        end = "cancelled"
        try:
            for line in self.script:
                if isinstance(line, Exception):
                    raise line
                if isinstance(line, int | float):
                    await asyncio.sleep(line)
                else:
                    yield line
            end = "finished"
        finally:
            self.closed.append(end)


@dataclass(frozen=True)
class State:
    ok: bool = True
    store: str = "ok"
    index: GenerationInfo | None = INFO
    model: str = "m-1"
    embedder: str = "static-1"
    details: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, PartState | None] = field(default_factory=dict)
    store_problem = problem = ""

    @property
    def info(self) -> GenerationInfo | None:
        return self.index

    @property
    def status(self) -> str:
        return "ok" if self.ok else "unavailable"


@dataclass
class ScriptedAssistants:
    assistants: tuple[Scripted, ...]
    state: State = State()
    model: Model | None = None
    created: int = 1_700_000_000
    llm_timeout: float = 60.0
    closed: bool = False
    breakers: tuple[Breaker, ...] = ()

    def used(self) -> Mapping[str, Any]:
        return {}

    @property
    def store(self) -> Self:
        return self

    async def kept(self, name: str) -> Mapping[str, Any]:
        return {}

    async def index_states(self) -> Mapping[str, Any]:
        return {}

    def get(self, name: str, /) -> Scripted:
        for assistant in self.assistants:
            if assistant.id == name:
                return assistant
        raise RequestError(f"There is no model {quoted(name)} here.", param="model", code="model_not_found")

    def listed(self) -> tuple[Scripted, ...]:
        return self.assistants

    async def health(self) -> State:
        return self.state

    async def ready(self) -> State:
        return self.state

    async def close(self) -> None:
        self.closed = True


def chat(question: str = "x", *before: Mapping[str, Any], **fields: Any) -> dict[str, Any]:
    """The body of a chat request, behind these earlier messages."""
    return {"model": "docs-assistant", "messages": [*before, {"role": "user", "content": question}], **fields}


def scripted(
    *script: Event | Exception | float, conversations: ConversationStore | None = None, **settings: Any
) -> FastAPI:
    """The application with one scripted assistant and these settings."""
    assistants, made = ScriptedAssistants((Scripted(script=script or HELLO),)), Settings.load(None, **settings)
    return create_app(assistants, made, ingest_command=("false",), conversations=conversations)


def refused(response: httpx.Response) -> tuple[int, str]:
    """Status and code of an error."""
    return response.status_code, response.json()["error"]["code"]


def client_of(
    app: FastAPI, address: str = "127.0.0.1", base: str = "http://localhost", headers: Mapping[str, str] = JSON
) -> httpx.AsyncClient:
    """A client at this address that calls the application in this process."""
    transport = httpx.ASGITransport(app, client=(address, 1234))
    return httpx.AsyncClient(transport=transport, base_url=base, headers=headers)


@contextmanager
def serving(app: FastAPI, **options: Any) -> Iterator[str]:
    """The application behind uvicorn on a free port, in a thread, with the limits of `serve`: its base address."""
    options = {"http": partial(BoundedProtocol, Connections(ConnectionLimits())), "ws": "none"} | options
    server = uvicorn.Server(uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", **options))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        wait_for(lambda: server.started)
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(60)


def wait_for(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """Return as soon as the condition holds; fail when it doesn't in time, which a busy machine needs much of."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"not within {seconds} s"
        time.sleep(0.01)


async def until(condition: Callable[[], object], seconds: float = 60.0) -> None:
    """The same as `wait_for`, while the event loop goes on."""
    async with asyncio.timeout(seconds):
        while not condition():
            await asyncio.sleep(0.01)

"""What mistakes are made in: a site, a language model, an index, a port in use; and the program, run in this process."""

import asyncio
import contextlib
import io
import logging
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import stamina
from starlette.testclient import TestClient

from app.assistants.assembly import build
from app.core.settings import Settings
from app.routes.server import create_app
from docs_assistant.cli import main
from docs_assistant.cli.ingest import index
from tests.end_to_end.program import Program, environment, free_port
from tests.end_to_end.threads import llm_in_a_thread
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import WORDS_SETTING
from tests.ingestion.local_site import Answer, LocalSite, local_site

ROOT = Path(__file__).parents[2]
NOBODY = 65534
GONE = Answer(b"Not found", "text/plain", 404)


@dataclass(frozen=True)
class Said:
    """How a command ended, or what HTTP answered: exit code or status, and all that was printed or sent."""

    code: int
    text: str


@dataclass
class World:
    """The places of mistakes. `names` are put into the rows in place of {site}, {llm} and so on."""

    site: LocalSite
    llm: FakeLLM
    data: Path
    names: dict[str, str] = field(default_factory=dict)

    def fill(self, text: str) -> str:
        """The text with the places' addresses."""
        for name, value in self.names.items():
            text = text.replace(f"{{{name}}}", value)
        return text

    def plain(self, text: str) -> str:
        """The text with names in place of the addresses, for people and for comparing."""
        for name, value in sorted(self.names.items(), key=lambda one: -len(one[1])):
            text = text.replace(value, f"{{{name}}}")
        return text


@dataclass(frozen=True)
class Mistake:
    """A row: what a person does, how it ends, and the essential part of what is said; `before` is what happened earlier."""

    what: str
    line: str
    said: str
    code: int = 1
    settings: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    before: Callable[[World], AbstractContextManager[object]] = lambda _: nullcontext()
    indexed: bool = False
    nobody: bool = False
    model: Callable[[dict[str, Any]], Reply] = lambda _: Reply("Press the button [1].")

    def make(self, world: World, folder: Path) -> Said:
        """Make the mistake in this directory."""
        folder.chmod(0o755)
        for name, text in self.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            (folder / name).write_text(world.fill(text), encoding="utf-8")
        if self.indexed:
            shutil.copytree(world.data, folder / "data")
        settings = {name: world.fill(value) for name, value in self.settings.items()}
        world.llm.reply = self.model
        with contextlib.chdir(folder), _environment(settings), self.before(world), _as_nobody(self.nobody):
            first, *words = (world.fill(word) for word in self.line.split("|"))
            return ACTIONS.get(first, _command)(first, words)


def _command(line: str, words: list[str]) -> Said:
    """`docs-assistant` in this process, with the line's words and more that may have spaces."""
    out, root = io.StringIO(), logging.getLogger()
    handlers, level = root.handlers[:], root.level
    stdin = io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(out), _standard_input(stdin):
            code = main([*line.split(), *words])
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)
    return Said(code, out.getvalue())


def _request(_: str, words: list[str]) -> Said:
    """A request to the service: method, path, `key`, body."""
    method, path, key, body = words
    settings = Settings.load()
    client = TestClient(
        create_app(build(settings), settings), base_url="http://localhost", raise_server_exceptions=False
    )
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    with client:
        answer = client.request(method, path, headers=headers, content=body)
    return Said(answer.status_code, answer.text)


def _process(_: str, words: list[str]) -> Said:
    """Another program."""
    done = subprocess.run(words, env=environment({}), capture_output=True, text=True, timeout=120, check=False)
    return Said(done.returncode, done.stdout + done.stderr)


def _started(_: str, words: list[str]) -> Said:
    """`docs-assistant` as a process that serves, stopped once it says so."""
    running = Program(Path("started"), *words)
    try:
        running.wait_for("Serving on")
    finally:
        running.end(group=True)
    return Said(0, running.out + running.err)


ACTIONS: Mapping[str, Callable[[str, list[str]], Said]] = {"http": _request, "run": _process, "start": _started}


@contextmanager
def _environment(settings: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    during = {name: value for name, value in environment(settings).items() if value != "-"}
    os.environ.clear()
    os.environ.update(during)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _standard_input(stream: io.TextIOWrapper) -> Iterator[None]:
    before, sys.stdin = sys.stdin, stream
    try:
        yield
    finally:
        sys.stdin = before


@contextmanager
def _as_nobody(wanted: bool) -> Iterator[None]:
    """Without the rights of root, where the tests run as root."""
    if not wanted or os.geteuid():
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@contextmanager
def world(folder: Path) -> Iterator[World]:
    """All places, ready."""
    with ExitStack() as stack:
        site, llm = stack.enter_context(local_site()), stack.enter_context(llm_in_a_thread())
        locked, shy = stack.enter_context(local_site()), stack.enter_context(local_site())
        taken = stack.enter_context(socket.create_server(("127.0.0.1", 0)))
        stack.callback(stamina.set_testing, False)
        stamina.set_testing(True, attempts=2)
        _put_pages(site)
        locked.answers = _Refusing()
        _put_pages(shy)
        shy.put("/robots.txt", "User-agent: *\nDisallow: /", "text/plain")
        data = folder / "data"
        settings = Settings.load(None, store=str(data), embedding_model=WORDS_SETTING)
        asyncio.run(index(settings, [f"{site.url}/sitemap.xml"]))
        port = taken.getsockname()[1]
        names = {
            "site": site.url, "shy": shy.url, "host": site.url.removeprefix("http://"), "llm": llm.url, "server": llm.url.removesuffix("/v1"), "port": str(port), "next": str(port + 1),
            "closed": str(free_port()), "search": locked.url.removeprefix("http://"), "root": str(ROOT),
        }  # fmt: skip
        yield World(site, llm, data, names)


class _Refusing(dict[str, Any]):
    """The answers of a server that wants another password everywhere."""

    def get(self, *_: object) -> Answer:
        return Answer(b"Unauthorized", "text/plain", 401)


def _put_pages(site: LocalSite) -> None:
    for n in range(3):
        site.page(f"/gauge-{n}", f"Gauge {n}", f"Gauge number {n} measures the pressure in boiler {n}.")
    site.sitemap("/gauge-0", "/gauge-1", "/gauge-2")
    site.sitemap(at="/empty.xml")
    site.put("/home", "<html><body>Hello</body></html>")
    site.put(
        "/internal.xml",
        f"<urlset><url><loc>{site.url.replace('127.0.0.1', 'localhost')}/gauge-0</loc></url></urlset>",
        "application/xml",
    )

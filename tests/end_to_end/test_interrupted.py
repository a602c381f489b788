"""Ctrl-C ends any command within seconds, whatever it waits for: one line, no process left behind, the index as it was."""

import json
import select
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from app.core.settings import NAMES
from tests.end_to_end.program import PATIENCE, Program, finished, free_port, program
from tests.ingestion.local_site import LocalSite, local_site

pytestmark = pytest.mark.slow
HANGS = 600
SOON = 10.0
"""Seconds on a busy machine; the program gives itself 2."""
OWN = f"""
import time
from pathlib import Path
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.node_parser import SentenceSplitter
from llama_index.core.readers.base import BaseReader

def hang():
    Path({{reached!r}}).touch()
    time.sleep({HANGS})

class Reader(BaseReader):
    def load_data(self):
        hang()

class Splitter(SentenceSplitter):
    def get_nodes_from_documents(self, documents, show_progress=False, **more):
        hang()

class Embedding(BaseEmbedding):
    def _get_text_embedding(self, text):
        hang()
    def _get_query_embedding(self, query):
        hang()
    async def _aget_query_embedding(self, query):
        hang()
"""


@dataclass(repr=False)
class Place:
    """A folder with an index of a site, a server that never answers, and classes of one's own that never return."""

    folder: Path
    site: LocalSite
    silent: socket.socket
    settings: dict[str, str] = field(default_factory=dict)

    @property
    def url(self) -> str:
        """The address of the server that takes connections and says nothing."""
        return f"http://127.0.0.1:{self.silent.getsockname()[1]}"

    def hanging(self, **settings: str) -> None:
        """Set these, with the longest timeouts."""
        waiting = ("llm", "embedding", "crawl", "store", "helper")
        times = {NAMES.variable(f"{name}_timeout"): str(HANGS) for name in waiting}
        self.settings = {**times, "PYTHONPATH": str(self.folder), **settings}

    def own(self, kind: str) -> str:
        """The name of a class of the operator's own that hangs."""
        (self.folder / "own.py").write_text(OWN.format(reached=str(self.folder / "reached")), "utf-8")
        return f"own:{kind}"

    def source(self, lines: str) -> None:
        """Write a file of sources with one that has these lines."""
        (self.folder / "sources.toml").write_text(f'[[source]]\nurl = "{DOCS}"\n{lines}\n')

    def wait_until_it_hangs(self, running: Program) -> None:
        """Returns when the program waits for what never comes."""
        deadline = time.monotonic() + PATIENCE
        while not ((self.folder / "reached").exists() or select.select([self.silent], [], [], 0.05)[0]):
            assert running.process.poll() is None, running.err + running.out
            assert time.monotonic() < deadline, running.err
        time.sleep(0.5)


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with local_site() as site:
        for n in range(40):
            said = " ".join(f"Gauge number {n} measures the pressure in boiler {word}." for word in range(400))
            site.page(f"/gauge-{n}", f"Gauge {n}", said)
        yield site


@pytest.fixture(scope="module")
def made(site: LocalSite, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    done = finished(folder, "ingest", site.sitemap("/gauge-0", "/gauge-1", "/gauge-2"))
    assert done.returncode == 0, done.stderr
    rows = [{"id": "1", "lang": "en", "variant": "1", "question": "What does gauge 1 measure?", "doc": "gauge-1.md"}]
    (folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    return folder


@pytest.fixture
def place(site: LocalSite, made: Path, tmp_path: Path) -> Iterator[Place]:
    shutil.copytree(made / "data", tmp_path / "data")
    shutil.copy(made / "questions.jsonl", tmp_path)
    with socket.create_server(("127.0.0.1", 0), backlog=100) as silent:
        found = Place(tmp_path, site, silent)
        found.hanging()
        yield found


DOCS = "https://docs.example.org/"
HANGING: dict[str, Callable[[Place], object]] = {
    "model": lambda place: place.hanging(DOCS_LLM_URL=f"{place.url}/v1", DOCS_LLM_MODEL="silent"),
    "store": lambda place: place.hanging(DOCS_STORE=f"{place.url.replace('http', 'opensearch')}/docs"),
    "embedder": lambda place: place.hanging(DOCS_EMBEDDING_URL=f"{place.url}/v1", DOCS_EMBEDDING_MODEL="silent"),
    "own embedder": lambda place: place.hanging(
        DOCS_EMBEDDING_CLASS=place.own("Embedding"), DOCS_EMBEDDING_MODEL="own"
    ),
    "splitter in a worker": lambda place: place.hanging(DOCS_SPLITTER=place.own("Splitter")),
    "reader": lambda place: place.source(f'reader = "{place.own("Reader")}"\nlink = "{DOCS}{{file_name}}"'),
    "git": lambda place: place.source(f'git = "{place.url}/docs.git"'),
    "site": lambda _: None,
}
"""What never comes, by the name behind a command."""
CASES = {
    "ask, model": "ask What does gauge 1 measure?",
    "check, store": "check",
    "pages, store": "pages",
    "ingest, site": "ingest {url}/sitemap.xml",
    "ingest, store": "ingest {sitemap}",
    "ingest, embedder": "ingest {sitemap}",
    "ingest, own embedder": "ingest {sitemap}",
    "ingest, splitter in a worker": "ingest {sitemap}",
    "ingest, reader": "ingest sources.toml",
    "ingest, git": "ingest sources.toml",
    "run, site": "run {url}/sitemap.xml --port {port}",
    "run, splitter in a worker": "run {sitemap} --port {port}",
    "eval retrieval, store": "eval retrieval questions.jsonl",
    "eval run, model": "eval run questions.jsonl --out answers",
}


def _words(command: str, place: Place) -> list[str]:
    sitemap = place.site.sitemap(*(f"/gauge-{n}" for n in range(40)))
    values = {"url": place.url, "sitemap": sitemap, "port": free_port()}
    return [word.format(**values) for word in command.split()]


def _assert_stopped(running: Program, place: Place, *, presses: int, group: bool) -> None:
    """Press Ctrl-C so many times; the end is soon and clean."""
    before = _index(place)
    began = time.monotonic()
    for _ in range(presses - 1):
        running.press(group=group)
        time.sleep(0.2)
    code = running.end(signal.SIGINT, group=group)
    assert time.monotonic() - began < SOON, running.err
    assert code == 130, running.err
    assert "Traceback" not in running.err + running.out
    assert [line for line in running.err.splitlines() if line.startswith("docs-assistant:")] == [
        "docs-assistant: stopped by Ctrl-C"
    ], running.err
    assert running.left_behind() == []
    assert _index(place) == before


def _index(place: Place) -> bytes:
    return (place.folder / "data/index.json").read_bytes()


ONCE, ALONE, TWICE = (1, True), (1, False), (2, True)


@pytest.mark.parametrize(
    ("case", "presses", "group"),
    [(case, *ONCE) for case in CASES]
    + [
        (case, *how)
        for case in CASES
        if case in ("run, site", "ingest, splitter in a worker", "eval run, model")
        for how in (ALONE, TWICE)
    ],
)
def test_a_command_that_waits_for_what_never_comes_ends_soon(case: str, place: Place, presses: int, group: bool):
    """A silent server, or code that never returns, in a thread or a worker."""
    HANGING[case.partition(", ")[2]](place)
    with program(place.folder, *_words(CASES[case], place), **place.settings) as running:
        place.wait_until_it_hangs(running)
        _assert_stopped(running, place, presses=presses, group=group)


def test_it_ends_soon_while_a_model_of_this_process_embeds(place: Place):
    """Its threads compute vectors in native code, for minutes in all."""
    place.hanging(DOCS_EMBEDDING_MODEL="local:multilingual-e5-small")
    with program(place.folder, *_words("ingest {sitemap}", place), **place.settings) as running:
        running.wait_for("Pages: 40")
        time.sleep(8)
        _assert_stopped(running, place, presses=1, group=True)

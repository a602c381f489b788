"""Nothing leaves the machine unasked: behind a proxy that records, with an eye on the calls of the kernel, and with an empty home."""

import json
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.program import Program, free_port
from tests.end_to_end.recording import RecordingProxy, places, recording_proxy, traced
from tests.fake_llm import FakeLLM, Reply
from tests.ingestion.local_site import LocalSite, local_site

pytestmark = pytest.mark.slow

LONG_ENOUGH = 40.0
"""Seconds: libraries that send figures about their use collect them first, and begin after 14, 19 and 28."""
QUESTION = "What does gauge 1 measure?"
LIBRARY = f"""
import asyncio
from docs_assistant.llama_index import DocsAssistantRetriever
print(len(asyncio.run(DocsAssistantRetriever().aretrieve({QUESTION!r}))))
"""


@dataclass
class Place:
    """A directory with an empty home beside it, whose programs are watched."""

    folder: Path
    proxy: RecordingProxy
    settings: dict[str, str]
    number: int = 0

    @property
    def home(self) -> Path:
        return self.folder / "home"

    def start(self, *words: str) -> Program:
        """Run these words of Python's command line."""
        self.number += 1
        command = (*traced(self.folder / f"{self.number}.trace"), sys.executable, "-P")
        return Program(self.folder, *words, command=command, **self.settings)

    def finish(self, *words: str) -> Program:
        """The same, up to its end."""
        running = self.start(*words)
        assert running.process.wait(600) == 0, running.out + running.err
        return running

    @property
    def reached(self) -> set[str]:
        """All that was tried, by name through the proxy or by address."""
        return self.proxy.asked.union(*(places(trace) for trace in self.folder.glob("*.trace")))


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with local_site() as site:
        site.page("/gauge-1", "Gauge 1", "Gauge 1 measures the pressure in the boiler.", "It is read twice a day.")
        site.page("/gauge-2", "Gauge 2", "Gauge 2 measures the temperature of the water.", "It is read every hour.")
        yield site


@pytest.fixture(params=["a model", "no model"])
def place(request: pytest.FixtureRequest, site: LocalSite, llm: FakeLLM, tmp_path: Path) -> Iterator[Place]:
    """With a model, its server and a splitter of LlamaIndex are configured, too."""
    llm.reply = lambda _: Reply("Gauge 1 measures the pressure in the boiler [1].")
    models = {
        "DOCS_LLM_URL": llm.url,
        "DOCS_LLM_MODEL": "m",
        "DOCS_SPLITTER": "llama_index.core.node_parser:SentenceSplitter",
    }
    with recording_proxy(site.url, llm.url) as proxy:
        own = {"HOME": str(tmp_path / "home"), "XDG_CACHE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}
        own |= models if request.param == "a model" else {}
        (tmp_path / "home").mkdir()
        yield Place(tmp_path, proxy, {**own, **proxy.settings, "PYTHONPATH": str(Path(__file__).parents[2])})


def evaluate(place: Place) -> None:
    """What engineers run: the library, and a run of questions with its reports."""
    assert int(place.finish("-c", LIBRARY).out)
    rows = [
        {"id": "1", "lang": "en", "variant": "1", "question": QUESTION, "doc": "gauge-1", "answer": "The pressure."}
    ]
    (place.folder / "questions.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")
    evidently = ["--evidently"] if find_spec("evidently") else []
    place.finish("-m", "docs_assistant.cli", "eval", "run", "questions.jsonl", "--out", "judged", *evidently)
    assert (place.folder / "judged/evidently.html").exists() is bool(evidently)


def test_commands_and_the_service_reach_configured_addresses_only(place: Place, site: LocalSite, llm: FakeLLM):
    """`ingest`, `ask`, `serve` for longer than it takes a library to report, and with a model the library and `eval`."""
    place.finish("-m", "docs_assistant.cli", "ingest", site.sitemap("/gauge-1", "/gauge-2"))
    answered = place.finish("-m", "docs_assistant.cli", "ask", QUESTION)
    assert "pressure" in answered.out
    if "DOCS_LLM_URL" in place.settings:
        evaluate(place)
    port = free_port()
    running = place.start("-m", "docs_assistant.cli", "serve", "--port", str(port))
    running.url = f"http://127.0.0.1:{port}"
    try:
        running.wait_until_served()
        until = time.monotonic() + LONG_ENOUGH
        while time.monotonic() < until:
            body = {"model": "docs-assistant", "messages": [{"role": "user", "content": QUESTION}]}
            said = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=60).text
            assert "pressure" in said
            time.sleep(2)
    finally:
        running.end(group=True)  # strace itself passes no signal on

    allowed = {f"127.0.0.1:{place.proxy.server_port}", f"127.0.0.1:{port}", *place.proxy.allowed}
    assert place.reached - allowed == set()
    assert any(place.proxy.allowed & place.reached), "nothing was recorded at all"
    assert [str(file.relative_to(place.home)) for file in place.home.rglob("*") if file.is_file()] == []

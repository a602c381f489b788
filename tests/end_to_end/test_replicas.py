"""Two instances with one index and one database behind a real HAProxy, as deploy/haproxy configures it: one stops, one is killed."""

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import pytest

from tests.app.routes.scripted import wait_for
from tests.end_to_end.asking import ask
from tests.end_to_end.haproxy import NAME, PROGRAM, haproxy
from tests.end_to_end.program import free_port, program
from tests.fake_llm import FakeLLM, Reply

LONG = "The documentation says so [1]. " * 6
READERS = 6
CUT = "incomplete chunked read"
"""What httpx says of a stream that broke off."""


class Reader(threading.Thread):
    """Asks one question after another in a conversation, never the same again; `faults` has what wasn't a whole answer."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.url, self.over = url, threading.Event()
        self.conversation = httpx.post(f"{url}/v1/conversations", json={}, timeout=60).json()["id"]
        self.answered: list[str] = []
        self.faults: list[str] = []

    def run(self) -> None:
        while not self.over.is_set():
            question = f"What is a generation? ({len(self.answered) + len(self.faults)})"
            try:
                answer = ask(self.url, question, stream=True, timeout=120, conversation=self.conversation)
            except httpx.HTTPError as error:
                self.faults.append(repr(error))
            else:
                whole = answer.done and not answer.errors and "says so" in answer.text
                (self.answered if whole else self.faults).append(question if whole else f"{answer}")

    def kept(self) -> set[str]:
        """The questions in the conversation."""
        address = f"{self.url}/v1/conversations/{self.conversation}/answers?limit=100"
        return {one["question"] for one in httpx.get(address, timeout=60).json()["data"]}


def wait_until(url: str, status: int) -> None:
    """Return when /health/ready answers so."""
    deadline = time.monotonic() + 60
    while True:
        try:
            if httpx.get(f"{url}/health/ready", timeout=30).status_code == status:
                return
        except httpx.TransportError:
            pass
        assert time.monotonic() < deadline, url
        time.sleep(0.05)


def answer_of_the_other(one: str, other: str) -> None:
    """An answer of one instance can be rated at once at the other, and the next question there follows it."""
    first = httpx.post(f"{one}/v1/responses", json={"model": "docs-assistant", "input": "What is a chunk?"}, timeout=60)
    id_ = first.json()["id"]
    assert httpx.post(f"{other}/v1/answers/{id_}/feedback", json={"rating": "up"}, timeout=60).status_code == 200
    follows = {"model": "docs-assistant", "input": "And how long is it?", "previous_response_id": id_}
    assert httpx.post(f"{other}/v1/responses", json=follows, timeout=60).status_code == 200


def one_more_each(readers: list[Reader]) -> None:
    """Return when each reader has got another answer."""
    before = [len(reader.answered) for reader in readers]
    wait_for(lambda: all(len(reader.answered) > n for reader, n in zip(readers, before, strict=True)), 120)


@pytest.mark.slow
def test_a_stop_under_streams_loses_no_request_and_a_kill_only_the_streams_that_it_cuts(
    indexed: Path, llm: FakeLLM, tmp_path: Path
):
    if not PROGRAM:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)("no HAProxy here: apt install haproxy")
    llm.reply = lambda _: Reply(LONG, piece_delay=0.05)
    settings = {"DOCS_LLM_URL": llm.url, "DOCS_LLM_MODEL": "m", "DOCS_MIN_EVIDENCE": "0"}
    settings |= {"DOCS_TUNING__HELPER_CALLS": "0", "DOCS_ALLOWED_HOSTS": f"{NAME},127.0.0.1", "DOCS_OPEN": "true"}
    ports = free_port(), free_port()
    one, other = (f"http://127.0.0.1:{port}" for port in ports)

    def start(port: int):
        return program(indexed, "serve", "--port", str(port), **settings)

    with start(ports[0]) as first, start(ports[1]) as second, haproxy(tmp_path, ports) as url:
        for address in (one, other, url):
            wait_until(address, 200)
        answer_of_the_other(one, other)
        readers = [Reader(url) for _ in range(READERS)]
        for reader in readers:
            reader.start()
        one_more_each(readers)
        first.end(seconds=120)
        with start(ports[0]):
            wait_until(one, 200)
            one_more_each(readers)
            assert [reader.faults for reader in readers] == [[]] * READERS
            second.end(signal.SIGKILL)
            one_more_each(readers)
            for reader in readers:
                reader.over.set()
                reader.join(120)
            assert all(len(reader.faults) <= 1 and CUT in "".join(reader.faults or [CUT]) for reader in readers)
            assert all(set(reader.answered) <= reader.kept() for reader in readers)

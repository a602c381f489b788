"""Conversations of a real service that is killed, stopped and started again."""

import json
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import httpx
import pytest

from tests.app.routes.scripted import wait_for
from tests.end_to_end.asking import ask
from tests.end_to_end.program import service
from tests.fake_llm import FakeLLM, Reply
from tests.postgres import cluster

QUESTION = "What is a generation?"
LONG = " ".join(f"word{n}" for n in range(400))
PATIENT = (
    sys.executable,
    "-P",
    "-c",
    "import sys; from docs_assistant.cli import main; from app.conversations import store; store.WAIT = 60; sys.exit(main())",
)
"""The program, whose answers wait for the database of a busy machine, too: longer than half a second."""


@pytest.fixture(scope="module")
def postgres():
    with cluster() as running:
        yield running


def answers_of(base: str, conversation: str) -> list[str]:
    """The questions of the conversation that are kept, the oldest first."""
    kept = httpx.get(f"{base}/v1/conversations/{conversation}/answers?limit=100&order=asc").json()["data"]
    return [one["question"] for one in kept]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_kill_9_loses_at_most_the_answers_in_flight(indexed: Path, llm: FakeLLM, kind: str, request):
    """What a client has got the end of is there after the restart, however soon after it the service was killed."""
    settings = {"DOCS_LLM_URL": llm.url, "DOCS_LLM_MODEL": "scripted", "DOCS_MIN_EVIDENCE": "0"}
    settings["DOCS_TUNING__HELPER_CALLS"] = "0"
    if kind == "postgresql":
        settings["DOCS_DATABASE"] = request.getfixturevalue("postgres").new_database()
    ended: list[str] = []
    conversation = ""
    for number in range(3):
        with service(indexed, "serve", command=PATIENT, **settings) as running:
            conversation = conversation or httpx.post(f"{running.url}/v1/conversations", json={}).json()["id"]
            assert set(ended) <= set(answers_of(running.url, conversation))
            llm.reply = lambda _: Reply("The second passage says it [2].")
            for each in range(3):
                question = f"{QUESTION} ({number}.{each})"
                answer = ask(running.url, question, stream=each % 2 == 0, conversation=conversation)
                assert answer.text
                ended.append(question)
            llm.reply = lambda _: Reply(LONG, piece_delay=0.02)
            slow = threading.Thread(target=_give_up, args=(running.url, conversation))
            slow.start()
            wait_for(lambda: llm.open)
            llm.reply = lambda _: Reply("It says so [1].")
            question = f"{QUESTION} ({number}.9)"
            ask(running.url, question, stream=True, conversation=conversation)
            running.end(signal.SIGKILL)  # at once after the last byte
            ended.append(question)
            slow.join(120)
    with service(indexed, "serve", command=PATIENT, **settings) as running:
        found = answers_of(running.url, conversation)
        assert [one for one in found if "(99)" not in one] == ended
        # and a stop that is asked for loses nothing at all, not even the beginning of an answer
        llm.reply = lambda _: Reply(LONG, piece_delay=0.02)
        slow = threading.Thread(target=_give_up, args=(running.url, conversation))
        slow.start()
        wait_for(lambda: llm.open)
        running.end()
        slow.join(120)
    with service(indexed, "serve", command=PATIENT, **settings) as running:
        assert len([one for one in answers_of(running.url, conversation) if "(99)" in one]) >= 1
        listed = httpx.get(f"{running.url}/v1/conversations").json()["data"]
        assert [one["title"] for one in listed] == [ended[0]]


def _give_up(base: str, conversation: str) -> None:
    with suppress(httpx.TransportError):
        ask(base, f"{QUESTION} (99)", stream=True, conversation=conversation)


def test_a_service_that_keeps_nothing_loads_no_database(tmp_path: Path):
    code = """if True:
        import json, sys
        from pathlib import Path
        import docs_assistant.cli.serve, app.routes.server, app.assistants.assembly
        from app.conversations.opening import open_conversations
        from app.core.settings import Settings
        kept = open_conversations(Settings.load(None, retention_days=0), Path("data"))
        print(json.dumps([kept, [name for name in ("app.conversations.database", "aiosqlite", "psycopg") if name in sys.modules]]))
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert json.loads(done.stdout) == [None, []]
    assert not list(tmp_path.iterdir())

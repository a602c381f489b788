"""Shutdown during answers: no client receives a partial answer that looks complete."""

import json
import threading

import httpx
import pytest
import uvicorn
from fastapi import FastAPI

from app.core.settings import Settings
from app.core.turn import Done, Text
from app.routes.server import create_app
from docs_assistant.cli import serve
from docs_assistant.cli.server import Server
from tests.app.routes.scripted import CHAT, Scripted, ScriptedAssistants, chat, scripted, wait_for

ASKED = chat("How?")


def served(app: FastAPI) -> tuple[Server, str, threading.Thread]:
    """The application in a server of ours that runs in a thread, and its address."""
    listener = serve.bind("127.0.0.1", 0)
    server = Server(app, uvicorn.Config(app, log_level="critical", lifespan="on"), drain_timeout=3)
    running = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    running.start()
    return server, f"http://127.0.0.1:{listener.getsockname()[1]}", running


def test_a_balancer_notices_a_stop_before_any_request_is_refused(monkeypatch):
    """A service that is asked whether it is ready says no first, and answers on: what is new, and what is under way."""
    monkeypatch.setattr("docs_assistant.cli.server.NOTICE", 600.0)
    app = scripted(Text("An answer"), 0.5, Done())
    server, url, running = served(app)
    wait_for(lambda: server.started)
    with httpx.Client(base_url=url, timeout=30, trust_env=False) as client:
        assert client.get("/health/ready").status_code == 200
        with client.stream("POST", CHAT, json=ASKED | {"stream": True}) as under_way:
            server.should_exit = True
            wait_for(lambda: getattr(app.state, "leaving", False))
            refused = client.get("/health/ready")
            assert (refused.status_code, refused.headers["connection"]) == (503, "close")
            for asked in (ASKED, ASKED | {"stream": True}):
                answer = client.post(CHAT, json=asked)
                # so that a client, or a proxy that doesn't check, connects to another instance next time
                assert (answer.status_code, answer.headers["connection"]) == (200, "close")
            assert client.get("/health/live").status_code == 200
            assert under_way.read().endswith(b"data: [DONE]\n\n")
    server.force_exit = True  # a second Ctrl-C
    running.join(20)
    assert not running.is_alive()


@pytest.mark.plugins
def test_what_is_under_way_ends_with_an_error_and_what_is_new_is_refused():
    """Streams of both APIs end with their error event, whole answers and new requests with a 503 that says when to come."""
    slow = Scripted(script=(Text("Half an answer"), 60.0, Done()))
    silent = Scripted("silent", script=(60.0, Done()))
    app = create_app(ScriptedAssistants((slow, silent)), Settings.load(None), open_after=30)
    server, url, running = served(app)
    got: dict[str, httpx.Response] = {}

    def ask(name: str, path: str, body: dict[str, object]) -> threading.Thread:
        def asking() -> None:
            got[name] = httpx.post(url + path, json=body, timeout=60, trust_env=False)

        thread = threading.Thread(target=asking, daemon=True)
        thread.start()
        return thread

    asking = [
        ask("stream", CHAT, ASKED | {"stream": True}),
        ask("silent stream", CHAT, ASKED | {"stream": True, "model": "silent"}),
        ask("whole", CHAT, ASKED),
        ask("responses", "/v1/responses", {"model": "docs-assistant", "input": "How?", "stream": True}),
    ]
    wait_for(lambda: len(slow.asked) == 3 and silent.asked)
    server.should_exit = True
    wait_for(lambda: getattr(app.state, "stopping", False))
    for path in (CHAT, "/v1/models", "/health"):
        refused = httpx.request("POST" if path == CHAT else "GET", url + path, json=ASKED, trust_env=False)
        assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
        assert refused.json()["error"]["type"] == "server_error"
    for thread in (*asking, running):
        thread.join(60)
    assert got["stream"].status_code == 200
    *_, event, end = got["stream"].text.strip().split("\n\n")
    assert end == "data: [DONE]"
    assert "stopping" in json.loads(event.removeprefix("data: "))["error"]["message"]
    assert "response.failed" in got["responses"].text
    for name in ("silent stream", "whole"):
        assert (got[name].status_code, got[name].headers["retry-after"]) == (503, "5")
        assert "stopping" in got[name].json()["error"]["message"]
    assert slow.closed == ["cancelled"] * 3  # and nothing goes on upstream

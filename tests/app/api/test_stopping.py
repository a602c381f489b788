"""Shutdown during answers: no client receives a partial answer that looks complete."""

from __future__ import annotations

import json
import threading

import httpx
import uvicorn

from app.api.server import create_app
from app.cli import serve
from app.cli.server import Server
from app.core.settings import Settings
from app.core.turn import Done, Text
from tests.app.api.scripted import Scripted, ScriptedAssistants, wait_for

ASKED = {"model": "docs-assistant", "messages": [{"role": "user", "content": "How?"}]}
CHAT = "/v1/chat/completions"


def test_what_is_under_way_ends_with_an_error_and_what_is_new_is_refused():
    """Streams of both APIs end with their error event, whole answers and new requests with a 503 that says when to come."""
    slow = Scripted(script=(Text("Half an answer"), 60.0, Done()))
    silent = Scripted("silent", script=(60.0, Done()))
    app = create_app(ScriptedAssistants((slow, silent)), Settings.load(None), open_after=30)
    listener = serve.bind("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    server = Server(app, uvicorn.Config(app, log_level="critical", lifespan="on"), drain_timeout=1)
    running = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, daemon=True)
    running.start()
    got: dict[str, httpx.Response] = {}

    def ask(name: str, path: str, body: dict[str, object]) -> threading.Thread:
        def asking() -> None:
            got[name] = httpx.post(url + path, json=body, timeout=30, trust_env=False)

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
        thread.join(20)
    assert got["stream"].status_code == 200
    *_, event, end = got["stream"].text.strip().split("\n\n")
    assert end == "data: [DONE]"
    assert "stopping" in json.loads(event.removeprefix("data: "))["error"]["message"]
    assert "response.failed" in got["responses"].text
    for name in ("silent stream", "whole"):
        assert (got[name].status_code, got[name].headers["retry-after"]) == (503, "5")
        assert "stopping" in got[name].json()["error"]["message"]
    assert slow.closed == ["cancelled"] * 3  # and nothing goes on upstream

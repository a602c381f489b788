"""A web hook is told when a run failed, or when none has succeeded for too long."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.core.settings import Settings
from app.index import open_store
from app.index.run_history import EndedRun, RunOrigin, add_run
from app.routes.server import create_app
from tests.app.routes.scripted import serving, until


class Hook(ThreadingHTTPServer):
    """A web hook that keeps what it was told; the first request of each kind fails."""

    def __init__(self) -> None:
        self.told = list[Any]()
        self.asked = list[str]()
        self.endless, self.sent = False, 0
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: Hook

    def do_POST(self) -> None:  # the library's name
        told = json.loads(self.rfile.read(int(self.headers["content-length"])))
        known = told["event"] in self.server.asked
        self.server.asked.append(told["event"])
        if known:
            self.server.told.append(told)
        self.send_response(200 if known else 500)
        self.end_headers()
        with suppress(OSError):  # an answer without an end, of which nobody needs anything
            while self.server.endless:
                self.wfile.write(b"x" * 65_536)
                self.server.sent += 65_536

    def log_message(self, *_: object) -> None:
        """Nothing on standard error."""


@contextmanager
def hooked() -> Iterator[Hook]:
    hook = Hook()
    threading.Thread(target=hook.serve_forever, daemon=True).start()
    try:
        yield hook
    finally:
        hook.shutdown()
        hook.server_close()


async def test_a_failed_run_and_a_silence_are_told_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog):
    """Also what the web hook didn't take at first; the log doesn't have its address, which is a secret."""
    monkeypatch.setattr("app.routes.admin.problems.EVERY", 0.02)
    with hooked() as hook:
        place = f"http://127.0.0.1:{hook.server_port}/secret"
        settings = Settings.load(None, store=str(tmp_path), run_webhook=place, run_hours=1e-4)
        store = open_store(settings)
        await add_run(store, EndedRun(RunOrigin("nightly"), time.time(), 1.0, "failed", errors=("an old failure",)))
        async with opened(settings) as assistants:
            with serving(create_app(assistants, settings)):
                failed = EndedRun(RunOrigin("nightly"), time.time(), 1.0, "failed", errors=("The disk is full.",))
                await add_run(store, failed)
                await until(lambda: len([one for one in hook.told if one["event"] == "no_run"]) > 1)
                (one,) = [one for one in hook.told if one["event"] == "run_failed"]
                assert one["text"] == "Docs Assistant: The last run ended as failed: The disk is full."
                assert "No run has succeeded for" in next(o for o in hook.told if o["event"] == "no_run")["message"]
        await store.close()
    assert "status 500" in caplog.text
    assert "/secret" not in caplog.text


async def test_what_a_site_says_does_nothing_in_a_chat_and_an_endless_answer_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Nobody is called, no address is behind other words, and no line looks like another message."""
    monkeypatch.setattr("app.routes.admin.problems.EVERY", 0.02)
    said = "<!channel> <https://evil.tld|Log in> @all [here](https://evil.tld) `x`\n# Mended " + "y" * 3000
    with hooked() as hook:
        hook.endless = True
        settings = Settings.load(None, store=str(tmp_path), run_webhook=f"http://127.0.0.1:{hook.server_port}/")
        store = open_store(settings)
        async with opened(settings) as assistants:
            with serving(create_app(assistants, settings)):
                await add_run(store, EndedRun(RunOrigin("http"), time.time(), 1.0, "failed", errors=(said,)))
                await until(lambda: hook.told)
                hook.endless = False
        await store.close()
    (told,) = hook.told
    assert "<!channel>" in told["message"]  # as it is, for programs
    assert not set(told["text"]) & set("<>[]`@&\n")
    assert len(told["text"]) < 1100
    assert hook.sent < 8_000_000  # what buffers of the system take of two answers


async def test_a_site_that_a_published_run_could_not_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Once for each run, also after one that met another run."""
    monkeypatch.setattr("app.routes.admin.problems.EVERY", 0.02)
    with hooked() as hook:
        settings = Settings.load(None, store=str(tmp_path), run_webhook=f"http://127.0.0.1:{hook.server_port}/hook")
        store = open_store(settings)
        async with opened(settings) as assistants:
            with serving(create_app(assistants, settings)):
                ended = EndedRun(RunOrigin("nightly"), time.time(), 1.0, "partial")
                await add_run(store, replace(ended, failed_sources=("https://a.example.org/: it is down",)))
                await until(lambda: hook.told)
                await add_run(store, replace(ended, result="published"))
                await add_run(store, replace(ended, result="failed", errors=("The disk is full.",)))
                await until(lambda: len(hook.told) > 1)
        await store.close()
    said = {one["event"]: one["text"] for one in hook.told}
    assert said["site_failed"].endswith("whose pages stay as they were: https://a.example.org/: it is down")
    assert list(said) == ["site_failed", "run_failed"]


def test_an_address_that_is_none_is_a_mistake_in_the_settings():
    with pytest.raises(Exception, match="web address"):
        Settings.load(None, run_webhook="chat.example.org")

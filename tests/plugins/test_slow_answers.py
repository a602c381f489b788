"""The plugin of the page: it hears of each answer, and operators see the slow ones; and what the hook promises."""

from __future__ import annotations

import logging
from typing import Any

import httpx
import pluggy
import pytest
from playwright.sync_api import Page, expect

from app.core import hooks
from app.core.turn import AnswerRecord
from docs_assistant import hookimpl
from tests.end_to_end.program import Program
from tests.fake_llm import FakeLLM, Reply
from tests.frontend.conftest import Start, chromium, handbook, page, start  # noqa: F401  # fixtures
from tests.plugins.test_loading import install_shown

SLOW, QUICK = "How do I enlarge a volume slowly?", "How do I enlarge a volume?"
ADMIN = {"authorization": "Bearer the-admin-key-of-tests"}


@pytest.fixture(scope="module")
def service(start: Start, running_llm: FakeLLM, tmp_path_factory: pytest.TempPathFactory) -> Program:  # noqa: F811
    """A service with the plugin, which has given a slow answer and a quick one."""
    folder = tmp_path_factory.mktemp("slow")
    tried = install_shown(folder, "views", "slow_answers.py", "slow.js", "pyproject.toml")
    running_llm.reply = lambda body: Reply("Set its size [1].", delay=3.0 * ("slowly" in str(body)))
    settings = {"DOCS_ADMIN_KEYS": "the-admin-key-of-tests", "DOCS_ANSWER_CACHE": "0", "SLOW_SECONDS": "2"}
    running = start(PYTHONPATH=str(folder / tried), **settings)
    for text in (SLOW, QUICK):
        body = {"model": "docs-assistant", "messages": [{"role": "user", "content": text}]}
        answer = httpx.post(f"{running.url}/v1/chat/completions", json=body, timeout=120, trust_env=False)
        assert answer.status_code == 200, answer.text
    return running


@pytest.mark.server
@pytest.mark.slow
def test_operators_get_the_slow_answers_alone(service: Program) -> None:
    address = f"{service.url}/v1/admin/slow"
    assert httpx.get(address, trust_env=False).status_code == 401
    (row,) = httpx.get(address, headers=ADMIN, trust_env=False).json()["data"]
    assert row["question"] == SLOW
    assert row["seconds"] > 2


@pytest.mark.server
@pytest.mark.slow
def test_the_view_shows_them(page: Page, service: Program) -> None:  # noqa: F811
    """It stands among the views, with its title, and its script draws the rows."""
    page.goto(f"{service.url}/admin/")
    page.get_by_label("Key", exact=True).fill("the-admin-key-of-tests")
    page.get_by_role("button", name="Continue").click()
    page.get_by_role("link", name="Slow answers").click()
    expect(page.get_by_text(SLOW)).to_be_visible()
    assert QUICK not in page.content()


class Listener:
    """A part that hears of answers."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error, self.heard = error, list[AnswerRecord]()

    @hookimpl
    def answered(self, record: AnswerRecord) -> None:
        self.heard.append(record)
        if self.error:
            raise self.error


class Counter:
    """One that needs no parameter."""

    count = 0

    @hookimpl
    def answered(self) -> None:
        self.count += 1


def test_a_plugin_that_fails_keeps_no_other_from_hearing(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whichever is asked first; the log names it."""
    plugins = pluggy.PluginManager(hooks.GROUP)
    parts: dict[str, Any] = {
        "first": Listener(ValueError("no")),
        "second": Listener(ValueError("no")),
        "third": Counter(),
    }
    for name, part in parts.items():
        plugins.register(part, name)
    monkeypatch.setattr(hooks, "plugins", lambda: plugins)
    own, record = Listener(), AnswerRecord()
    with caplog.at_level(logging.ERROR, logger="app.core"):
        hooks.answer_listener(own)(record)
    assert own.heard == parts["first"].heard == parts["second"].heard == [record]
    assert parts["third"].count == 1
    assert sorted(line.getMessage() for line in caplog.records) == [
        "The plugin first failed after an answer.",
        "The plugin second failed after an answer.",
    ]

"""What a person sees of us in the real Open WebUI, set up by the lines of docs/en/clients.md."""

import json
import time
from typing import Any

import pytest

from tests.end_to_end.program import Program
from tests.fake_llm import FakeLLM, Reply
from tests.open_webui.chat import Chat

TEXT = "Give the address of its sitemap to the command [1]. The report then says what was read [2]."
FOLLOW_UP = "Half an hour for each thousand pages [1]."
TITLE = "Indexing another site"
TITLE_TASK = "Generate a concise title"


def saying(answer: Reply):
    """Answers are asked for as a stream; the title, the only task that is on, and helper steps get what they want."""

    def reply(body: dict[str, Any]) -> Reply:
        if body.get("stream"):
            return answer
        prompt = body["messages"][0]["content"]
        if TITLE_TASK in prompt:
            return Reply(json.dumps({"title": TITLE}))
        return Reply("en: index, site, sitemap\ncs: index, web, sitemap", delay=1.5)  # long enough to be seen waiting

    return reply


def test_the_start_page_offers_the_assistant(chat: Chat, llm: FakeLLM):
    """An ordinary user sees its friendly name, what it is for, and first questions in both languages, which a click asks."""
    llm.reply = saying(Reply("Run this command [1]."))
    chat.page.locator('[id^="model-selector-"]').first.click()
    chat.page.get_by_role("option", name="Docs Assistant").or_(
        chat.page.get_by_role("button", name="Docs Assistant")
    ).first.wait_for()
    chat.picture("picker")
    chat.page.keyboard.press("Escape")
    assert chat.shows("Answers questions from this documentation, with links.")
    assert chat.shows("Jak zaindexovat")
    chat.picture("start")
    chat.page.get_by_text("Install and").first.click()
    chat.finished()
    assert not chat.foreign


def test_a_conversation(chat: Chat, llm: FakeLLM, assistant: Program):
    """A question, its answer with status line and sources to click, and a question that follows."""
    llm.reply = saying(Reply(TEXT, piece_delay=0.05))
    chat.ask("How do I index another site?")
    assert chat.shows("Searching the documentation…")
    chat.picture("status")
    text = chat.finished()
    assert "Give the address of its sitemap" in text
    assert "**Sources**" not in text
    assert "[1]" not in text  # a chip with the page's name
    assert chat.message.get_by_text("Pages found:").count()
    assert chat.shows(TITLE)
    chat.picture("answer")
    sources_are_listed(chat, assistant)
    chat.page.reload()
    chat.page.get_by_role("button", name="2 Sources").wait_for()

    llm.reply = saying(Reply(FOLLOW_UP))
    chat.ask("And how long does it take?")
    chat.shows("Half an hour")
    chat.finished()
    chat.picture("follow-up")
    asked = [call["messages"] for call in llm.calls if call.get("stream")][-1]
    assert "Give the address of its sitemap" in json.dumps(asked)
    assert not chat.foreign


def sources_are_listed(chat: Chat, assistant: Program) -> None:
    """Two of them by their titles; a click shows the passage with a link to the page."""
    chat.message.get_by_role("button", name="2 Sources").click()
    listed = chat.message.locator('button[id^="source-"]')
    listed.first.wait_for()
    assert listed.count() == 2
    assert all("http" not in text for text in listed.all_inner_texts())
    chat.picture("sources")
    listed.first.click()
    dialog = chat.page.locator('[role="dialog"], .modal').last
    dialog.wait_for()
    chat.picture("passage")
    assert len(dialog.inner_text()) > 100
    links = dialog.locator("a[href]").evaluate_all("all => all.map(a => a.href)")
    assert any(link.startswith(assistant.url) for link in links)
    chat.page.keyboard.press("Escape")


def test_a_statement_that_no_passage_has_is_marked(chat: Chat, llm: FakeLLM):
    """Behind it, as Open WebUI shows what every client gets."""
    invented = "Set `DOCS_LISTEN_SOCKET` to answer on a socket as well."
    llm.reply = saying(Reply(f"Set `DOCS_PORT` to the port that the service listens on [1]. {invented}"))
    chat.ask("Which setting changes the port?")
    assert chat.finished().count("(⚠ not found in the documentation)") == 1
    chat.picture("marked")


def test_a_czech_question(chat: Chat, llm: FakeLLM):
    """The status line is in its language."""
    llm.reply = saying(Reply("Zadejte příkazu adresu mapy webu [1]."))
    chat.ask("Jak zaindexovat jiný web?")
    assert chat.shows("Prohledávám dokumentaci…")
    assert "Zadejte" in chat.finished()
    chat.picture("answer")


def test_an_error_can_be_read(chat: Chat, llm: FakeLLM):
    """It says when to come back; no status code, no JSON."""
    llm.reply = lambda _: Reply(status=429, headers={"Retry-After": "7"})
    chat.ask("How do I index another site?")
    assert chat.shows("Try again in 7 s.")
    chat.picture("error")
    assert '{"error"' not in chat.page.locator("body").inner_text()


def test_a_question_that_is_refused_says_why(chat: Chat, llm: FakeLLM):
    """An error before anything is searched."""
    chat.ask("x" * 21_000)
    assert chat.shows("at most")
    chat.picture("refused")
    assert not [call for call in llm.calls if call.get("stream")]


def test_stop_stops_the_model(chat: Chat, llm: FakeLLM):
    """What was said stays, and the call to the language model ends."""
    llm.reply = saying(Reply(" ".join(f"word{n}" for n in range(600)), piece_delay=0.1))
    chat.ask("How do I index another site?")
    chat.shows("word5")
    chat.page.get_by_role("button", name="Stop").last.click()
    deadline = time.monotonic() + 10
    while not llm.cancelled and time.monotonic() < deadline:
        chat.page.wait_for_timeout(100)
    assert llm.cancelled == 1
    assert "word5" in chat.answer.inner_text()
    chat.picture("stopped")


@pytest.fixture(autouse=True)
def picture_of_a_failure(chat: Chat, request: pytest.FixtureRequest):
    """The last thing seen, whatever happened."""
    yield
    chat.picture("end")

"""Proposals of synonyms: from questions that were asked again in other words, over HTTP, to an answer with the new synonym."""

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import httpx
import pytest

from app.conversations.opening import open_conversations
from app.conversations.question_log import Asked
from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.text.synonyms import add_synonym, known_synonyms
from plugins.gaps.command import as_text
from plugins.gaps.making import gap_report, proposals
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of

LANGUAGES = load_prompts(("cs", "en")).languages
NETWORK = "# Wireless network\n\nThe wireless network needs an account of the university."
ADMIN = {"authorization": "Bearer the-admin-key-of-tests"}


def proposed(*pairs: tuple[str, str], language: str = "en", known: Sequence[tuple[str, tuple[str, ...]]] = ()):
    rows = [(language, before, after, f"b{i}", f"a{i}") for i, (before, after) in enumerate(pairs)]
    return [(one.phrase, one.other, one.count) for one in proposals(rows, LANGUAGES, tuple(known))]


def test_words_in_the_place_of_others_are_proposed() -> None:
    """Only few words in a row, beside others that stay; without any of these, twice."""
    assert proposed(("wifi firmware", "wireless firmware")) == [("wifi", "wireless", 1)]
    assert proposed(("How do I join the WiFi?", "How do I join the wireless network?")) == [
        ("wifi", "wireless network", 1)
    ]
    forms = ("oprava notebooku", "oprava laptopu"), ("kde opravit notebook", "kde opravit laptop")
    assert proposed(*forms, language="cs") == [("notebooku", "laptopu", 2)]  # forms of one word
    assert proposed(("wifi", "goulash")) == []  # another subject
    assert proposed(("wifi", "wireless"), ("wifi", "wireless")) == [("wifi", "wireless", 2)]
    assert proposed(("wifi firmware", "wifi firmware of a laptop")) == []  # only more was said
    assert proposed(("wifi is slow at home today", "job fails at home because quota")) == []
    assert proposed(("wifi firmware", "wireless firmware"), known=[("wifi", ("Wireless",))]) == []


def test_a_synonym_is_added_to_the_file_without_a_change_of_other_lines(tmp_path: Path) -> None:
    add_synonym(str(tmp_path), "wifi", "wireless")
    file = tmp_path / "synonyms.toml"
    file.write_text("# ours\n" + file.read_text() + '"GPU" = ["card"]  # of the cluster\n"disk" = [\n  "volume",\n]\n')
    add_synonym(str(tmp_path), "WiFi", "WLAN")
    add_synonym(str(tmp_path), 'tab\n"quoted"', "é")
    assert file.read_text().splitlines()[:3] == [
        "# ours", '"wifi" = ["wireless", "WLAN"]', '"GPU" = ["card"]  # of the cluster'
    ]  # fmt: skip
    assert dict(known_synonyms(str(tmp_path)))['tab\n"quoted"'] == ("é",)
    before = file.read_text()
    for phrase, other, problem in (
        ("disk", "storage", "isn't in one line. Add 'storage' by hand"),
        ("?", "x", "no word"),
        ("wifi", "?", "no word"),
    ):
        with pytest.raises(SettingsError, match=problem):
            add_synonym(str(tmp_path), phrase, other)
    assert file.read_text() == before
    with pytest.raises(SettingsError, match="DOCS_PROMPTS isn't set"):
        add_synonym("", "wifi", "wireless")
    with pytest.raises(SettingsError, match=r"synonyms\.toml can't be written"):
        add_synonym(str(tmp_path / "none"), "wifi", "wireless")


@pytest.fixture
async def service(tmp_path: Path) -> AsyncIterator[tuple[httpx.AsyncClient, Settings]]:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "synonyms.toml").write_text("# words of readers = words of the pages\n")
    options = {"database": f"sqlite:///{tmp_path / 'log.db'}", "prompts": str(tmp_path / "own")}
    conversations = open_conversations(Settings.load(None, **options), tmp_path)
    options |= {"admin_keys": "the-admin-key-of-tests", "open": True, "min_evidence": 0.32}
    async with (
        indexed(
            tmp_path, with_model=False, more={"network": NETWORK}, conversations=conversations, **options
        ) as running,
        client_of(running.app, headers=ADMIN) as client,
    ):
        yield client, Settings.load(None, store=str(tmp_path / "index"), **options)
    assert conversations
    await conversations.close()


async def outcome(client: httpx.AsyncClient, question: str, conversation: str) -> str:
    reply = await client.post(CHAT, json=chat(question, conversation=conversation))
    return str(reply.json()["choices"][0]["message"]["content"])


async def test_a_question_asked_again_becomes_a_proposal_and_with_one_request_a_synonym(service) -> None:
    client, settings = service
    for _ in range(2):
        id_ = (await client.post("/v1/conversations", json={})).json()["id"]
        assert "account" not in await outcome(client, "How do I join the wifi?", id_)
        assert "account of the university" in await outcome(client, "How do I join the wireless network?", id_)
        assert "account" not in await outcome(client, "goulash recipe", id_)
    report = await asyncio.to_thread(gap_report, settings, Asked.read("1d", "", time.time() + 1))
    (one,) = report.synonyms
    assert (one.phrase, one.other, one.count) == ("wifi", "wireless network", 2)
    assert (one.examples[0].before, one.examples[0].after) == (
        "How do I join the wifi?",
        "How do I join the wireless network?",
    )
    assert '2  "wifi" = ["wireless network"]' in as_text(report)
    turns = (await client.get(f"/v1/admin/question-log/{one.examples[0].after_id}")).json()["turns"]
    assert [turn["question"] for turn in turns][:2] == [one.examples[0].before, one.examples[0].after]

    added = await client.post("/v1/admin/synonyms", json={"phrase": one.phrase, "other": one.other})
    assert (added.status_code, added.json()["object"]) == (200, "synonym"), added.text
    assert "account of the university" in await outcome(client, "How do I join the wifi?", "")
    assert not (await asyncio.to_thread(gap_report, settings, Asked.read("1d", "", time.time() + 1))).synonyms
    refused = await client.post("/v1/admin/synonyms", json={"phrase": "?", "other": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (400, "synonym_refused")
    assert (
        await client.post("/v1/admin/synonyms", json={"phrase": "a"}, headers={"authorization": ""})
    ).status_code == 401

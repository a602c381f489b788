"""Slack: events as it sends them, with its signature, and what it gets of the service."""

import hmac
import json
import time
from hashlib import sha256

import httpx
import pytest
from aiohttp import web

from app.conversations.records import conversation_id_of
from app.core.errors import SettingsError
from app.routes.keeping import IN_THREADS
from plugins.chats import slack
from plugins.chats.threads import messages_of
from tests.app.routes.scripted import refused, scripted
from tests.fake_llm import Reply
from tests.plugins.chats.conftest import SAID

pytestmark = [pytest.mark.server, pytest.mark.plugins]
SECRET, TOKEN = "8f742231b10e8888abcd99yyyzzz85a5", "xoxb-17653672481-19874698323"
CHALLENGE = {
    "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P",
    "type": "url_verification",
}
AROUND = {
    "token": "Jhj5dZrVaK7ZwHHjRyZWjbDl",
    "team_id": "T061EG9R6",
    "api_app_id": "A0MDYCDME",
    "type": "event_callback",
    "event_id": "Ev0MDYGDKJ",
    "event_time": 1515449522,
    "authorizations": [{"enterprise_id": None, "team_id": "T061EG9R6", "user_id": "U0LAN0Z89", "is_bot": True}],
    "is_ext_shared_channel": False,
}
MENTION = {
    "client_msg_id": "ffb7ded2-6f55-468d-926f-cad3195c8056",
    "type": "app_mention",
    "user": "U061F7AUR",
    "text": "<@U0LAN0Z89> How do I create a volume &amp; claim in <https://docs.example.org|docs.example.org>?",
    "ts": "1515449522.000016",
    "channel": "C0LAN2Q65",
    "event_ts": "1515449522000016",
    "team": "T061EG9R6",
}
DIRECT = {
    "type": "message",
    "channel": "D024BE91L",
    "user": "U2147483697",
    "text": "How do I create a volume?",
    "ts": "1355517523.000005",
    "event_ts": "1355517523.000005",
    "channel_type": "im",
}


@pytest.fixture(autouse=True)
def configured(monkeypatch, outside):
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    monkeypatch.setenv("SLACK_BOT_TOKEN", TOKEN)
    monkeypatch.setattr(slack, "API", f"{outside.url}/api/chat.postMessage")


async def send(service, told, *, key=SECRET, age=0, **headers) -> httpx.Response:
    """What Slack gets for this, which is either an event or all of a body."""
    body = json.dumps(told if "challenge" in told else AROUND | {"event": told}).encode()
    sent = str(int(time.time()) - age)
    signature = hmac.new(key.encode(), f"v0:{sent}:".encode() + body, sha256).hexdigest()
    signed = {"x-slack-request-timestamp": sent, "x-slack-signature": f"v0={signature}"}
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return await service.http.post(
        "/slack/events", content=body, headers={"content-type": "application/json"} | signed | headers
    )


async def test_the_address_is_verified(start):
    response = await send(await start(), CHALLENGE)
    assert response.json() == {"challenge": CHALLENGE["challenge"]}


async def test_a_mention_is_acknowledged_at_once_and_answered_in_its_thread(start, outside):
    service = await start()
    service.llm.reply = lambda _: Reply(f"**Note**: {SAID}", delay=1.0)
    began = time.monotonic()
    response = await send(service, MENTION)
    assert (response.status_code, response.content, outside.sent) == (200, b"", [])
    assert time.monotonic() - began < 1
    (message,) = await outside.wait()
    assert (message["channel"], message["thread_ts"]) == (MENTION["channel"], MENTION["ts"])
    assert message["text"].startswith("*Note*: Create a persistent volume")
    assert "*Sources*\n\n1. <https://docs.example.org/volumes#create|Volumes – Create>" in message["text"]
    assert message["unfurl_links"] is message["unfurl_media"] is False
    assert outside.sent[0][:2] == ("POST", "/api/chat.postMessage")
    assert outside.keys == [f"Bearer {TOKEN}"]
    read = service.read
    assert "How do I create a volume & claim in docs.example.org?" in read
    assert "U0LAN0Z89" not in read


async def test_a_second_question_in_a_thread_knows_the_first_and_no_client_reads_the_thread(start, outside):
    service = await start()
    await send(service, MENTION)
    await outside.wait(1)
    assert "How do I create a volume" in service.read
    second = MENTION | {"text": "<@U0LAN0Z89> And of which class?", "ts": "1515449600.1", "thread_ts": MENTION["ts"]}
    await send(service, second | {"user": "U999"})
    assert (await outside.wait(2))[1]["thread_ts"] == MENTION["ts"]
    assert "How do I create a volume" in service.read
    await send(service, second | {"ts": "1515449700.1", "thread_ts": "1515449600.9"})
    await outside.wait(3)
    assert "How do I create a volume" not in service.read
    thread = f"slack T061EG9R6 {MENTION['channel']} {MENTION['ts']}"
    for owner in ("", IN_THREADS):
        response = await service.http.get(f"/v1/conversations/{conversation_id_of(owner, thread)}")
        assert refused(response) == (404, "conversation_not_found")


@pytest.mark.parametrize(
    ("fault", "headers"),
    [
        ({"key": "another"}, {}),
        ({"age": 330}, {}),
        ({"age": -330}, {}),  # a busy service reads it seconds later
        ({}, {"x_slack_signature": ""}),
        ({}, {"x_slack_signature": "v0=é"}),
        ({}, {"x_slack_request_timestamp": "now"}),
        ({}, {"x_slack_request_timestamp": str(10**30)}),
    ],
)
async def test_what_is_not_signed_now_with_the_secret_is_refused(start, outside, fault, headers):
    response = await send(await start(), MENTION, **fault, **{name: value.encode() for name, value in headers.items()})
    assert refused(response) == (401, "invalid_signature")
    assert await outside.stays(0)


async def test_what_slack_sends_again_is_answered_once(start, outside):
    service = await start()
    await send(service, MENTION)
    for number, reason in enumerate(("connection_failed", "http_timeout", "http_error"), 1):
        again = {"x_slack_retry_num": str(number), "x_slack_retry_reason": reason}
        assert (await send(service, MENTION, **again)).status_code == 200
    await outside.wait(1)
    assert await outside.stays(1)
    # another instance has the first of these, but nobody what never arrived
    await send(service, MENTION | {"ts": "2.1"}, x_slack_retry_num="1", x_slack_retry_reason="http_timeout")
    assert await outside.stays(1)
    await send(service, MENTION | {"ts": "3.1"}, x_slack_retry_num="1", x_slack_retry_reason="connection_failed")
    assert (await outside.wait(2))[1]["thread_ts"] == "3.1"


async def test_an_answer_in_progress_is_sent_while_the_service_stops(start, outside):
    service = await start()
    service.llm.reply = lambda _: Reply(SAID, delay=0.5)
    await send(service, MENTION)
    service.server.should_exit = True
    (message,) = await outside.wait()
    assert message["text"].startswith(SAID[:20])


async def test_direct_messages_of_people_are_answered_and_nothing_else(start, outside):
    service = await start()
    for other in (
        {"bot_id": "B1"},
        {"subtype": "message_changed"},
        {"channel_type": "channel"},
        {"type": "reaction_added"},
    ):
        assert (await send(service, DIRECT | other)).status_code == 200
    await send(service, DIRECT)
    (message,) = await outside.wait()
    assert (message["channel"], message["thread_ts"]) == (DIRECT["channel"], DIRECT["ts"])
    assert await outside.stays(1)


async def test_a_failure_is_a_sentence_in_the_thread(start, outside):
    service = await start(on_model_failure="error")
    service.llm.reply = lambda _: Reply(status=500)
    await send(service, MENTION)
    (message,) = await outside.wait()
    assert message["text"].startswith("The language model")
    await send(service, MENTION | {"text": "<@U0LAN0Z89>", "ts": "2.1"})
    assert "the question is empty" in (await outside.wait(2))[1]["text"]


async def test_each_person_has_the_limit_of_an_address(start, outside):
    service = await start(rate_limit="1/hour")
    await send(service, MENTION)
    await outside.wait(1)
    await send(service, MENTION | {"ts": "2.1"})
    assert (await outside.wait(2))[1]["text"].startswith("At most 1 questions per hour are allowed")
    await send(service, MENTION | {"ts": "3.1", "user": "U999"})
    assert (await outside.wait(3))[2]["text"].startswith(SAID[:20])


async def test_the_key_of_slack_asks_and_the_question_is_logged_with_it(start, outside, monkeypatch):
    keys = {"api_keys": "web-key-of-tests slack-key-of-tests", "admin_keys": "admin-key-of-tests"}
    with pytest.raises(SettingsError, match="SLACK_ASSISTANT_KEY is missing"):
        scripted(**keys)
    monkeypatch.setenv("SLACK_ASSISTANT_KEY", "slack-key-of-tests")
    service = await start(**keys)
    await send(service, MENTION)
    await outside.wait()
    admin = {"authorization": "Bearer admin-key-of-tests"}
    (logged,) = (await service.http.get("/v1/admin/question-log", headers=admin)).json()["data"]
    assert logged["question"].startswith("How do I create a volume & claim")
    assert (logged["key"], logged["outcome"]) == ("2", "written")


async def test_a_message_that_slack_refuses_is_sent_again_if_it_asks_for_that(start, outside, caplog):
    service = await start()
    outside.answers = [web.Response(status=429, headers={"retry-after": "1"})]
    await send(service, MENTION)
    first, second = await outside.wait(2)
    assert first == second
    outside.answers = [web.json_response({"ok": False, "error": "not_in_channel"})]
    await send(service, MENTION | {"ts": "2.1"})
    await outside.wait(3)
    assert await outside.stays(3)
    assert "not_in_channel" in caplog.text
    outside.answers = [web.Response(status=500, text="broken")]
    await send(service, MENTION | {"ts": "3.1"})
    await outside.wait(4)
    assert await outside.stays(4)
    assert "500 broken" in caplog.text
    assert TOKEN not in caplog.text


async def test_without_its_secrets_there_is_no_route_and_half_of_them_is_an_error(start, monkeypatch, tmp_path):
    monkeypatch.delenv("SLACK_SIGNING_SECRET")
    with pytest.raises(SettingsError, match="both SLACK_SIGNING_SECRET and SLACK_BOT_TOKEN"):
        scripted()
    secret = tmp_path / "secret"
    secret.write_text("\n", "utf-8")
    monkeypatch.setenv("SLACK_SIGNING_SECRET_FILE", str(secret))
    with pytest.raises(SettingsError, match="is empty"):
        scripted()
    secret.write_text(f"{SECRET}\n", "utf-8")
    assert any(route.path == "/slack/events" for route in scripted().routes)
    monkeypatch.setenv("SLACK_SIGNING_SECRET", SECRET)
    with pytest.raises(SettingsError, match="both set the same secret"):
        scripted()
    for name in ("SLACK_SIGNING_SECRET", "SLACK_SIGNING_SECRET_FILE", "SLACK_BOT_TOKEN"):
        monkeypatch.delenv(name)
    assert (await send(await start(), MENTION)).status_code == 404


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("## Create **one**", "*Create one*"),
        (
            "Use **the `-f` [option](https://a.b/c_(d)?x=1&y=2)**.",
            "Use *the `-f` <https://a.b/c_(d)?x=1&amp;y=2|option>*.",
        ),
        ("*it* and 2*3*4, ~~old~~", "_it_ and 2*3*4, ~old~"),
        ("- a\n* b\n  + c", "• a\n• b\n  • c"),
        ("> a < b", "> a &lt; b"),
        ("```python\nx = '**no**' & y\n```", "```\nx = '**no**' &amp; y\n```"),
        ("`<a>` \\[1\\] <!channel>", "`&lt;a&gt;` [1] &lt;!channel&gt;"),
        ("![chart](https://a.b/c.png)", "<https://a.b/c.png|chart>"),
        ("[x](javascript:y)", "[x](javascript:y)"),
        ("# # " * 3000, "**"),
    ],
)
def test_markdown_is_written_as_slack_shows_it(markdown, shown):
    assert slack.mrkdwn(markdown).replace("* *", "**") == shown


def test_long_answers_are_several_messages_with_whole_blocks_of_code():
    lines = [f"line {number} {'x' * 50}" for number in range(60)]
    text = "\n".join(["Run:", "```sh", *lines, "```", "word " * 900])
    parts = list(messages_of(text, 2000))
    assert max(map(len, parts)) <= 2000
    assert all(part.count("```") % 2 == 0 for part in parts)
    assert parts[1].startswith("```sh\nline ")
    read = "\n".join(parts)
    assert all(line in read for line in lines)
    assert read.count("word") == 900

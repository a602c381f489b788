"""Discord: interactions as it sends them, with its signature, and what it gets of the service."""

import json
import time

import httpx
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from app.core.errors import SettingsError
from plugins.chats import discord
from tests.app.routes.scripted import refused, scripted
from tests.fake_llm import Reply
from tests.plugins.chats.conftest import SAID

pytestmark = [pytest.mark.server, pytest.mark.plugins]
KEY = Ed25519PrivateKey.generate()
PING = {
    "app_permissions": "562949953601536",
    "application_id": "845027738276462632",
    "authorizing_integration_owners": {},
    "entitlements": [],
    "id": "1237513297120772200",
    "token": "aW50ZXJhY3Rpb246MTIzNzUxMzI5NzEyMDc3MjIwMA",
    "type": 1,
    "user": {"avatar": None, "discriminator": "0", "global_name": "Ada", "id": "53908232506183680", "username": "ada"},
    "version": 1,
}
ASK = {
    "application_id": "845027738276462632",
    "channel_id": "772908445358620702",
    "channel": {"id": "772908445358620702", "type": 0, "name": "help", "guild_id": "772904309264089089"},
    "data": {
        "guild_id": "772904309264089089",
        "id": "866818195033292851",
        "name": "ask",
        "options": [{"name": "question", "type": 3, "value": "How do I create a volume?"}],
        "type": 1,
    },
    "guild_id": "772904309264089089",
    "guild_locale": "en-US",
    "id": "867793854505943041",
    "locale": "en-US",
    "member": {
        "deaf": False,
        "nick": None,
        "permissions": "4398046511103",
        "roles": [],
        "user": {"discriminator": "0", "id": "167348773423415296", "username": "grace"},
    },
    "token": "aW50ZXJhY3Rpb246ODY3NzkzODU0NTA1OTQzMDQx",
    "type": 2,
    "version": 1,
}
IN_THREAD = ASK | {"channel_id": "998", "channel": {"id": "998", "type": 11, "parent_id": "772908445358620702"}}
HOOK = f"/api/v10/webhooks/{ASK['application_id']}/{ASK['token']}"


@pytest.fixture(autouse=True)
def configured(monkeypatch, outside):
    monkeypatch.setenv("DISCORD_PUBLIC_KEY", KEY.public_key().public_bytes_raw().hex())
    monkeypatch.setattr(discord, "API", f"{outside.url}/api/v10")


def asked(question, id_, base=ASK):
    options = [{"name": "question", "type": 3, "value": question}]
    return base | {"id": id_, "data": base["data"] | {"options": options}}


async def send(service, told, *, key=KEY, age=0, **headers) -> httpx.Response:
    body, sent = json.dumps(told).encode(), str(int(time.time()) - age)
    signed = {"x-signature-timestamp": sent, "x-signature-ed25519": key.sign(sent.encode() + body).hex()}
    headers = {name.replace("_", "-"): value for name, value in headers.items()}
    headers = {"content-type": "application/json"} | signed | headers
    return await service.http.post("/discord/interactions", content=body, headers=headers)


async def test_a_ping_is_answered_only_if_it_is_signed(start):
    service = await start()
    assert (await send(service, PING)).json() == {"type": 1}
    for fault in (
        {"key": Ed25519PrivateKey.generate()},
        {"age": 301},
        {"x_signature_ed25519": ""},
        {"x_signature_ed25519": "nothing"},
        {"x_signature_timestamp": ""},
    ):
        assert refused(await send(service, PING, **fault)) == (401, "invalid_signature"), fault
    assert (await send(service, PING | {"type": 3})).status_code == 400


async def test_a_command_is_acknowledged_at_once_and_answered_once(start, outside):
    service = await start()
    service.llm.reply = lambda _: Reply(f"#### Note\n\n{SAID}", delay=1.0)
    began = time.monotonic()
    assert (await send(service, ASK)).json() == {"type": 5}
    assert time.monotonic() - began < 1
    assert (await send(service, ASK)).json() == {"type": 5}
    (message,) = await outside.wait()
    assert outside.sent[0][:2] == ("PATCH", f"{HOOK}/messages/@original")
    assert message["content"].startswith("> How do I create a volume?\n\n### Note\n\nCreate a persistent volume")
    assert "1. [Volumes – Create](https://docs.example.org/volumes#create)" in message["content"]
    assert (message["flags"], message["allowed_mentions"]) == (4, {"parse": []})
    assert await outside.stays(1)


async def test_a_long_answer_goes_on_in_messages_behind_it(start, outside):
    service = await start()
    await send(service, asked(f"How do I create a volume? {'Please! ' * 240}", "1"))
    messages = await outside.wait(2)
    assert [sent[:2] for sent in outside.sent[:2]] == [("PATCH", f"{HOOK}/messages/@original"), ("POST", HOOK)]
    assert max(len(message["content"]) for message in messages) <= 2000


async def test_a_second_question_in_a_thread_knows_the_first_and_one_in_a_channel_stands_alone(start, outside):
    service = await start()
    for base, known in ((IN_THREAD, True), (ASK, False)):
        done = len(outside.sent)
        await send(service, asked("How do I create a volume?", f"{known}1", base))
        await outside.wait(done + 1)
        assert "How do I create a volume?" in service.read
        await send(service, asked("And of which class?", f"{known}2", base))
        await outside.wait(done + 2)
        assert ("How do I create a volume?" in service.read) is known


async def test_a_message_that_discord_does_not_know_yet_is_edited_later(start, outside):
    service = await start()
    outside.answers = [web.json_response({"message": "Unknown Webhook", "code": 10015}, status=404)]
    await send(service, ASK)
    first, second = await outside.wait(2)
    assert first == second
    assert await outside.stays(2)


async def test_a_failure_is_a_sentence_and_each_person_has_a_limit(start, outside):
    service = await start(rate_limit="1/hour")
    await send(service, ASK)
    await outside.wait(1)
    await send(service, ASK | {"id": "2"})
    assert "At most 1 questions per hour are allowed" in (await outside.wait(2))[1]["content"]
    alone = {name: value for name, value in ASK.items() if name != "member"} | {"user": PING["user"], "id": "3"}
    await send(service, alone)
    assert SAID[:20] in (await outside.wait(3))[2]["content"]


async def test_without_the_public_key_there_is_no_route_and_a_wrong_one_is_an_error(start, monkeypatch):
    monkeypatch.setenv("DISCORD_PUBLIC_KEY", "abc")
    with pytest.raises(SettingsError, match="64 hexadecimal digits"):
        scripted()
    monkeypatch.delenv("DISCORD_PUBLIC_KEY")
    assert (await send(await start(), PING)).status_code == 404

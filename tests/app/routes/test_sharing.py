"""Links to answers: who makes them, what they show to whom, and how they end; on SQLite and on PostgreSQL."""

import time
from base64 import urlsafe_b64encode
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from app.conversations.opening import open_conversations
from app.core.settings import Settings
from app.core.turn import Done, Source, Text, Unsupported, Verbatim
from app.routes.feedback import AnswerLink, SharedAnswer
from tests.app.routes.scripted import CHAT, chat, client_of, refused, scripted

SOURCE = Source(1, "Volumes", "https://docs.test/v#create", "Create", "en", "snippet", 0.9)
DOUBT = Unsupported("It takes 9 s", "number", 1, 0.5)
SCRIPT = (Text("So [1]. It takes 9 s."), SOURCE, Done(unsupported=(DOUBT,), verbatim=Verbatim(2, 1)))
KEYS = {"api_keys": "anna-key-of-tests bert-key-of-tests", "tuning": {"share_days": 7}}
DAY = 86_400
GONE = (404, "link_not_found")
STRANGER = "203.0.113.7"


@asynccontextmanager
async def shared(database="", **settings):
    """The service and a client of another machine, as the only owner that has a key if there are keys."""
    store = open_conversations(Settings.load(None, database=database, **settings), Path())
    app = scripted(*SCRIPT, conversations=store, database=database, **settings)
    async with client_of(app, STRANGER) as client:
        yield client, store
    if store:
        await store.close()


def bearer(name="anna"):
    return {"authorization": f"Bearer {name}-key-of-tests"}


async def asked(client, question="How?", **headers):
    """The id of an answer."""
    return (await client.post(CHAT, json=chat(question), headers=headers)).json()["id"]


async def linked(client, answer, **headers):
    return (await client.post(f"/v1/answers/{answer}/link", headers=headers)).json()


async def test_whoever_has_the_link_reads_the_answer_and_nothing_of_its_asker(database):
    """Without a key, where others need one; with sources, marks and dates; the token names no answer to anybody else."""
    async with shared(database, **KEYS) as (client, _):
        answer = await asked(client, **bearer())
        link = await linked(client, answer, **bearer())
        assert TypeAdapter(AnswerLink).validate_python(link, extra="forbid")
        assert link["url"] == f"http://localhost/?shared={link['token']}"
        assert 7 * DAY - 60 < link["until"] - time.time() <= 7 * DAY
        response = await client.get(f"/v1/shared/{link['token']}")
        body = response.json()
        assert TypeAdapter(SharedAnswer).validate_python(body, extra="forbid")
        assert (body["question"], body["answer"]) == ("How?", SCRIPT[0].text)
        assert body["verbatim"] == {"statements": 2, "found": 1}
        assert [one["url"] for one in body["sources"]] == [SOURCE.url]
        assert body["unsupported"] == [{"text": "It takes 9 s", "kind": "number", "passage": 1, "score": 0.5}]
        assert (body["until"], body["assistant"]) == (link["until"], "docs-assistant")
        assert answer not in response.text
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["x-robots-tag"] == "noindex"
        assert (await client.get("/?shared=x")).headers["x-robots-tag"] == "noindex"
        assert "x-robots-tag" not in (await client.get("/")).headers
        for method, path in (("DELETE", "shared/{}"), ("POST", "answers/{}/feedback"), ("GET", "responses/{}")):
            sent = await client.request(method, f"/v1/{path.format(link['token'])}", json={"rating": "up"})
            assert sent.status_code in {401, 405}, path
        asker = await client.post(f"/v1/answers/{answer}/link", headers=bearer("bert"))
        assert refused(asker) == (404, "answer_not_found")
        assert (await client.post(f"/v1/answers/{answer}/link")).status_code == 401


async def test_a_link_ends_at_its_time_with_its_answer_and_with_the_setting(database):
    now = [time.time()]
    async with shared(database, tuning={"share_days": 7}, retention_days=10, open=True) as (client, store):
        store.clock = lambda: now[0]
        first, second = await asked(client), await asked(client, "What?")
        tokens = [(await linked(client, one))["token"] for one in (first, second)]
        now[0] += 6 * DAY
        late = await linked(client, second)
        assert late["until"] - now[0] < 4.5 * DAY  # no longer than the answer is kept
        assert await store.delete_answer("", second)
        third = await asked(client, "Other?")  # SQLite gives it the number of the second
        paths = [f"/v1/shared/{token}" for token in (*tokens, late["token"])]
        assert [(await client.get(path)).status_code for path in paths] == [200, 404, 404]
        assert (await linked(client, third))["until"] > now[0]
        now[0] += DAY + 60
        assert refused(await client.get(paths[0])) == GONE
        now[0] -= DAY
    async with shared(database, tuning={"share_days": 0}, open=True) as (client, _):
        assert refused(await client.get(paths[0])) == GONE
        assert refused(await client.post(f"/v1/answers/{third}/link")) == (403, "sharing_disabled")


async def test_no_other_token_opens_an_answer(database):
    """Neither a changed one nor a made-up one, and none fails."""
    async with shared(database, open=True) as (client, _):
        token = (await linked(client, await asked(client)))["token"]
        await asked(client, "What?")
        other = str.maketrans({"A": "B"} | {letter: "A" for letter in token if letter != "A"})
        changed = [token[:at] + letter.translate(other) + token[at + 1 :] for at, letter in enumerate(token)]
        made_up = ["x", token[:-1], f"{token}=", f"{token}AAAA", "č" * 40, "-" * 40, "%00" * 40, "~" * 40]
        made_up += [urlsafe_b64encode(bytes([byte]) * 30).decode() for byte in (0, 127, 255)]
        for wrong in (*changed, *made_up):
            assert refused(await client.get(f"/v1/shared/{wrong}")) == GONE, wrong
        assert (await client.get(f"/v1/shared/{token}")).status_code == 200


@pytest.mark.parametrize(
    ("settings", "days"),
    [
        ({}, 30),
        ({"open": True}, 30),
        ({"api_keys": "anna-key-of-tests"}, 0),
        ({"api_keys": "anna-key-of-tests", "tuning": {"share_days": 5}}, 5),
        ({"tuning": {"share_days": 0}}, 0),
    ],
)
async def test_links_are_made_by_default_only_where_the_page_needs_no_key(tmp_path, settings, days):
    """Elsewhere, they would open to everybody what needs a key; so somebody has to want that."""
    async with shared(f"sqlite:///{tmp_path / 'c.db'}", **settings) as (client, _):
        page = (await client.get("/v1/interface", headers=bearer())).json()
        assert page["keeps"]["share_days"] == days
        answer = await asked(client, **bearer())
        made = await client.post(f"/v1/answers/{answer}/link", headers=bearer())
        assert made.status_code == (200 if days else 403)
    async with shared(retention_days=0, **settings) as (client, _):
        made = await client.post("/v1/answers/x/link", headers=bearer())
        assert refused(made) == (403, "sharing_disabled")
        assert refused(await client.get("/v1/shared/x")) == GONE


async def test_who_reads_links_is_limited_by_address_and_needs_no_key(tmp_path):
    settings = KEYS | {"rate_limit": "1/minute"}  # ten searches and reads
    async with shared(f"sqlite:///{tmp_path / 'c.db'}", **settings) as (client, _):
        seen = [await client.get("/v1/shared/x") for _ in range(11)]
    assert [one.status_code for one in seen] == [404] * 10 + [429]
    assert refused(seen[-1])[1] == "rate_limit_exceeded"

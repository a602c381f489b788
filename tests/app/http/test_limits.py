"""Limits of rate and of answers at the same time, by key and address: in memory, and in a real Redis that replicas share."""

import asyncio
import os
import shutil
import socket
import subprocess
from collections import Counter
from contextlib import asynccontextmanager
from types import SimpleNamespace
from urllib.parse import urlsplit

import httpx
import orjson
import pytest

from app.core.errors import SettingsError
from app.core.gate import Gate
from app.core.settings import Settings
from app.http import limits
from app.http.door import Door
from app.http.keys import Keys
from app.http.limits import SEARCHES_PER_QUESTION, WAIT, Counters, Limits
from app.routes.server import create_app
from tests.app.http.test_keys import SITE, entry, key, served, write
from tests.app.routes.scripted import (
    CHAT,
    Scripted,
    ScriptedAssistants,
    chat,
    client_of,
    scripted,
    serving,
    until,
    wait_for,
)
from tests.end_to_end.program import free_port

ASKED = chat("Why?")
KEYS = [f"k{n}" for n in range(5)]
REDIS = shutil.which("redis-server")


@asynccontextmanager
async def redis_server(port: int, folder):
    command = [str(REDIS), "--port", str(port), "--save", "", "--appendonly", "no", "--dir", str(folder)]
    running = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(6000):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.01)
            else:
                writer.close()
                await writer.wait_closed()
                break
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        running.terminate()
        running.wait(60)


@pytest.fixture
def needs_redis():
    if not REDIS:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(
            "no redis-server here: apt install redis-server"
        )


@pytest.fixture
async def redis(needs_redis, tmp_path, monkeypatch):
    """The address of a Redis server of this test, which may be slow on a busy machine."""
    monkeypatch.setattr("app.http.limits.PATIENCE", 60.0)
    async with redis_server(free_port(), tmp_path) as address:
        yield f"{address}?socket_connect_timeout=60&socket_timeout=60"


@pytest.fixture(params=["memory", "redis"])
def store(request):
    return "memory" if request.param == "memory" else request.getfixturevalue("redis")


STORES = pytest.mark.parametrize(("store", "number"), [("memory", 1), ("redis", 2)], indirect=["store"])


class Answers:
    """The application behind the limits: it answers when it may, and knows how many answers of a key are in progress."""

    def __init__(self) -> None:
        self.go_on = asyncio.Event()
        self.now = Counter[str]()
        self.most = Counter[str]()

    async def __call__(self, scope, receive, send) -> None:
        name = dict(scope["headers"])[b"authorization"].decode()
        self.now[name] += 1
        self.most[name] = max(self.most[name], self.now[name])
        try:
            await self.go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})
            await send({"type": "http.response.body", "body": b""})
        finally:
            self.now[name] -= 1


@asynccontextmanager
async def replicas(number: int, settings: Settings, answers: Answers):
    """As many instances as wanted: each has its own counters, and the keys and the request log of a service."""
    counters = [Counters(settings.limits_store) for _ in range(number)]
    entrances = [Limits(settings, Gate(1000), one, Keys(settings, list).access) for one in counters]
    apps = [Door(answers, (), limits.enter, lambda *_: None, lambda _: None) for limits in entrances]
    try:
        yield [client_of(app, "203.0.113.7", "http://x", {}) for app in apps]
    finally:
        for one in counters:
            await one.close()


async def ask_all(clients, answers: Answers, times: int):
    """The statuses of so many requests of each key at once, which take turns between the replicas.

    Answers end when every request has either been refused or begun, however long that takes.
    """
    found = Counter[tuple[str, int]]()

    async def ask(n: int, name: str) -> None:
        response = await clients[n % len(clients)].post(CHAT, headers=key(name), timeout=None)
        found[name, response.status_code] += 1

    async with asyncio.TaskGroup() as asking:
        for n in range(times):
            for name in KEYS:
                asking.create_task(ask(n, name))
        await until(lambda: found.total() + answers.now.total() == times * len(KEYS))
        answers.go_on.set()
    return found


@STORES
async def test_of_1000_requests_of_5_keys_at_once_each_key_gets_exactly_its_rate(store, number, tmp_path):
    keys = write(tmp_path / "k", *(entry(name, rate=f'"{100 + n}/minute;5000/day"') for n, name in enumerate(KEYS)))
    settings = Settings.load(None, keys=keys, limits_store=store, concurrency_limit=0)
    answers = Answers()
    async with replicas(number, settings, answers) as clients:
        found = await ask_all(clients, answers, 200)
    for n, name in enumerate(KEYS):
        assert (found[name, 200], found[name, 429]) == (100 + n, 100 - n)


async def test_of_1000_requests_of_5_keys_at_once_none_has_more_answers_in_progress_than_it_may(tmp_path):
    keys = write(tmp_path / "k", *(entry(name, concurrency=n + 1) for n, name in enumerate(KEYS)))
    settings, answers = Settings.load(None, keys=keys, rate_limit=""), Answers()
    async with replicas(1, settings, answers) as clients:
        found = await ask_all(clients, answers, 200)
        most = {name: answers.most[f"Bearer {name}-key"] for name in KEYS}
        assert most == {name: n + 1 for n, name in enumerate(KEYS)}  # never over, and every place was used
        assert found == {
            (name, status): 200 - n - 1 if status == 429 else n + 1
            for n, name in enumerate(KEYS)
            for status in (200, 429)
        }
        # all places were given back, and requests that fit are never refused
        async with asyncio.timeout(60):
            while True:
                statuses = await asyncio.gather(*(clients[0].post(CHAT, headers=key(KEYS[4])) for _ in range(5)))
                if {one.status_code for one in statuses} == {200}:
                    break


async def test_several_rates_hold_in_every_window_and_refused_requests_do_not_count(tmp_path, monkeypatch):
    now = 1_000_000.0
    monkeypatch.setattr(limits, "time", SimpleNamespace(time=lambda: now))
    keys = write(tmp_path / "k", entry("k", rate='"5/second; 8/minute"'))
    answers = Answers()
    answers.go_on.set()
    async with replicas(1, Settings.load(None, keys=keys), answers) as (client,):

        async def ask(times: int):
            found = [await client.post(CHAT, headers=key("k")) for _ in range(times)]
            return [one.status_code for one in found], found[-1]

        statuses, last = await ask(20)
        assert statuses == [200] * 5 + [429] * 15
        assert last.headers["retry-after"] == "1"
        assert last.json()["error"] == {
            "message": "At most 5 questions per second are allowed for your key or address. Try again in 1 s.",
            "type": "rate_limit_error",
            "param": None,
            "code": "rate_limit_exceeded",
            "retry_after": 1,
        }
        now += 1.01
        statuses, last = await ask(20)
        assert statuses == [200] * 3 + [429] * 17
        assert last.headers["retry-after"] == "59"
        shown = {name: last.headers[f"x-ratelimit-{name}-requests"] for name in ("limit", "remaining", "reset")}
        assert shown == {"limit": "8", "remaining": "0", "reset": "59s"}
        now += 59  # as the answer said
        statuses, last = await ask(6)
        assert statuses == [200] * 5 + [429]


async def test_a_request_beyond_a_limit_is_refused_with_its_body_unread(tmp_path):
    keys = write(tmp_path / "k", entry("k", rate='"1/hour"'))
    app = scripted(keys=keys)
    async with served(app) as client:
        first = await client.post(CHAT, json=ASKED, headers=key("k"))
        assert first.headers["x-ratelimit-remaining-requests"] == "0"
        assert first.headers["x-ratelimit-reset-requests"] == "60m0s"
        sent = []

        async def unread():
            pytest.fail("the body was read")

        async def send(message):
            sent.append(message)

        headers = [(b"authorization", b"Bearer k-key")]
        await app(
            {"type": "http", "method": "POST", "path": CHAT, "headers": headers, "query_string": b""}, unread, send
        )
        assert sent[0]["status"] == 429
        assert orjson.loads(sent[1]["body"])["error"]["code"] == "rate_limit_exceeded"


async def test_who_is_limited_by_what(tmp_path):
    """Anonymous readers and those of a widget by address, a reader's key by itself; operators and this machine not at all."""
    own = f'["{SITE}"]'
    keys = write(
        tmp_path / "k", entry("r"), entry("own", rate='"3/hour"'), entry("a", "admin"),
        entry("w", "widget", origins=own), entry("few", "widget", origins=own, rate='"3/hour"'),
    )  # fmt: skip
    app = scripted(keys=keys, open=True, rate_limit="2/hour", max_answers=1000)

    async def admitted(address, path=CHAT, body=ASKED, times=5, **headers):
        async with client_of(app, address) as client:
            statuses = [(await client.post(path, json=body, headers=headers)).status_code for _ in range(times)]
        assert set(statuses) <= {200, 429}
        return statuses.count(200)

    page = {"origin": SITE}
    assert await admitted("203.0.113.1") == 2
    assert await admitted("203.0.113.1", **key("w", **page)) == 0  # the same reader in a page
    assert await admitted("203.0.113.2", **key("w", **page)) == 2
    assert await admitted("203.0.113.3", **key("few", **page)) == 2
    assert await admitted("203.0.113.4", **key("few", **page)) == 1  # together, they may ask three times
    assert await admitted("203.0.113.5", **key("r")) == 2
    assert await admitted("203.0.113.6", **key("r")) == 0  # the same key from another address
    assert await admitted("203.0.113.6", **key("own")) == 3
    assert await admitted("203.0.113.6", **key("a")) == 5
    assert await admitted("2001:db8::1") + await admitted("2001:db8::2") == 2  # one network
    assert await admitted("127.0.0.1") == await admitted("::1") == 5
    assert await admitted("127.0.0.1", **key("own")) == 0
    # searches are counted apart
    found = await admitted(
        "203.0.113.1", "/v1/search", {"query": "x", "model": "docs-assistant"}, times=2 * SEARCHES_PER_QUESTION + 5
    )
    assert found == 2 * SEARCHES_PER_QUESTION
    # two IPv4 readers, as a socket for both protocols writes them
    assert await admitted("::ffff:203.0.113.8") == await admitted("::ffff:203.0.113.9") == 2
    assert await admitted("::ffff:127.0.0.1") == 5


async def test_what_stores_or_reads_texts_without_a_question_is_limited_too():
    async with served(scripted(open=True, rate_limit="2/hour", retention_days=0)) as client:

        async def refused(method, *paths):
            sent = [await client.request(method, path, json={}) for _ in range(3) for path in paths]
            return [one.status_code for one in sent].count(429)

        # counted together
        assert await refused("POST", "/v1/conversations", "/v1/conversations/c", "/v1/answers/a/feedback") == 7
        assert await refused("GET", "/v1/conversations/c") == await refused("DELETE", "/v1/conversations/c") == 0
        found = [await client.get("/v1/search?q=x") for _ in range(2 * SEARCHES_PER_QUESTION - 1)]
        assert 429 not in {one.status_code for one in found}
        assert await refused("GET", "/v1/passages/p") == 2


def test_an_invalid_address_of_redis_is_named_without_its_password():
    for address in ("redis://:geheim@host:port", "redis://:geheim@[::1"):
        with pytest.raises(SettingsError, match="DOCS_LIMITS_STORE") as caught:
            Counters(address)
        assert "geheim" not in str(caught.value)


def test_a_client_that_hangs_up_gives_its_place_back_at_once(tmp_path):
    keys, assistant = write(tmp_path / "k", entry("k", concurrency=2)), Scripted(script=(60.0,))
    app = create_app(ScriptedAssistants((assistant,)), Settings.load(None, keys=keys))

    def asking(base):
        connection = socket.create_connection(("127.0.0.1", urlsplit(base).port))
        body = orjson.dumps({**ASKED, "stream": True})
        head = f"POST {CHAT} HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\nauthorization: Bearer k-key\r\n"
        connection.sendall(f"{head}content-length: {len(body)}\r\n\r\n".encode() + body)
        return connection

    with serving(app) as base, httpx.Client(base_url=base, headers=key("k"), timeout=60) as client:
        waiting = [asking(base) for _ in range(2)]
        wait_for(lambda: len(assistant.asked) == 2)
        refused = client.post(CHAT, json=ASKED)
        assert (refused.status_code, refused.headers["retry-after"]) == (429, str(WAIT))
        assert "At most 2 answers at the same time are allowed" in refused.text
        for one in waiting:
            one.close()
        wait_for(lambda: len(assistant.closed) == 2)
        assistant.script = Scripted().script
        wait_for(lambda: client.post(CHAT, json=ASKED).status_code == 200)


@pytest.mark.usefixtures("needs_redis")
async def test_without_redis_every_request_is_served_within_limits_of_this_process(tmp_path, caplog):
    """It is logged once, and /health says what is wrong; the password isn't shown."""
    port, keys = free_port(), write(tmp_path / "k", entry("k", rate='"30/hour"', concurrency=5))
    async with served(scripted(keys=keys, limits_store=f"redis://:secret@127.0.0.1:{port}/0")) as client:
        statuses = [(await client.post(CHAT, json=ASKED, headers=key("k"))).status_code for _ in range(40)]
        assert statuses == [200] * 30 + [429] * 10
        part = (await client.get("/health", headers=key("k"))).json()["parts"]["limits"]
        assert part["state"] == "failing"
        assert "can't be reached" in part["last_failure"]["error"]
        lines = [record.getMessage() for record in caplog.records if "skipped for some seconds" in record.getMessage()]
        assert len(lines) == 1
        assert "secret" not in caplog.text + str(part)


@pytest.mark.usefixtures("needs_redis")
async def test_a_redis_that_stops_while_the_service_runs_fails_no_request(tmp_path):
    port, keys = free_port(), write(tmp_path / "k", entry("k", rate='"100/hour"', concurrency=50))
    async with served(scripted(keys=keys, limits_store=f"redis://127.0.0.1:{port}")) as client:

        async def ask():
            return (await client.post(CHAT, json=ASKED, headers=key("k"))).status_code

        async with redis_server(port, tmp_path):
            assert await ask() == 200
            assert (await client.get("/health", headers=key("k"))).json()["parts"]["limits"]["state"] == "ok"
        assert [await ask() for _ in range(10)] == [200] * 10

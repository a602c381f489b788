"""Checks of hosts, origins, bodies and API keys, and what the log contains about the client."""

import re
import socket

import pytest

from app.core.errors import ECHOED
from app.http.keys import MAX_FAILURES, MAX_TRACKED, SECONDS_PER_FAILURE, FailedAttempts
from app.http.request_check import AllowedHosts
from tests.app.routes.scripted import CHAT, JSON, chat, client_of, refused, scripted

QUESTION = chat()


def asked(base="http://localhost", address="203.0.113.7", **settings):
    return client_of(scripted(**settings), address, base, {})


async def test_a_name_that_somebody_let_point_here_is_refused_everywhere():
    async with asked("http://evil.tld:8000") as client:
        for method, path in (("POST", CHAT), ("GET", "/health"), ("GET", "/docs/en/"), ("POST", "/mcp"), ("GET", "/x")):
            response = await client.request(method, path, json=QUESTION)
            assert refused(response) == (421, "host_refused"), path
            assert "'evil.tld'" in response.text
            assert "DOCS_ALLOWED_HOSTS" in response.text


@pytest.mark.parametrize(
    ("listening", "allowed", "known", "unknown"),
    [
        (
            "127.0.0.1",
            "",
            "localhost docs.localhost 127.0.0.1 10.1.2.3 ::1",
            "evil.tld assistant x.local 127.0.0.1.nip.io",
        ),
        ("::1", "", "localhost ::1", "evil.tld assistant"),
        ("0.0.0.0", "", "localhost 10.1.2.3 assistant docs.ns.svc.cluster.local a.internal", "evil.tld a.b"),
        ("docs.example.org", "", "docs.example.org localhost assistant", "example.org www.docs.example.org"),
        ("127.0.0.1", "Docs.Example.org", "docs.example.org localhost", "evil.tld xdocs.example.org"),
        ("127.0.0.1", "*.example.org", "docs.example.org a.b.example.org", "example.org evilexample.org"),
        ("127.0.0.1", "*", "evil.tld", ""),
    ],
)
def test_which_hosts_are_known(listening, allowed, known, unknown):
    hosts = AllowedHosts(allowed.split(), listening)
    assert [name for name in [*known.split(), socket.gethostname().lower()] if not hosts.known(name)] == []
    assert [name for name in unknown.split() if hosts.known(name)] == []


async def test_a_broken_host_is_refused():
    async with asked() as client:
        for host in ("[::1", "a@localhost@evil.tld", "localhost.evil.tld:80", "\xff.tld"):
            response = await client.get("/health", headers={"host": host.encode("latin-1")})
            assert refused(response) == (421, "host_refused")
        twice = [("host", "localhost"), ("host", "evil.tld")]
        assert (await client.get("/health", headers=twice)).status_code == 400


async def test_pages_of_others_may_not_ask():
    async with asked("http://localhost:8000", allowed_hosts="docs.example.org") as client:
        for origin in ("http://evil.tld", "http://localhost:3000", "null", "http://localhost:8000.evil.tld", "x"):
            for path in (CHAT, "/v1/search", "/v1/ingest", "/mcp"):
                response = await client.post(path, json=QUESTION, headers={"origin": origin})
                assert refused(response) == (403, "origin_refused"), origin
            assert refused(await client.get("/mcp", headers={"origin": origin})) == (403, "origin_refused")
            assert (await client.get("/health", headers={"origin": origin})).status_code == 200
        for origin in ("http://localhost:8000", "https://docs.example.org", "https://docs.example.org:8443"):
            assert (await client.post(CHAT, json=QUESTION, headers={"origin": origin})).status_code == 200


async def test_bodies_that_a_page_may_send_unasked_are_refused():
    async with asked() as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "json", ""):
            for path in (CHAT, "/v1/search", "/v1/responses", "/v1/ingest", "/mcp"):
                headers = {"content-type": kind} if kind else {}
                response = await client.post(path, content=b"{}", headers=headers)
                assert refused(response) == (415, "not_json"), (kind, path)
        for kind in ("application/json", "Application/JSON; charset=utf-8", "application/vnd.api+json"):
            response = await client.post(CHAT, json=QUESTION, headers={"content-type": kind})
            assert response.status_code == 200
        assert (await client.post("/v1/ingest")).status_code == 403  # no body at all: only the admin key is missing


async def test_who_shows_many_wrong_keys_waits_and_others_do_not():
    keys = {"api_keys": "good-key-of-tests other-key-of-tests", "admin_keys": "admin-key-of-tests"}
    async with asked(**keys) as client:

        async def ask(key, path="/v1/models"):
            return (await client.get(path, headers={"authorization": f"Bearer {key}"})).status_code

        assert await ask("good-key-of-tests") == 200
        codes = [
            await ask(f"wrong{n}", path) for n in range(10) for path in ("/v1/models", "/v1/ingest", "/openapi.json")
        ]
        assert codes == [401] * MAX_FAILURES + [429] * (30 - MAX_FAILURES)
        response = await client.get("/v1/models", headers={"authorization": "Bearer wrong"})
        assert response.headers["retry-after"] == f"{SECONDS_PER_FAILURE:.0f}"
        assert await ask("other-key-of-tests") == 429  # a correct guess is not revealed
        assert await ask("admin-key-of-tests", "/v1/ingest") == 429
        health = await client.get("/health", headers={"authorization": "Bearer other-key-of-tests"})
        assert health.json() == {"status": "ok"}
        assert await ask("good-key-of-tests") == 200  # a key used before still works
        assert (await client.get("/v1/models")).status_code == 401  # no key is no guess


def test_the_memory_of_wrong_keys_is_bounded_and_fades():
    now = 0.0
    failures = FailedAttempts(lambda: now)
    for n in range(MAX_FAILURES * 3):
        failures.record_failure("a")
        failures.record_failure(f"b{n}")
    assert failures.blocked("a")
    assert not failures.blocked("b1")
    now += SECONDS_PER_FAILURE * MAX_FAILURES * 2 + 1
    assert not failures.blocked("a")
    for n in range(MAX_TRACKED + 10):
        failures.record_failure(f"c{n}")
        failures.accept(f"c{n}", b"")
    assert len(failures._unblocked_at) == len(failures._accepted) == MAX_TRACKED


@pytest.mark.parametrize(
    ("how", "address", "shown"),
    [
        ("cut", "203.0.113.7", "203.0.113.0/24"),
        ("cut", "2001:db8:1:2:3::4", "2001:db8:1::/48"),
        ("full", "203.0.113.7", "203.0.113.7"),
        ("none", "203.0.113.7", None),
    ],
)
async def test_a_request_line_tells_who_asked_as_far_as_wanted(how, address, shown, caplog):
    caplog.set_level("INFO", "app.http")
    async with asked(address=address, log_client=how, api_keys="first-key-of-tests second-key-of-tests") as client:
        await client.post(CHAT, json=QUESTION, headers={"authorization": "Bearer second-key-of-tests"})
    (line,) = [r.getMessage() for r in caplog.records if r.getMessage().startswith("request ")]
    assert " key=2" in line
    assert "k2" not in line
    assert re.findall(r" client=(\S+)", line) == ([shown] if shown else [])


async def test_long_names_are_refused_and_cut_where_they_are_repeated(caplog):
    caplog.set_level("INFO", "app.http")
    long = "x" * 5000
    fields = [{"filters": filters} for filters in ({"collections": [long]}, {long: []})]
    fields += [{"model": long}, {"persona": long}, {"stop": [long]}, {"model": "y" * 200}]
    async with asked() as client:
        responses = [await client.post(CHAT, json=QUESTION | one) for one in fields]
        responses += [await client.get(f"/v1/models/{long}"), await client.get(f"/v1/ingest/{long}", headers=JSON)]
        responses += [await client.get("/health", headers={"host": long}), await client.get(f"/{long}")]
        responses += [await client.post("/v1/search", json={"query": "x", "filters": {"url_prefixes": [long]}})]
    for response in responses:
        assert response.status_code in (400, 403, 404, 421)
        assert len(response.text) < 500
        assert "y" * (ECHOED + 1) not in response.text
    assert max(len(record.getMessage()) for record in caplog.records) < 700

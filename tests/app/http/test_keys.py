"""The file of keys: what it may say, and what a key of each role opens."""

from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path

import pytest
from starlette.requests import Request

from app.conversations.opening import open_conversations
from app.core.errors import SettingsError
from app.core.settings import Settings
from app.http.door import _KEY, RequestInfo
from app.http.keys import Keys, is_local, read_keys
from docs_assistant.cli import main
from tests.app.routes.indexed import LIMITS, indexed
from tests.app.routes.scripted import CHAT, chat, client_of, refused, scripted

SITE = "https://docs.example.org"
TODAY = datetime.now(UTC).date()
ASKED = chat("How much memory does a notebook get?")
STEPS = '["detect", "retrieve", "relevance", "synthesize", "cite"]'
TWO = f"[[assistant]]\nid = 'docs'\nsteps = {STEPS}\n\n[[assistant]]\nid = 'secret'\nsteps = {STEPS}\n"


def hashed(key: str) -> str:
    return f"sha256:{sha256(key.encode()).hexdigest()}"


def entry(name: str, role: str = "reader", **more: object) -> str:
    """The `[[key]]` whose key is `NAME-key`."""
    values = {"name": f'"{name}"', "hash": f'"{hashed(f"{name}-key")}"', "role": f'"{role}"', **more}
    return "[[key]]\n" + "\n".join(f"{key} = {value}" for key, value in values.items()) + "\n"


def key(name: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {name}-key", **more}


def write(path: Path, *entries: str) -> str:
    path.write_text("\n".join(entries), encoding="utf-8")
    return str(path)


@asynccontextmanager
async def served(app, address="203.0.113.7", base="http://localhost"):
    async with app.router.lifespan_context(app), client_of(app, address, base) as client:
        yield client


# ---- what a key of each role opens -------------------------------------------------------------

OPEN = (
    "/health",
    "/docs",
    "/admin",
    "/admin-views",
    "/static",
    "/api-docs/files",
    "/brand",
    "/brand.css",
    "/v1/shared",
)
"""What needs no key: texts, scripts and the status; and an answer whose link one has."""
SHARED = ("chat/completions", "search", "models", "interface", "answers", "passages", "conversations")
OPERATORS = ("/v1/ingest", "/v1/admin", "/metrics")


def below(path: str, parents) -> bool:
    return any(f"{path}/".startswith(f"{parent}/") for parent in parents)


def opened(path: str, role: str) -> bool:
    """Whether a role may use a route. A route that isn't named above is one for readers."""
    if path == "/" or below(path, OPEN) or role == "admin":
        return True
    if below(path, OPERATORS) or not role:
        return False
    return role == "reader" or (role == "widget" and below(path.removeprefix("/v1/"), SHARED))


async def test_every_route_is_open_to_its_roles_and_closed_to_the_others(tmp_path):
    """A loop over all routes, so that a new one can't be forgotten: without a rule here, it must need a reader's key."""
    widget, old = entry("w", "widget", origins=f'["{SITE}"]'), entry("old", "admin", expires=TODAY - timedelta(days=1))
    keys = write(tmp_path / "keys.toml", entry("r"), widget, entry("a", "admin"), old)
    callers = [
        ("", {}),
        ("reader", key("r")),
        ("widget", key("w", origin=SITE)),
        ("admin", key("a")),
        ("", key("w")),  # not in a page
        ("", key("w", origin="https://evil.tld")),
        ("", key("old")),
        ("", {"authorization": "Basic a-key"}),
    ]
    kept = open_conversations(Settings.load(None), tmp_path)
    app = scripted(conversations=kept, keys=keys, trusted_proxies="127.0.0.1", share_days=7)
    wrong, seen = [], 0
    async with served(app) as client:
        for route in app.routes:
            path = (
                route.path.replace("{path:path}", "x")
                .replace("{id:path}", "docs-assistant")
                .replace("{id}", "x")
                .replace("{token}", "x")
            )
            for method in sorted(getattr(route, "methods", None) or {"GET"}):
                for role, headers in callers:
                    body = b"{}" if method in {"POST", "PUT", "PATCH"} else None
                    response = await client.request(method, path, headers=headers, content=body)
                    seen += 1
                    closed = response.status_code in {401, 403, 429}  # 429: after many wrong keys
                    closed = closed and "listing_refused" not in response.text  # a rule about lists, not about keys
                    foreign = headers.get("origin") == "https://evil.tld" and closed
                    asks_for_key = path == "/v1/interface" and not headers  # what a page needs for that, and no more
                    if opened(path, role) is closed and not foreign and not asks_for_key:
                        wrong.append((method, path, role or headers, response.status_code))
    assert wrong == []
    assert seen > 200


@pytest.mark.plugins
async def test_without_admin_keys_what_is_for_operators_is_closed(tmp_path):
    """Unlike for questions, no key doesn't mean everybody; the message says what to set."""
    app = scripted(conversations=open_conversations(Settings.load(None), tmp_path), api_keys="reader-key-of-tests")
    paths = [(path, method) for one in app.routes if below(path := one.path, OPERATORS[:2]) for method in one.methods]
    async with served(app) as client:
        for path, method in paths:
            body = b"{}" if method == "POST" else None
            response = await client.request(
                method, path.replace("{id}", "x"), content=body, headers={"authorization": "Bearer reader-key-of-tests"}
            )
            assert refused(response) == (403, "admin_disabled"), path
            assert "DOCS_ADMIN_KEYS" in response.json()["error"]["message"]
    assert len(paths) > 20


async def test_a_widgets_key_works_in_its_pages_only(tmp_path):
    keys = write(tmp_path / "k", entry("w", "widget", origins=f'["{SITE}", "https://*.example.net"]'))
    async with served(scripted(keys=keys)) as client:

        async def ask(**headers):
            return await client.post(CHAT, json=ASKED, headers=key("w", **headers))

        for origin in (SITE, "https://a.example.net"):
            response = await ask(origin=origin)
            assert response.status_code == 200, origin
            assert response.headers["access-control-allow-origin"] in {origin, "*"}
        for origin in (f"{SITE}:8443", "http://docs.example.org", "https://example.net", "null"):
            assert refused(await ask(origin=origin)) == (403, "origin_refused"), origin
        assert refused(await ask()) == (403, "origin_refused")
        # browsers leave Origin out of requests for the page's own host that only read
        same = key("w", **{"sec-fetch-site": "same-origin", "host": "localhost"})
        assert refused(await client.get("/v1/models", headers=same)) == (403, "origin_refused")


@pytest.mark.plugins
async def test_a_key_sees_its_assistants_and_collections_only(tmp_path):
    """Other assistants are as if they weren't there, also in messages; a collection that is not the key's has no pages."""
    own = write(tmp_path / "own.toml", TWO)
    limited = (entry(name, collections=f'["{only}"]') for name, only in (("docs", "docs"), ("none", "other")))
    keys = write(tmp_path / "keys.toml", entry("all"), entry("one", assistants='["secret"]'), *limited)
    async with indexed(tmp_path, with_model=False, assistants=own, keys=keys) as service, served(service.app) as client:

        async def found(name, model=""):
            body = {"query": "memory of notebooks", "model": model}
            return (await client.post("/v1/search", json=body, headers=key(name))).json()

        async def models(name):
            return [one["id"] for one in (await client.get("/v1/models", headers=key(name))).json()["data"]]

        assert (await models("all"), await models("one")) == (["docs", "secret"], ["secret"])
        page = (await client.get("/v1/interface", headers=key("one"))).json()
        assert [one["id"] for one in page["assistants"]] == ["secret"]
        assert (await found("one"))["model"] == "secret"  # the first one of the key
        for path, body in ((CHAT, ASKED), ("/v1/responses", {"input": "x"}), ("/v1/search", {"query": "x"})):
            response = await client.post(path, json={**body, "model": "docs"}, headers=key("one"))
            assert refused(response) == (404, "model_not_found")
            assert "Available: secret." in response.text
        assert refused(await client.get("/v1/models/docs", headers=key("one"))) == (404, "model_not_found")
        docs, everything = [{hit["text"] for hit in (await found(name))["data"]} for name in ("docs", "all")]
        assert docs == everything
        assert LIMITS in docs
        assert (await found("none"))["data"] == []
        wanted = {"query": "memory", "filters": {"collections": ["docs"]}}
        assert (await client.post("/v1/search", json=wanted, headers=key("none"))).json()["data"] == []


async def test_a_key_is_revoked_while_the_service_runs_and_a_broken_file_changes_nothing(tmp_path, caplog):
    file = tmp_path / "keys.toml"
    async with served(scripted(keys=write(file, entry("a"), entry("b")))) as client:

        async def statuses():
            return [(await client.get("/v1/models", headers=key(name))).status_code for name in ("a", "b", "c")]

        assert await statuses() == [200, 200, 401]
        write(file, entry("b"), entry("c"))
        assert await statuses() == [401, 200, 200]
        write(file, entry("c"), "[[key]]\nname = 'x'")
        assert await statuses() == await statuses() == [401, 200, 200]
        file.unlink()
        assert await statuses() == [401, 200, 200]
        errors = [record.getMessage() for record in caplog.records if record.levelname == "ERROR"]
        assert len(errors) == 2
        assert "key 'x': hash is missing" in errors[0]
        write(file, entry("a"))
        assert await statuses() == [200, 401, 401]


async def test_a_page_can_read_that_its_key_is_over(tmp_path):
    file, page = tmp_path / "keys.toml", {"origin": SITE}
    write(file, entry("w", "widget", expires=TODAY - timedelta(days=1), origins=f'["{SITE}"]'))
    async with served(scripted(keys=str(file))) as client:
        response = await client.post(CHAT, headers=key("w", **page), json=ASKED)
        assert (response.status_code, response.headers["access-control-allow-origin"]) == (401, SITE)


async def test_the_last_day_of_a_key_is_its_last(tmp_path):
    days, today = {"gone": -1, "last": 0, "later": 30}, datetime.now(UTC).date()
    keys = write(tmp_path / "k", *(entry(name, expires=today + timedelta(days=n)) for name, n in days.items()))
    async with served(scripted(keys=keys)) as client:
        assert [(await client.get("/v1/models", headers=key(name))).status_code for name in days] == [401, 200, 200]
        assert "was its last day" in (await client.get("/v1/models", headers=key("gone"))).text


async def test_a_file_of_keys_closes_the_service_unless_it_is_open_and_wrong_keys_are_refused_even_then(tmp_path):
    keys = write(tmp_path / "k", entry("r"))
    for is_open, anonymous in ((False, 401), (True, 200)):
        async with served(scripted(keys=keys, open=is_open)) as client:
            assert (await client.get("/v1/models")).status_code == anonymous
            assert (await client.get("/v1/models", headers=key("r"))).status_code == 200
            assert refused(await client.get("/v1/models", headers=key("wrong"))) == (401, "invalid_api_key")


async def test_settings_may_have_hashes_in_place_of_keys(caplog):
    caplog.set_level("INFO", "app.http")
    async with served(scripted(api_keys=f"plain-key-of-tests {hashed('r-key')}", admin_keys=hashed("a-key"))) as client:
        for headers in (key("r"), {"authorization": "Bearer plain-key-of-tests"}, key("a")):
            assert (await client.get("/v1/models", headers=headers)).status_code == 200
        assert (await client.get("/v1/ingest", headers=key("a"))).status_code == 200
        # the hash itself opens nothing
        itself = {"authorization": f"Bearer {hashed('r-key')}"}
        assert (await client.get("/v1/models", headers=itself)).status_code == 401
    assert " key=2" in caplog.text
    with pytest.raises(SettingsError, match="DOCS_API_KEYS: a hash must be sha256: and 64 hexadecimal digits"):
        Settings.load(None, api_keys="sha256:abc")


async def test_the_owner_of_a_key_stays_while_keys_are_added_and_removed():
    """What a key stored must not become that of the next one in the list."""

    def owners(keys):
        access = Keys(Settings.load(None, api_keys=keys), list).access
        return [access(asking(one)).owner for one in keys.split()]

    def asking(secret):
        headers = [(b"authorization", f"Bearer {secret}".encode())]
        scope = {"type": "http", "path": "/v1/models", "headers": headers, "client": ("203.0.113.7", 1)}
        return Request(scope | {_KEY: RequestInfo("x")})

    first, second = owners("the-first-of-two-keys the-second-of-two-keys")
    assert first != second
    assert owners("the-second-of-two-keys") == [second]


# ---- admin routes without a key ----------------------------------------------------------------


async def test_this_machine_may_administer_without_a_key_if_wanted_and_nobody_else():
    app = scripted(admin_open=True)

    async def status(address="127.0.0.1", base="http://localhost:8000", path="/v1/ingest", **headers):
        async with served(app, address, base) as client:
            return (await client.get(path, headers=headers)).status_code

    assert [await status(), await status("::1", "http://[::1]:8000")] == [200, 200]
    assert await status(origin="http://localhost:8000") == 200
    assert await status("203.0.113.7") == 403
    assert await status(base="http://assistant.local") in {403, 421}
    for name in ("forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-real-ip", "via"):
        assert await status(**{name: "127.0.0.1"}) == 403, name
    assert await status(origin="https://docs.example.org") == 403  # a page that may ask
    assert await status(authorization="Bearer wrong") == 401
    # nginx without a line on headers
    scope = {"type": "http", "path": "/", "client": ("127.0.0.1", 1), "headers": [(b"host", b"127.0.0.1:8000")]}
    assert not is_local(Request({**scope, "http_version": "1.0"}))
    assert is_local(Request({**scope, "http_version": "1.1"}))
    async with served(scripted(), "127.0.0.1") as client:
        assert (await client.get("/v1/ingest")).status_code == 403
    with pytest.raises(SettingsError, match="DOCS_ADMIN_OPEN=true is for this machine only"):
        Settings.load(None, admin_open=True, host="0.0.0.0", api_keys="some-key-of-tests").check_open()


async def test_routes_of_readers_still_need_their_key_where_those_of_operators_are_open():
    """DOCS_ADMIN_OPEN says nothing of readers: this machine may look inside, and asks with a key as everybody."""
    async with served(scripted(admin_open=True, api_keys="some-key-of-tests"), "127.0.0.1") as client:
        assert (await client.get("/v1/ingest")).status_code == 200
        for path in ("/v1/models", "/v1/search?q=a"):
            assert (await client.get(path)).status_code == 401, path
        assert (await client.post(CHAT, json=chat("Hi"))).status_code == 401
        with_key = await client.post(CHAT, json=chat("Hi"), headers={"authorization": "Bearer some-key-of-tests"})
        assert with_key.status_code == 200


# ---- what is wrong in a file -------------------------------------------------------------------

MISTAKES = {
    entry("a", "raeder"): "key 'a': role = \"raeder\" must be one of reader, widget, admin. Did you mean reader?",
    entry("a").replace("role", "roel"): "key 'a': unknown roel. Did you mean role?",
    entry("a", "widget"): "key 'a': a widget key is public: it needs origins",
    entry("a", origins=f'["{SITE}"]'): "key 'a': origins belong to a key with role = \"widget\", but this one is of a reader.",
    entry("a", "widget", origins=f'["{SITE}/docs"]'): "key 'a': origins: 'https://docs.example.org/docs' is no origin",
    entry("a", assistants='["docs-asistant"]'): "there is no assistant 'docs-asistant'. Did you mean docs-assistant?",
    entry("a", assistants="[]"): "assistants is empty, which would mean no limit",
    entry("a", rate='"60 a minute"'): "key 'a': rate: it must be a rate, such as \"60/minute\"",
    entry("a", rate='"0/minute"'): "a rate must allow at least 1 request",
    entry("a", concurrency="0"): "concurrency = 0 must be a number of answers at the same time, at least 1",
    entry("a", expires='"2027-01-31"'): 'expires = "2027-01-31" must be a date without quotation marks, as 2027-01-31.',
    entry("a") + entry("a"): "key 'a': another key has the same name.",
    entry("a") + entry("b").replace(hashed("b-key"), hashed("a-key")): "key 'b': another key has the same hash.",
    entry("a").replace(hashed("a-key"), "plain-key"): 'key \'a\': hash must be "sha256:" and 64 hexadecimal digits',
    entry("1"): 'name = "1" must be letters, digits',
    "[key]\nname = 'a'": "must be written as [[key]]",
    "[[keys]]\nname = 'a'": "unknown keys. Did you mean key?",
    "[[key]": "isn't valid TOML",
}  # fmt: skip


def test_each_mistake_in_a_file_of_keys_is_named_and_nothing_secret_is(tmp_path):
    for text, says in MISTAKES.items():
        path = write(tmp_path / "keys.toml", text)
        with pytest.raises(SettingsError) as raised:
            read_keys(path, ["docs-assistant"])
        assert says in str(raised.value), text
        assert str(raised.value).startswith(path)
        assert "plain-key" not in str(raised.value)
    with pytest.raises(SettingsError, match="docs-assistant key new NAME makes it"):
        read_keys(str(tmp_path / "missing"), ())
    (tmp_path / "latin").write_bytes(b"# \xe1")
    with pytest.raises(SettingsError, match="isn't written in UTF-8"):
        read_keys(str(tmp_path / "latin"), ())


def test_keys_are_made_printed_once_and_listed_without_secrets(tmp_path, monkeypatch, capsys):
    assert main(["key", "new", "first"]) == 0
    said = capsys.readouterr()
    secret = said.out.strip()
    assert secret.startswith("da_")
    assert len(secret) == 46
    assert hashed(secret) in said.err
    assert not list(tmp_path.iterdir())
    assert main(["key", "list"]) == 1
    assert "set DOCS_KEYS" in capsys.readouterr().err

    monkeypatch.setenv("DOCS_KEYS", "keys.toml")
    widget = ("--role", "widget", "--origin", SITE, "--assistant", "docs-assistant", "--rate", "60/minute")
    more = ("--note", 'a "b" č', "--concurrency", "3", "--expires", "2020-01-31")
    assert main(["key", "new", "web", *widget, *more]) == 0
    secret = capsys.readouterr().out.strip()
    before = Path("keys.toml").read_text("utf-8")
    assert secret not in before
    for wrong in (["web"], ["x", "--role", "widget"], ["x", "--rate", "often"], ["x", "--assistant", "no"]):
        assert main(["key", "new", *wrong]) == 1
        assert Path("keys.toml").read_text("utf-8") == before
    assert main(["key", "new", "ops", "--role", "admin"]) == 0
    text = Path("keys.toml").read_text("utf-8")
    assert text.startswith(before)
    web, ops = read_keys("keys.toml", ["docs-assistant"])
    assert (web.hash, web.note, web.concurrency, web.expired, ops.role) == (hashed(secret), 'a "b" č', 3, True, "admin")
    capsys.readouterr()
    assert main(["key", "list"]) == 0
    listed = capsys.readouterr().out
    assert "2020-01-31 (expired)" in listed
    assert "sha256" not in listed


def test_a_key_is_revoked_by_name_and_the_rest_of_the_file_stays(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("DOCS_KEYS", "keys.toml")
    path = Path("keys.toml")
    path.write_text("# ours\n", "utf-8")
    for name in ("first", "second", "third"):
        assert main(["key", "new", name, "--note", f"[[key]] of {name}"]) == 0
    path.chmod(0o600)
    one, two, three = read_keys("keys.toml", ["docs-assistant"])
    assert main(["key", "revoke", "second2"]) == 1
    assert "second" in capsys.readouterr().err
    assert main(["key", "revoke", "second"]) == 0
    assert read_keys("keys.toml", ["docs-assistant"]) == [one, three]
    assert path.read_text("utf-8").startswith("# ours\n")
    assert (path.stat().st_mode & 0o777, [file.name for file in tmp_path.iterdir()]) == (0o600, ["keys.toml"])
    inline = (f'{{name = "{name}", role = "reader", hash = "{key.hash}"}}' for name, key in (("x", one), ("y", two)))
    path.write_text(f"key = [{', '.join(inline)}]", "utf-8")
    assert main(["key", "revoke", "x"]) == 1
    assert "by hand" in capsys.readouterr().err

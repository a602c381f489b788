"""Sign-in with a real OpenID provider: who gets in, as what, and what goes wrong."""

import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.core.errors import SettingsError
from app.http.keys import read_keys
from app.routes.sign_in import COOKIE
from tests.app.http.test_keys import entry, key, write
from tests.app.routes.scripted import CHAT, JSON, chat, client_of, refused, scripted, wait_for
from tests.end_to_end.oauth2_proxy import answers, running
from tests.end_to_end.program import free_port

PEOPLE = {
    "olga": {"name": "Olga Operator", "realm": {"roles": ["docs-admins", "staff"]}},
    "rita": {"email": "rita@example.org", "realm": {"roles": ["staff"]}},
    "guest": {"realm": {"roles": "none"}},
}


@pytest.fixture(scope="module")
def provider() -> Iterator[str]:
    """The address of a provider that knows `PEOPLE`."""
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    with running([sys.executable, "-m", "oidc_provider_mock", "--port", str(port)]):
        wait_for(lambda: answers(f"{address}/.well-known/openid-configuration"), 120)
        for name, claims in PEOPLE.items():
            assert httpx.put(f"{address}/users/{name}", json=claims).is_success
        yield address


def table(provider: str, **more: str) -> str:
    values = {
        "issuer": f'"{provider}"',
        "client_id": '"docs"',
        "client_secret": '"a-secret-of-the-client"',
        "roles_claim": '"realm.roles"',
        "admins": '["docs-admins"]',
        "readers": '["staff"]',
        **more,
    }
    return "[sign_in]\n" + "\n".join(f"{name} = {value}" for name, value in values.items()) + "\n"


def service(folder: Path, *parts: str) -> httpx.AsyncClient:
    """A browser of another machine, which keeps cookies."""
    app = scripted(keys=write(folder / "keys.toml", *parts), host="0.0.0.0")  # reached as others reach it
    return client_of(app, "203.0.113.7", headers=JSON)


async def sign_in(browser: httpx.AsyncClient, person: str, after: str = "/admin/runs?x=1") -> httpx.Response:
    """The response to the way back from the provider, where this person has signed in."""
    led = await browser.get("/sign-in/", params={"next": after})
    assert led.status_code == 302, led.text
    async with httpx.AsyncClient() as elsewhere:
        back = await elsewhere.post(led.headers["location"], data={"sub": person})
    return await browser.get(back.headers["location"])


async def test_a_role_of_the_provider_makes_an_operator_or_a_reader(provider, tmp_path):
    for person, name, status in (("olga", "Olga Operator", 200), ("rita", "rita@example.org", 401)):
        async with service(tmp_path, table(provider)) as browser:
            before = (await browser.get("/v1/interface")).json()
            assert (before["key_required"], before["sign_in"], before["person"]) == (True, True, "")
            assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")
            back = await sign_in(browser, person)
            assert (back.status_code, back.headers["location"]) == (303, "/admin/runs?x=1")
            assert (await browser.post(CHAT, json=chat("x"))).status_code == 200
            assert (await browser.get("/v1/interface")).json()["person"] == name
            assert (await browser.get("/v1/ingest")).status_code == status
            assert (await browser.post("/sign-in/out")).status_code == 303
            assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")


async def test_an_operator_who_signed_in_changes_keys_and_the_table_stays(provider, tmp_path):
    async with service(tmp_path, entry("r"), entry("a", "admin"), table(provider)) as browser:
        await sign_in(browser, "rita")
        assert refused(await browser.get("/v1/admin/keys")) == (401, "invalid_api_key")
        await sign_in(browser, "olga")
        row = (await browser.get("/v1/admin/keys")).json()["data"][0]
        body = {"name": "r", "version": row["version"]}
        assert (await browser.post("/v1/admin/keys/revoke", json=body)).status_code == 200
        elsewhere = {"origin": "https://evil.example.org"}
        assert (
            await browser.post("/v1/admin/keys", json={"name": "x", "role": "admin"}, headers=elsewhere)
        ).status_code == 403
    assert (tmp_path / "keys.toml").read_text("utf-8") == f"{entry('a', 'admin')}\n{table(provider)}"


async def test_who_has_no_role_stays_outside(provider, tmp_path):
    async with service(tmp_path, table(provider)) as browser:
        back = await sign_in(browser, "guest", "/")
        assert (back.status_code, back.headers["location"]) == (303, "/?sign_in=refused")
        assert COOKIE not in browser.cookies


async def test_keys_go_on_beside_it(provider, tmp_path):
    async with service(tmp_path, table(provider), entry("r")) as browser:
        assert (await browser.post(CHAT, json=chat("x"), headers=key("r"))).status_code == 200


@pytest.mark.parametrize("path", ["//evil.tld/", "/\\evil.tld", "https://evil.tld", ""])
async def test_the_way_back_leads_nowhere_else(provider, tmp_path, path):
    async with service(tmp_path, table(provider)) as browser:
        assert (await sign_in(browser, "rita", path)).headers["location"] == "/"


async def test_a_forged_cookie_and_an_old_way_back_open_nothing(provider, tmp_path):
    async with service(tmp_path, table(provider)) as browser:
        browser.cookies.set(COOKIE, "eyJyb2xlIjoiYWRtaW4ifQ.aaaaaa.bbbbbbbb")
        assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")
        old = await browser.get("/sign-in/callback?code=x&state=y")
        assert (old.status_code, old.headers["location"]) == (303, "/?sign_in=failed")


async def test_a_session_of_another_secret_is_over(provider, tmp_path):
    async with service(tmp_path, table(provider)) as browser:
        await sign_in(browser, "rita")
        kept = browser.cookies[COOKIE]
    async with service(tmp_path, table(provider, client_secret='"another-secret-of-it"')) as browser:
        browser.cookies.set(COOKIE, kept)
        assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")


async def test_a_provider_that_is_down_is_named(tmp_path):
    async with service(tmp_path, table(f"http://127.0.0.1:{free_port()}")) as browser:
        response = await browser.get("/sign-in/")
        assert response.status_code == 502
        assert "OpenID Connect provider" in response.json()["error"]["message"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"issuer": '"login"'}, "issuer"),
        ({"client_secret": '"short"'}, "sign_in: client_secret must be the secret of the client"),
        ({"hours": "0"}, "sign_in: hours = 0 must be hours from 1 to 720"),
        ({"admin": '["x"]'}, "sign_in: unknown admin. Did you mean admins"),
    ],
)
def test_what_is_wrong_in_the_table_is_named(tmp_path, wrong, told):
    path = write(tmp_path / "keys.toml", table("https://login.example.org", **wrong))
    with pytest.raises(SettingsError, match=told) as error:
        read_keys(path, ())
    assert "secret-of" not in str(error.value)

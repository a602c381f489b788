"""Sign-in with a provider that answers otherwise than it should, or that has changed its mind: who gets in, and what they are told."""

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from app.routes import sign_in
from app.routes.openid import MOST_BYTES
from app.routes.sign_in import COOKIE, STATE_COOKIE
from tests.app.http.test_keys import write
from tests.app.routes.faulty_provider import FaultyProvider, faulty_provider
from tests.app.routes.scripted import CHAT, chat, refused
from tests.app.routes.test_sign_in import service, table

HTML = {"accept": "text/html", "accept-language": "cs"}
ROLES = {"roles_claim": '"roles"'}
UNAVAILABLE = (502, "sign_in_unavailable")


@pytest.fixture
def provider() -> Iterator[FaultyProvider]:
    with faulty_provider() as made:
        yield made


def browser_of(provider: FaultyProvider, folder: Path, **more: str) -> httpx.AsyncClient:
    return service(folder, table(provider.address, **{**ROLES, **more}))


async def come_back(
    browser: httpx.AsyncClient, provider: FaultyProvider, path: str = "/sign-in/?next=/admin", **query: str
):
    """The response to the way back."""
    led = await browser.get(path)
    assert led.status_code == 302, led.text
    return await browser.get(provider.way_back(led.headers["location"], **query))


FAULTS = {
    "no ID token": {"token": {"id_token": None}},
    "no text as the ID token": {"token": {"id_token": 7}},
    "user info of somebody else": {"userinfo": {"sub": "eve"}},
    "user info of nobody": {"userinfo": {"sub": None}},
    "user info that is a list": {"bodies": {"/userinfo": b"[1]"}},
    "an empty user info": {"bodies": {"/userinfo": b"{}"}},
    "no signature": {"algorithm": "none", "metadata": {"id_token_signing_alg_values_supported": ["RS256", "none"]}},
    "a signature with the secret": {"algorithm": "HS256", "metadata": {"id_token_signing_alg_values_supported": ["RS256", "HS256"]}},
    "another issuer": {"claims": {"iss": "https://evil.tld"}},
    "another audience": {"claims": {"aud": "others"}},
    "another nonce": {"claims": {"nonce": "x"}},
    "no subject": {"claims": {"sub": None}},
    "a number as the subject": {"claims": {"sub": 7}},
    "an ID token that is over": {"claims": {"exp": 1}},
    "roles as an object": {"claims": {"roles": {"docs-admins": True}}},
    "roles as a number": {"claims": {"roles": 7}},
    "roles as numbers": {"claims": {"roles": [1, 2]}},
    "roles as objects": {"claims": {"roles": [{"name": "docs-admins"}]}},
    "a token answer that isn't JSON": {"bodies": {"/token": b"<html>"}},
    "a token answer that is a list": {"bodies": {"/token": b"[]"}},
    "keys that are none": {"bodies": {"/jwks": b'{"keys": 7}'}},
    "a user info without an end": {"endless": "/userinfo"},
    "keys without an end": {"endless": "/jwks"},
}  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_an_answer_that_is_wrong_lets_nobody_in_and_has_a_page_that_says_so(provider, tmp_path, fault):
    """As JSON, and for browsers in the language of the reader."""
    for name, value in fault.items():
        setattr(provider, name, value)
    async with browser_of(provider, tmp_path) as browser:
        assert refused(await come_back(browser, provider)) == UNAVAILABLE
        browser.headers.update(HTML)
        page = await come_back(browser, provider)
        assert (page.status_code, page.headers["content-type"].partition(";")[0]) == (502, "text/html")
        assert "Přihlášení se nezdařilo" in page.text
        assert COOKIE not in browser.cookies
    assert provider.sent < 16_000_000  # what buffers of the system take of two answers, 4 MB each and more


BROKEN = {
    "no JSON": {"bodies": {"/.well-known/openid-configuration": b"<html>"}},
    "a list": {"bodies": {"/.well-known/openid-configuration": b"[]"}},
    "without an end": {"endless": "/.well-known/openid-configuration"},
    "too long": {"metadata": {"x": "y" * MOST_BYTES}},
    "another issuer": {"metadata": {"issuer": "https://evil.tld"}},
    "no token endpoint": {"metadata": {"token_endpoint": None}},
    "a way that isn't of the web": {"metadata": {"authorization_endpoint": "javascript:alert(1)"}},
    "no signature that only the provider can make": {"metadata": {"id_token_signing_alg_values_supported": ["none", "HS256"]}},
    "signatures that are no list": {"metadata": {"id_token_signing_alg_values_supported": 7}},
}  # fmt: skip


@pytest.mark.parametrize("fault", BROKEN.values(), ids=BROKEN)
async def test_metadata_that_is_wrong_is_read_once_and_leads_nobody_away(provider, tmp_path, fault, caplog):
    for name, value in fault.items():
        setattr(provider, name, value)
    async with browser_of(provider, tmp_path) as browser:
        answers = await asyncio.gather(*(browser.get("/sign-in/") for _ in range(10)))
        assert {refused(one) for one in answers} == {UNAVAILABLE}
        page = await browser.get("/sign-in/", headers=HTML)
        assert (page.status_code, "Přihlášení se nezdařilo" in page.text) == (502, True)
    assert len(provider.asked) == 1
    assert provider.sent < 8_000_000
    assert "error=ProviderError" in caplog.text


@pytest.mark.parametrize("roles", [None, "", []])
async def test_who_has_no_roles_is_refused_and_a_text_is_one_role(provider, tmp_path, roles):
    async with browser_of(provider, tmp_path) as browser:
        provider.userinfo = provider.claims = {"roles": roles}
        assert (await come_back(browser, provider)).headers["location"] == "/admin?sign_in=refused"
        provider.claims = {"roles": "docs-admins"}
        assert (await come_back(browser, provider)).headers["location"] == "/admin"
        assert (await browser.get("/v1/admin/keys")).status_code == 200


async def test_the_id_token_counts_more_than_the_user_info(provider, tmp_path):
    provider.claims, provider.userinfo = {"name": "Olga"}, {"name": "Eve", "iss": "https://evil.tld"}
    async with browser_of(provider, tmp_path) as browser:
        await come_back(browser, provider)
        assert (await browser.get("/v1/interface")).json()["person"] == "Olga"


async def test_a_role_that_is_taken_out_of_the_table_is_gone_at_the_next_request(provider, tmp_path):
    """The file is read again: without `admins` an operator is a reader, without `readers` nobody, and a new secret ends all."""
    async with browser_of(provider, tmp_path) as browser:
        provider.claims = {"roles": ["docs-admins", "staff"]}
        await come_back(browser, provider)
        assert (await browser.get("/v1/admin/keys")).status_code == 200
        path = tmp_path / "keys.toml"
        write(path, table(provider.address, **ROLES, admins='["others"]'))
        assert refused(await browser.get("/v1/admin/keys"))[0] == 401
        assert (await browser.post(CHAT, json=chat("x"))).status_code == 200
        write(path, table(provider.address, **ROLES, admins='["others"]', readers='["no-longer-staff"]'))
        assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")
        assert (await browser.get("/v1/interface")).json()["person"] == ""
        write(path, table(provider.address, **ROLES))
        assert (await browser.post(CHAT, json=chat("x"))).status_code == 200
        write(path, "")
        assert refused(await browser.post(CHAT, json=chat("x"))) == (401, "invalid_api_key")
        assert (await browser.get("/sign-in/")).status_code == 404


async def test_the_provider_is_asked_again_for_the_roles_and_nobody_notices(provider, tmp_path, monkeypatch):
    """A page that is opened leads there and back; `hours` count from when the person signed in."""
    async with browser_of(provider, tmp_path, renew_minutes="60", hours="2") as browser:
        provider.claims = {"roles": ["docs-admins"]}
        await come_back(browser, provider)
        assert (await browser.get("/admin")).status_code == 200
        for minutes, again in ((61, 303), (122, 200)):
            monkeypatch.setattr(sign_in, "now", lambda later=minutes * 60: time.time() + later)
            assert refused(await browser.get("/v1/admin/keys"))[0] == 401
            page = await browser.get("/admin/runs?x=1")
            assert page.status_code == again
            if again == 303:
                back = await come_back(browser, provider, page.headers["location"])
                assert provider.led["prompt"] == "none"
                assert (back.headers["location"], (await browser.get("/v1/admin/keys")).status_code) == (
                    "/admin/runs?x=1",
                    200,
                )


async def test_who_is_no_longer_known_to_the_provider_is_out_when_it_is_asked_again(provider, tmp_path, monkeypatch):
    for problem in ("login_required", "", "down"):
        monkeypatch.setattr(sign_in, "now", time.time)
        provider.bodies, provider.claims = {}, {"roles": ["docs-admins"]}
        async with browser_of(provider, tmp_path, renew_minutes="5") as browser:
            await come_back(browser, provider)
            monkeypatch.setattr(sign_in, "now", lambda: time.time() + 301)
            renewal = (await browser.get("/?q=x")).headers["location"]
            provider.claims = provider.userinfo = {"roles": []}
            provider.bodies = {"/token": b"x"} if problem == "down" else {}
            query = {"error": problem} if problem == "login_required" else {}
            back = (await come_back(browser, provider, renewal, **query)).headers["location"]
            assert (
                back
                == {"login_required": "/?q=x", "": "/?q=x&sign_in=refused", "down": "/?q=x&sign_in=failed"}[problem]
            )
            assert COOKIE not in browser.cookies
            assert (await browser.get(back)).status_code == 200


async def test_no_page_of_others_signs_somebody_out(provider, tmp_path):
    """Neither by a link, nor by a form, nor by a way back that is none."""
    async with browser_of(provider, tmp_path) as browser:
        provider.claims = {"roles": ["docs-admins"]}
        await come_back(browser, provider)
        link = await browser.get("/sign-in/out")
        assert (link.status_code, link.headers["allow"]) == (405, "POST")
        for origin in ("https://evil.tld", "null"):
            assert refused(await browser.post("/sign-in/out", headers={"origin": origin})) == (403, "origin_refused")
        assert (await browser.get("/sign-in/callback?error=x&state=y")).headers["location"].endswith("?sign_in=failed")
        assert (await browser.get("/v1/admin/keys")).status_code == 200
        assert (await browser.post("/sign-in/out", headers={"origin": str(browser.base_url)})).status_code == 303
        assert COOKIE not in browser.cookies


@pytest.mark.parametrize(("scheme", "secure"), [("http", False), ("https", True)])
async def test_both_cookies_are_secure_where_the_service_is(provider, tmp_path, scheme, secure):
    provider.claims = {"roles": ["docs-admins"]}
    async with browser_of(provider, tmp_path) as browser:
        browser.base_url = httpx.URL(f"{scheme}://{browser.base_url.host}")
        led = await browser.get("/sign-in/")
        back = await browser.get(provider.way_back(led.headers["location"]))
        for response, name in ((led, STATE_COOKIE), (back, COOKIE)):
            cookie = next(one for one in response.headers.get_list("set-cookie") if one.startswith(f"{name}=")).lower()
            assert ("secure" in cookie, "httponly" in cookie, "samesite=lax" in cookie) == (secure, True, True)


async def test_ways_to_sign_in_are_counted_and_cost_no_client_of_their_own(provider, tmp_path, monkeypatch):
    """One context of TLS is made for all, which takes 25 ms of the loop."""
    made = list[object]()
    monkeypatch.setattr("httpx2._config.create_ssl_context", lambda *_, **__: made.append(1))
    async with browser_of(provider, tmp_path) as browser:
        statuses = [(await browser.get("/sign-in/")).status_code for _ in range(301)]
        assert (statuses[:300], statuses[300]) == ([302] * 300, 429)
        assert (await browser.post(CHAT, json=chat("x"), headers={"authorization": "Bearer x"})).status_code == 401
    assert made == []
    assert provider.asked == ["/.well-known/openid-configuration"]

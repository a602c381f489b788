"""Which pages of other origins may ask, and that they can read what goes wrong."""

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from app.http.request_check import SHARED
from tests.app.http.test_door import QUESTION, asked
from tests.app.routes.scripted import CHAT, refused

DOCS = "https://docs.example.org"
PREFLIGHT = {"access-control-request-method": "POST", "access-control-request-headers": "authorization,content-type"}
ALLOWED = {"origins": f"{DOCS} https://*.wiki.example.org http://localhost:3000"}
CLOSED = (
    "/v1/admin/index",
    "/v1/shared/x",
    "/v1/ingest",
    "/v1/responses",
    "/metrics",
    "/mcp",
    "/health",
    "/v1/searches",
    "/docs/en/",
)


def cors(response):
    return {name: value for name, value in response.headers.items() if name.startswith("access-control-")}


async def test_pages_of_allowed_origins_may_ask_and_read_the_answer():
    async with asked("http://localhost:8000", **ALLOWED) as client:
        for origin in (DOCS, "https://a.wiki.example.org", "https://a.b.wiki.example.org", "http://localhost:3000"):
            for name in SHARED:
                allowed = await client.options(f"/v1/{name}", headers={"origin": origin, **PREFLIGHT})
                assert allowed.status_code == 200, name
                assert cors(allowed)["access-control-allow-origin"] == origin
                names = cors(allowed)["access-control-allow-headers"].lower().split(", ")
                sent = {"authorization", "cache-control", "content-type", "x-request-id", "x-conversation-id"}
                assert sent <= set(names)
                assert cors(allowed)["access-control-max-age"] == "7200"
            answer = await client.post(CHAT, json=QUESTION, headers={"origin": origin})
            assert (answer.status_code, cors(answer)["access-control-allow-origin"]) == (200, origin)
            assert (
                cors(answer)["access-control-expose-headers"].lower() == "age, ai-disclosure, retry-after, x-request-id"
            )
            assert "access-control-allow-credentials" not in {**cors(answer), **cors(allowed)}  # cookies stay out
            assert "Origin" in answer.headers["vary"]
        private = {"origin": DOCS, **PREFLIGHT, "access-control-request-private-network": "true"}
        assert cors(await client.options(CHAT, headers=private))["access-control-allow-private-network"] == "true"
        assert (await client.get("/v1/models")).headers["vary"] == "Origin"  # a cache keeps answers of origins apart


async def test_pages_of_other_origins_and_other_routes_stay_closed():
    strangers = ("http://docs.example.org", f"{DOCS}:8443", f"{DOCS}.evil.tld", "https://wiki.example.org", "null")
    async with asked("http://localhost:8000", **ALLOWED) as client:
        for origin in (*strangers, "https://evil.tld/.wiki.example.org"):
            for headers in ({"origin": origin, **PREFLIGHT}, {"origin": origin}):
                method = "OPTIONS" if len(headers) > 1 else "POST"
                response = await client.request(method, CHAT, headers=headers, json=QUESTION)
                assert refused(response) == (403, "origin_refused"), origin
                assert "DOCS_ORIGINS" in response.text
                assert "access-control-allow-origin" not in response.headers
        for path in CLOSED:
            for method, headers in (("OPTIONS", PREFLIGHT), ("GET", {}), ("POST", {})):
                response = await client.request(method, path, headers={"origin": DOCS, **headers}, json=QUESTION)
                assert response.status_code >= 400 or method == "GET", path
                assert cors(response) == {}, path
    async with asked("http://localhost:8000") as client:
        assert refused(await client.options(CHAT, headers={"origin": DOCS, **PREFLIGHT})) == (403, "origin_refused")


async def test_a_page_can_read_what_went_wrong():
    async with asked("http://localhost:8000", **ALLOWED, api_keys="good-key-of-tests") as client:
        codes = []
        for key in ["", *(f"wrong{n}" for n in range(11))]:
            headers = {"origin": DOCS} | ({"authorization": f"Bearer {key}"} if key else {})
            response = await client.post(CHAT, json=QUESTION, headers=headers)
            assert response.headers["access-control-allow-origin"] == DOCS
            codes.append(response.status_code)
        assert (codes[0], codes[-1], response.headers["retry-after"]) == (401, 429, "6")
        unknown = await client.post(CHAT, json=QUESTION, headers={"origin": DOCS, "host": "evil.tld"})
        assert (unknown.status_code, unknown.headers["access-control-allow-origin"]) == (421, DOCS)


def test_an_origin_is_a_scheme_and_a_host():
    given = "HTTPS://Docs.Example.org:443/ http://[::1]:3000 https://*.example.org http://intranet:80"
    kept = ("https://docs.example.org", "http://[::1]:3000", "https://*.example.org", "http://intranet")
    assert Settings.load(None, origins=given).origins == kept
    for wrong in ("docs.example.org", "*", "https://*", "null", "https://a.org/docs", "ftp://a.org", "https://u@a.org"):
        with pytest.raises(SettingsError, match="DOCS_ORIGINS"):
            Settings.load(None, origins=wrong)

"""What a proxy says of a request is believed only of proxies in DOCS_TRUSTED_PROXIES."""

import pytest

from tests.app.routes.scripted import CHAT, JSON, chat, client_of, scripted

SAID = {"x-forwarded-for": "203.0.113.7", "x-forwarded-proto": "https", "x-forwarded-prefix": "/assistant/"}


@pytest.mark.parametrize(
    ("peer", "root"), [("10.0.0.1", "https://localhost/assistant"), ("10.9.9.9", "http://localhost")]
)
async def test_the_prefix_of_a_trusted_proxy_is_in_every_address_and_others_are_not_believed(peer: str, root: str):
    """Sitemap, missing page, files and API description lead to where the client finds them."""
    async with client_of(scripted(trusted_proxies="10.0.0.1"), peer, headers=JSON | SAID) as client:
        assert f"<loc>{root}/docs/en/start</loc>" in (await client.get("/docs/sitemap.xml")).text
        path = root.partition("localhost")[2]
        assert (await client.get("/openapi.json")).json()["servers"] == [{"url": f"{path}/"}]
        assert (await client.get("/api-docs/files/swagger-ui.css")).status_code == 200
        assert (await client.get("/v1/models")).status_code == 200
        for nonsense in ("//evil.example", "/a/../b", '/"><script>', "assistant", "/" + "a/" * 20):
            text = (await client.get("/docs/sitemap.xml", headers={"x-forwarded-prefix": nonsense})).text
            assert "localhost/docs/en/start</loc>" in text, nonsense


async def test_the_prefix_hides_no_route_from_log_and_metrics(caplog: pytest.LogCaptureFixture):
    """A probe is no log line, and a request that middleware refuses counts for its route."""
    caplog.set_level("INFO", "app.http")
    async with client_of(scripted(trusted_proxies="10.0.0.1"), "10.0.0.1", headers=SAID) as client:
        assert (await client.get("/health/live")).status_code == 200
        assert (await client.post("/v1/search", content="x", headers={"content-type": "text/plain"})).status_code == 415
        counted = (await client.get("/metrics")).text
        assert 'requests_total{method="POST",route="/v1/search",status="415"} 1.0' in counted
    assert [record.msg.fields["path"] for record in caplog.records] == ["/assistant/v1/search"]


async def test_a_client_behind_a_proxy_cannot_say_that_it_is_this_machine():
    """This machine has no limits, so a forged 127.0.0.1 would have none: the proxy's address stays."""
    async with client_of(scripted(trusted_proxies="10.0.0.1", rate_limit="1/hour"), "10.0.0.1") as client:
        for forged in ("127.0.0.1", "::1"):
            answers = [await client.post(CHAT, json=chat(), headers={"x-forwarded-for": forged}) for _ in range(2)]
            assert answers[-1].status_code == 429

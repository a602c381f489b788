"""Sign-in by OpenID Connect, as docs/en/proxies.md says: oauth2-proxy before the service, which learns of no person."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.oauth2_proxy import signed_in_only
from tests.end_to_end.program import Program, service
from tests.end_to_end.test_proxies import BODY
from tests.fake_llm import FakeLLM

PERSON = "reader@example.org"
pytestmark = pytest.mark.slow


@pytest.fixture
def served(indexed: Path, endless: dict[str, str]) -> Iterator[Program]:
    with service(indexed, "serve", **endless, DOCS_ADMIN_OPEN="true") as running:
        yield running


async def test_only_who_has_signed_in_gets_the_page_and_answers_which_are_streamed(
    served: Program, llm: FakeLLM, tmp_path: Path
) -> None:
    """Before and after it, programs get a 401 and browsers are led to the provider; nobody becomes an operator by it."""
    with signed_in_only(tmp_path, served.url) as address:
        transport = httpx.AsyncHTTPTransport(local_address="127.0.0.2")
        headers = {"origin": address}
        async with (
            httpx.AsyncClient(transport=transport, base_url=address, headers=headers, timeout=60) as browser,
            asyncio.timeout(240),
        ):
            assert (await browser.get("/v1/models")).status_code == 401
            assert (await browser.post("/v1/chat/completions", json=BODY)).status_code == 401
            led = await browser.get("/?q=x")
            assert (led.status_code, "/oauth2/authorize" in led.headers["location"]) == (302, True)

            form = led.headers["location"]
            async with httpx.AsyncClient() as elsewhere:
                back = await elsewhere.post(
                    form, data={"sub": PERSON}, headers={"origin": form.partition("/oauth2")[0]}
                )
            assert back.status_code == 302, back.text
            page = await browser.get(back.headers["location"], follow_redirects=True)
            assert (page.status_code, page.url.query) == (200, b"q=x")
            assert '<base href="/">' in page.text
            assert (await browser.get("/v1/models")).status_code == 200

            received = ""
            async with browser.stream("POST", "/v1/chat/completions", json=BODY) as response:
                assert response.status_code == 200, await response.aread()
                async for piece in response.aiter_text():
                    received += piece
                    if "generation" in received:
                        break  # the model is still writing
            while llm.open:
                await asyncio.sleep(0.05)
            assert llm.cancelled >= 1

            through = await browser.get("/v1/ingest")
            assert (through.status_code, through.json()["error"]["code"]) == (403, "admin_disabled")
            assert (await browser.get("/oauth2/sign_out")).status_code == 302
            assert (await browser.get("/v1/models")).status_code == 401
    assert httpx.get(f"{served.url}/v1/ingest", trust_env=False).status_code == 200  # this machine, directly
    assert " client=127.0.0.2 " in served.err
    assert PERSON not in served.err

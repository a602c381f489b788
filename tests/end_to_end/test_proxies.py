"""The configuration of deploy/nginx.conf in a real nginx, before a real service: streams, ids, addresses, limits, a prefix."""

import asyncio
import os
import re
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.oauth2_proxy import running
from tests.end_to_end.program import Program, free_port, service
from tests.fake_llm import FakeLLM

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
CONF = Path(__file__).parents[2] / "deploy/nginx.conf"
STREAMS = 20
NAME = "docs.example.org"
BODY = {
    "model": "docs-assistant",
    "stream": True,
    "messages": [{"role": "user", "content": "What is a generation?"}],
}
pytestmark = [pytest.mark.slow, pytest.mark.skipif(not NGINX, reason="no nginx here: apt install nginx")]


@pytest.fixture
def served(indexed: Path, endless: dict[str, str]) -> Iterator[Program]:
    with service(indexed, "serve", **endless, DOCS_ALLOWED_HOSTS=NAME) as running:
        yield running


def configuration(folder: Path, upstream: str, port: int, *, prefix: bool) -> str:
    """The shipped file with ports and certificates of the test; the locations for a prefix take the place of the others."""
    text = CONF.read_text("utf-8")
    if prefix:
        before, _, rest = text.partition("    location / {")
        text = before + re.sub(r"^    #", "    ", rest.partition("two above.\n")[2], flags=re.MULTILINE)
    for old, new in {
        "listen 80;": f"listen 127.0.0.1:{free_port()};",
        "listen 443 ssl": f"listen 127.0.0.1:{port} ssl",
        "127.0.0.1:8000": upstream,
        "/etc/ssl/docs-assistant": str(folder),
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    return text


@contextmanager
def nginx(folder: Path, upstream: str, *, prefix: bool = False) -> Iterator[str]:
    """A running nginx; the address that its clients use."""
    port = free_port()
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", "-subj", f"/CN={NAME}"]
    files = ["-keyout", str(folder / "privkey.pem"), "-out", str(folder / "fullchain.pem")]
    subprocess.run([*command, *files], check=True, capture_output=True)
    (folder / "docs.conf").write_text(configuration(folder, upstream, port, prefix=prefix), "utf-8")
    bodies = " ".join(f"{kind}_temp_path {folder}/{kind};" for kind in ("proxy", "fastcgi", "uwsgi", "scgi"))
    (folder / "nginx.conf").write_text(
        f"{'user root;' if os.geteuid() == 0 else ''} daemon off; pid {folder}/pid; error_log {folder}/error.log; events {{}}\n"
        f"http {{ access_log off; client_body_temp_path {folder}/body; {bodies} include {folder}/docs.conf; }}\n",
        "utf-8",
    )
    with running([str(NGINX), "-p", str(folder), "-c", str(folder / "nginx.conf")]):
        yield f"https://{NAME}:{port}"


@asynccontextmanager
async def client(address: str) -> AsyncIterator[httpx.AsyncClient]:
    """A client at 127.0.0.2 that finds the name at the proxy, once that answers."""
    trusting = ssl.create_default_context()
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    transport = httpx.AsyncHTTPTransport(verify=trusting, local_address="127.0.0.2", retries=5)
    port = address.rpartition(":")[2]
    base, headers = f"https://127.0.0.1:{port}", {"host": f"{NAME}:{port}"}
    async with httpx.AsyncClient(transport=transport, base_url=base, headers=headers, timeout=60) as connected:
        yield connected


async def first_text(browser: httpx.AsyncClient, number: int) -> None:
    """Return when the answer has begun, and hang up. A busy machine may refuse it first."""
    headers, received = {"x-request-id": f"stream-{number}"}, ""
    while True:
        async with browser.stream("POST", "/v1/chat/completions", json=BODY, headers=headers) as response:
            assert response.headers["x-request-id"] == f"stream-{number}"
            async for piece in response.aiter_text():
                received += piece
                if "generation" in received:
                    return
        assert response.status_code == 503, received
        await asyncio.sleep(1)


async def test_through_nginx_twenty_answers_are_streamed_as_they_are_written(
    served: Program, llm: FakeLLM, tmp_path: Path
) -> None:
    """Text comes before the end, who hangs up ends the model's work, the log has id and address, floods get status 429."""
    with nginx(tmp_path, served.url.removeprefix("http://")) as address:
        async with client(address) as browser, asyncio.timeout(240):
            await asyncio.gather(*(first_text(browser, number) for number in range(STREAMS)))
            while llm.open:
                await asyncio.sleep(0.05)
            large = await browser.post("/v1/chat/completions", json={**BODY, "user": "x" * 2_050_000})
            flood = await asyncio.gather(*(browser.get("/v1/models") for _ in range(3 * STREAMS)))
            pages = await asyncio.gather(*(browser.get("/docs/en/start") for _ in range(3 * STREAMS)))
    assert llm.cancelled >= STREAMS
    assert (large.status_code, large.json()["error"]["code"]) == (413, "too_long")
    assert {200, 429} == {response.status_code for response in flood}
    assert {200} == {response.status_code for response in pages}
    for number in range(STREAMS):
        assert re.search(rf"request id=stream-{number} .* client=127\.0\.0\.2 ", served.err), served.err[-2000:]


async def test_through_nginx_the_service_works_below_a_prefix(served: Program, tmp_path: Path) -> None:
    """Redirects, the addresses of the sitemap, the way home from a missing page, and the API's description lead below it."""
    with nginx(tmp_path, served.url.removeprefix("http://"), prefix=True) as address:
        async with client(address) as browser:
            places = [(await browser.get("/assistant")).headers["location"]]
            page = await browser.get("/assistant/")
            home = await browser.get("/assistant/docs/", follow_redirects=True)
            sitemap = await browser.get("/assistant/docs/sitemap.xml")
            models = await browser.get("/assistant/v1/models")
    assert places[0].endswith("/assistant/")
    assert '<base href="/assistant/">' in page.text
    assert (home.status_code, models.status_code) == (200, 200)
    assert f"<loc>{address}/assistant/docs/en/start</loc>" in sitemap.text

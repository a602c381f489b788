"""The client is polite, bounded, and names what went wrong."""

import asyncio
import time
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest

from app.core.retries import retry_after
from app.core.settings import Settings
from ingestion.crawl.exchange import PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.guard import Guard
from ingestion.errors import PageError, PageGone, PageSkipped
from ingestion.urls import host
from tests.ingestion.local_site import LocalSite


async def test_a_page_comes_with_its_validators_and_the_request_names_us(site: LocalSite, fetcher: Fetcher) -> None:
    """Body, type and ETag come back; Accept prefers HTML, and the User-Agent is the setting's."""
    site.put("/a", "<p>x", headers={"Content-Language": "cs"})
    got = await fetcher.get(PageRequest(f"{site.url}/a"))
    assert (got.status, got.body) == (200, b"<p>x")
    assert (got.media_type, got.charset, got.language) == ("text/html", "utf-8", "cs")
    assert got.etag.startswith('"')
    headers = site.log[-1][2]
    assert headers["Accept"].startswith("text/html")
    assert headers["User-Agent"].startswith("docs-assistant")


async def test_a_known_page_is_asked_for_conditionally(site: LocalSite, fetcher: Fetcher) -> None:
    """With its ETag the answer is 304 and has no body."""
    site.put("/a", "<p>x")
    etag = (await fetcher.get(PageRequest(f"{site.url}/a"))).etag
    again = await fetcher.get(PageRequest(f"{site.url}/a", etag=etag, last_modified="Sat, 01 Nov 2025 10:00:00 GMT"))
    assert (again.status, again.body) == (304, b"")
    assert site.log[-1][2]["If-Modified-Since"].startswith("Sat")


@pytest.mark.parametrize(
    ("status", "error", "tries"), [(404, PageGone, 1), (410, PageGone, 1), (500, PageError, 1), (503, PageError, 4)]
)
async def test_what_an_answer_means(
    site: LocalSite, fetcher: Fetcher, status: int, error: type[PageError], tries: int
) -> None:
    """404 and 410 say gone, passing errors are tried four times, others once."""
    site.put("/a", "no", status=status)
    with pytest.raises(error, match=str(status)) as raised:
        await fetcher.get(PageRequest(f"{site.url}/a"))
    assert type(raised.value) is error
    assert site.statuses("/a") == [status] * tries


def test_retry_after_is_read_in_both_forms() -> None:
    """Seconds and dates count, anything else says nothing."""
    later = format_datetime(datetime.now(UTC) + timedelta(seconds=30), usegmt=True)
    assert retry_after("7") == 7
    assert 25 < (retry_after(later) or 0) <= 30
    assert retry_after("soon") is None
    assert retry_after("Sat, 01 Nov 2025 10:00:00 GMT") == 0
    for nonsense in ("+999999999999999", "9" * 5000, "²", "-1", "nan", "Mon, 99 Foo 99999999999 99:99:99 +9999999"):
        assert retry_after(nonsense) is None


async def test_redirects_are_followed_and_recorded(site: LocalSite, fetcher: Fetcher) -> None:
    """The address of the page is where it came from; where it was sought is kept."""
    site.put("/old", "", status=301, headers={"Location": "/new#part"})
    site.put("/new", "<p>x")
    got = await fetcher.get(PageRequest(f"{site.url}/old"))
    assert got.url == f"{site.url}/new"
    assert got.redirects == (f"{site.url}/old",)


async def test_redirects_to_other_hosts_are_not_followed(site: LocalSite, fetcher: Fetcher) -> None:
    """Only the given sites are asked, wherever a page sends us; another port is another host."""
    for number, target in enumerate(("http://169.254.169.254/meta", "http://127.0.0.1:1/x", "file:///etc/passwd")):
        site.put(f"/{number}", "", status=302, headers={"Location": target})
        with pytest.raises(PageSkipped, match="isn't one of the given sites"):
            await fetcher.get(PageRequest(f"{site.url}/{number}"))


async def test_robots_txt_is_obeyed(site: LocalSite, fetcher: Fetcher) -> None:
    """Rules behind a byte order mark count, the longest rule wins, and it is read once."""
    site.put("/robots.txt", b"\xef\xbb\xbfUser-agent: *\nDisallow: /private/\nAllow: /private/ok\n", "text/plain")
    site.put("/private/ok", "<p>x")
    assert (await fetcher.get(PageRequest(f"{site.url}/private/ok"))).status == 200
    with pytest.raises(PageSkipped, match=r"robots\.txt forbids"):
        await fetcher.get(PageRequest(f"{site.url}/private/no"))
    assert len(site.statuses("/robots.txt")) == 1
    assert site.statuses("/private/no") == []


async def test_the_crawl_delay_lies_between_requests(site: LocalSite, fetcher: Fetcher) -> None:
    """Three requests at once to a host that asks for 0.1 s take at least 0.2 s."""
    site.put("/robots.txt", "User-agent: *\nCrawl-delay: 0.1\n", "text/plain")
    site.put("/a", "<p>x")
    await fetcher.robots(site.url)
    began = time.monotonic()
    await asyncio.gather(*(fetcher.get(PageRequest(f"{site.url}/a")) for _ in range(3)))
    assert time.monotonic() - began >= 0.19


@pytest.mark.parametrize("of_source", [False, True])
async def test_no_more_requests_at_once_than_set(of_source: bool) -> None:
    """Ten pages are asked for two at a time, also where only their source wants that."""
    under_way, most = 0, 0

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal under_way, most
        await reader.readuntil(b"\r\n\r\n")
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nx")
        writer.close()
        await writer.wait_closed()

    settings = Settings.load(None, crawl_timeout=60, crawl_parallel=8 if of_source else 2)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server, Fetcher(settings) as fetcher:
        site = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        fetcher.allow([site])
        if of_source:
            fetcher.set_pace(site, 2, None)
        await asyncio.gather(*(fetcher.get(PageRequest(f"{site}/{n}", robots=False)) for n in range(10)))
    assert most == 2


async def test_a_dead_host_is_given_up() -> None:
    """After five pages without any answer the others fail at once instead of waiting for retries."""
    asked = 0

    async def refused(name: str, port: int) -> Sequence[str]:
        nonlocal asked
        asked += 1
        raise OSError("no such name")

    async with Fetcher(Settings.load(None), retry_wait=0.001, guard=Guard(resolve=refused)) as fetcher:
        fetcher.allow(["http://docs.example.org"])
        for number in range(8):
            with pytest.raises(PageError):
                await fetcher.get(PageRequest(f"http://docs.example.org/{number}", robots=False))
    assert asked == 5 * 4


@pytest.mark.parametrize(
    "url", ["http://[::1", "http://127.0.0.1:99999/", "http:///x", "http://" + "a" * 300 + ".example/"]
)
async def test_addresses_that_make_no_sense_are_errors_of_ours(fetcher: Fetcher, url: str) -> None:
    """Nothing of aiohttp or urllib comes out."""
    with pytest.raises(PageError):
        await fetcher.get(PageRequest(url))


def test_hosts_compare_without_the_usual_port() -> None:
    """Port 80 of http goes without saying; names don't care for case or user."""
    assert host("http://Docs.example.org:80/x") == host("http://user@docs.example.org/") == "docs.example.org"
    assert host("https://docs.example.org:8443/") == "docs.example.org:8443"


async def test_unchanged_pages_share_a_connection() -> None:
    """A night in which nothing changed asks for thousands of pages: each with a handshake of its own took twice as long."""
    connections, ended = 0, asyncio.Event()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal connections
        connections += 1
        while await reader.readline():
            while (await reader.readline()).strip():
                pass
            writer.write(b'HTTP/1.1 304 Not Modified\r\nETag: "1"\r\n\r\n')
        writer.close()
        await writer.wait_closed()
        ended.set()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    async with server:
        async with Fetcher(Settings.load(None, crawl_timeout=60)) as made:
            made.allow([url])
            for number in range(3):
                assert (await made.get(PageRequest(f"{url}/{number}", etag='"1"', robots=False))).status == 304
        await ended.wait()  # a writer that outlives its loop fails a later test
    assert connections == 1


async def test_headers_may_be_long_and_need_not_be_utf_8() -> None:
    """A policy of 40 KB is no error, and what is kept of Latin-1 can be stored."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b'Content-Type: text/html\r\nETag: "\xe9"\r\nContent-Security-Policy: ' + 4000 * b"'self' 'a'"
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n" + head + b"\r\n\r\n<p>x")
        writer.close()
        await writer.wait_closed()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with Fetcher(Settings.load(None, crawl_timeout=60)) as made:
            made.allow([url])
            got = await made.get(PageRequest(f"{url}/", robots=False))
    assert (got.body, got.etag) == (b"<p>x", '"é"')

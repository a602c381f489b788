"""The crawler connects to public addresses, to what its operator named, and to nothing else."""

import asyncio
import ipaddress
from collections.abc import AsyncIterator, Sequence
from urllib.parse import urlsplit

import pytest

from app.core.errors import SettingsError
from app.core.settings import Settings
from ingestion.crawl.exchange import PageRequest
from ingestion.crawl.fetch import Fetcher
from ingestion.crawl.guard import AddressRefused, Guard, is_public
from ingestion.errors import PageError, PageSkipped
from tests.ingestion.local_site import LocalSite


class Names:
    """A resolver whose answers a test sets; each question takes the next answer, the last one stays."""

    def __init__(self, **answers: Sequence[str]) -> None:
        self.answers = {name.replace("_", "."): list(found) for name, found in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, name: str, port: int) -> Sequence[str]:
        self.asked.append(name)
        found = self.answers.get(name)
        if not found:
            raise OSError("no such name")
        return (found.pop(0) if len(found) > 1 else found[0]).split()


def port(site: LocalSite) -> int:
    return urlsplit(site.url).port or 0


def fetcher_for(*named: str, names: Names, patterns: Sequence[str] = (), allow: Sequence[str] = ()) -> Fetcher:
    settings = Settings.load(None, crawl_timeout=60, crawl_allow=tuple(allow))
    made = Fetcher(settings, retry_wait=0.001, guard=Guard(settings.crawl_allow, names))
    made.allow(named, patterns)
    return made


PUBLIC = """
    93.184.216.34 2606:2800:220:1::1 64:ff9b::5db8:d822 2002:5db8:d822::1
"""
INTERNAL = """
    127.0.0.1 0.0.0.0 10.1.2.3 172.16.0.1 192.168.1.1 100.64.0.1 169.254.169.254 224.0.0.1 255.255.255.255 ::
    ::1 fe80::1 fd00::1 fec0::1 ff02::1 64:ff9b::a00:1 2002:a00:1::1 64:ff9b:1::1 64:ff9b:1:ffff::808:808
    ::7f00:1 ::808:808 ::ffff:0:7f00:1 2001:0:a00:1::f5ff:fffe 2606:2800::5efe:7f00:1
    2606:2800::200:5efe:a00:1 5f00::1 100::1
"""


def test_what_is_public() -> None:
    """Loopback, private, link-local, shared, multicast and what embeds one of them aren't."""
    assert [address for address in PUBLIC.split() if not is_public(ipaddress.ip_address(address))] == []
    assert [address for address in INTERNAL.split() if is_public(ipaddress.ip_address(address))] == []


@pytest.fixture
async def led(site: LocalSite) -> AsyncIterator[Fetcher]:
    """A fetcher with the system's resolver that may follow pages to any public host."""
    async with Fetcher(Settings.load(None, crawl_timeout=60), retry_wait=0.001) as made:
        made.allow([site.url], ["*"])
        yield made


@pytest.mark.parametrize(
    "internal",
    [
        "localhost", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "0x7f.1", "0177.0.0.1", "[::1]", "0.0.0.0", "0",
        "[::]", "[::ffff:127.0.0.1]", "[::ffff:7f00:1]", "10.0.0.1", "169.254.169.254", "[::ffff:169.254.169.254]",
        "2852039166", "100.64.0.1", "[fe80::1]", "[fd12::1]", "[64:ff9b::7f00:1]", "[2002:7f00:1::]", "224.0.0.1", "[64:ff9b:1::7f00:1]", "[::7f00:1]",
        "[::ffff:0:7f00:1]",
    ],
)  # fmt: skip
async def test_a_redirect_to_an_internal_address_is_refused(site: LocalSite, led: Fetcher, internal: str) -> None:
    """In whatever form it is written, and although the same machine may be read under the name that was given."""
    site.put("/a", "", status=302, headers={"Location": f"http://{internal}:9200/secret"})
    with pytest.raises(PageError, match=r"DOCS_CRAWL_ALLOW|Invalid IPv4 address"):
        await led.get(PageRequest(f"{site.url}/a", robots=False))


async def test_a_name_that_pages_bring_may_not_lead_inside(site: LocalSite) -> None:
    """The name is looked up once, and nothing is asked of the address that came out."""
    names = Names(evil_example_test=["127.0.0.1"])
    async with fetcher_for(site.url, names=names, patterns=["*.example.test:*"]) as fetcher:
        site.put("/a", "", status=302, headers={"Location": f"http://evil.example.test:{port(site)}/secret"})
        site.put("/secret", "secret")
        with pytest.raises(PageSkipped, match=r"evil\.example\.test leads to 127\.0\.0\.1"):
            await fetcher.get(PageRequest(f"{site.url}/a", robots=False))
    assert names.asked == ["evil.example.test"]
    assert site.statuses("/secret") == []


async def test_a_name_that_changes_between_two_answers_gains_nothing(site: LocalSite) -> None:
    """The address that was checked is the one that is connected to: there is no second look-up to poison."""
    names = Names(docs_example_test=["127.0.0.1", "169.254.169.254"])
    async with fetcher_for(f"http://docs.example.test:{port(site)}/", names=names) as fetcher:
        site.put("/a", "<p>x")
        got = await fetcher.get(PageRequest(f"http://docs.example.test:{port(site)}/a", robots=False))
    assert got.body == b"<p>x"
    assert names.asked == ["docs.example.test"]
    assert site.log[-1][2]["Host"] == f"docs.example.test:{port(site)}"


async def test_a_named_host_that_was_public_stays_so() -> None:
    """A site of somebody else can't turn into a service of ours in the middle of a run."""
    guard = Guard(resolve=Names(docs_example_test=["93.184.216.34", "10.0.0.5"]))
    guard.trust("docs.example.test", 443)
    assert await guard.addresses("docs.example.test", 443) == ["93.184.216.34"]
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.5"):
        await guard.addresses("docs.example.test", 443)


async def test_a_named_host_may_be_inside_but_not_where_clouds_keep_their_secrets() -> None:
    """An intranet's site is read by its name; link-local addresses only where they are written themselves."""
    guard = Guard(resolve=Names(wiki_corp=["10.0.0.5"], bad_corp=["169.254.169.254"], mixed_corp=["8.8.8.8 0.0.0.0"]))
    for name in ("wiki.corp", "bad.corp", "mixed.corp", "169.254.7.7"):
        guard.trust(name, 80)
    assert await guard.addresses("wiki.corp", 80) == ["10.0.0.5"]
    assert await guard.addresses("mixed.corp", 80) == ["8.8.8.8"]
    assert await guard.addresses("169.254.7.7", 80) == ["169.254.7.7"]
    with pytest.raises(AddressRefused):
        await guard.addresses("bad.corp", 80)
    with pytest.raises(AddressRefused):  # another port of it is another service
        await guard.addresses("wiki.corp", 9200)


async def test_the_allow_list_opens_hosts_and_networks() -> None:
    """Hosts by name or pattern, networks by their prefix; what is no network is said at the start."""
    names = Names(a_corp=["10.0.0.5"], b_other=["10.9.9.9"], c_other=["10.0.0.9"])
    guard = Guard(["*.corp", "10.9.0.0/16"], names)
    assert await guard.addresses("a.corp", 80) == ["10.0.0.5"]
    assert await guard.addresses("b.other", 80) == ["10.9.9.9"]
    with pytest.raises(AddressRefused):
        await guard.addresses("c.other", 80)
    with pytest.raises(SettingsError, match=r"http://x/y.*without scheme"):
        Guard(["http://x/y"])


async def test_a_host_on_the_allow_list_is_followed(site: LocalSite) -> None:
    """A redirect to it is read, though it is inside."""
    target = f"other.example.test:{port(site)}"
    names = Names(other_example_test=["127.0.0.1"])
    async with fetcher_for(site.url, names=names, allow=[target]) as fetcher:
        site.put("/a", "", status=302, headers={"Location": f"http://{target}/b"})
        site.put("/b", "<p>x")
        assert (await fetcher.get(PageRequest(f"{site.url}/a"))).url == f"http://{target}/b"


async def test_the_next_address_is_tried_and_an_unknown_name_is_an_error(site: LocalSite) -> None:
    """A host with a dead address first is still read."""
    names = Names(docs_example_test=["127.0.0.2 127.0.0.1"])
    address = f"http://docs.example.test:{port(site)}"
    async with fetcher_for(address, "http://nowhere.example.test/", names=names) as fetcher:
        site.put("/a", "<p>x")
        assert (await fetcher.get(PageRequest(f"{address}/a", robots=False))).status == 200
        with pytest.raises(PageError, match=r"nowhere\.example\.test is not known"):
            await fetcher.get(PageRequest("http://nowhere.example.test/", robots=False))


async def test_tls_goes_on_with_the_name() -> None:
    """The checked address is connected to, and the certificate is asked for by name."""
    hello = bytearray()
    got = asyncio.Event()

    async def greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        hello.extend(await reader.read(4096))
        writer.close()
        got.set()

    server = await asyncio.start_server(greet, "127.0.0.1", 0)
    address = f"https://docs.example.test:{server.sockets[0].getsockname()[1]}/"
    async with server, fetcher_for(address, names=Names(docs_example_test=["127.0.0.1"])) as fetcher:
        with pytest.raises(PageError):
            await fetcher.get(PageRequest(address, robots=False))
        await got.wait()
    assert b"docs.example.test" in hello


async def test_a_proxy_of_the_environment_is_used(site: LocalSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the whole address and resolves the name itself; NO_PROXY is kept; written addresses are still checked."""
    monkeypatch.setenv("http_proxy", site.url)
    monkeypatch.setenv("no_proxy", "127.0.0.1,straight.example.test")
    names = Names(straight_example_test=["127.0.0.1"])
    straight = f"http://straight.example.test:{port(site)}"
    async with fetcher_for("http://docs.example.test/", straight, names=names, patterns=["*"]) as fetcher:
        site.put("http://docs.example.test/a", "<p>by proxy")
        site.put("/a", "<p>straight")
        assert (await fetcher.get(PageRequest("http://docs.example.test/a", robots=False))).body == b"<p>by proxy"
        assert (await fetcher.get(PageRequest(f"{straight}/a", robots=False))).body == b"<p>straight"
        with pytest.raises(PageSkipped, match="0x7f000001"):
            await fetcher.get(PageRequest("http://0x7f000001/a", robots=False))
    assert names.asked == ["straight.example.test"]


async def test_a_proxy_that_makes_no_sense_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator learns which setting of the machine is wrong."""
    monkeypatch.setenv("https_proxy", "gopher://proxy.example.test")
    with pytest.raises(SettingsError, match="gopher://proxy"):
        Fetcher(Settings.load(None))

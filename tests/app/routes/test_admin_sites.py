"""The sites of the index over HTTP: added, looked at, paused and removed, with the real command."""

import asyncio
import subprocess
from collections.abc import Iterator

import httpx
import pytest
from pydantic import TypeAdapter

from app.assistants.assembly import build
from app.core.settings import Settings
from app.index import open_store
from app.routes.admin.sites import SiteList, SitePreview
from app.routes.server import create_app
from docs_assistant.cli.ingest import plan
from docs_assistant.cli.serve import INGEST
from tests.app.routes.scripted import refused, serving, wait_for
from tests.docs_assistant.cli.stored_index import Index
from tests.ingestion.local_site import LocalSite, local_site

pytestmark = [pytest.mark.slow, pytest.mark.server]

ADMIN = {"authorization": "Bearer admin-key-of-tests"}
PATHS = ("/guide/pumps", "/guide/valves", "/guide/drafts/motors", "/private/plans")


@pytest.fixture
def site() -> Iterator[LocalSite]:
    """A site whose robots.txt forbids one of four pages, and which lists one of another host."""
    with local_site() as running:
        for path in PATHS:
            running.page(path, path.rpartition("/")[2].title(), f"All about {path}, and what they are good for.")
        running.sitemap(*PATHS)
        body = running.answers["/sitemap.xml"].body  # type: ignore[union-attr]
        other = b"<url><loc>https://elsewhere.example.org/x</loc></url></urlset>"
        running.put("/sitemap.xml", body.replace(b"</urlset>", other), "application/xml")
        running.put("/robots.txt", "User-agent: *\nDisallow: /private/\n", "text/plain")
        yield running


@pytest.fixture
def other() -> Iterator[LocalSite]:
    """Another site of one page, which the settings name."""
    with local_site() as running:
        running.page("/fans", "Fans", "Fans turn at 900 rounds a minute and cool the machine.")
        running.sitemap("/fans")
        yield running


@pytest.fixture
def client(index: Index, site: LocalSite, other: LocalSite, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A client of a real service over an empty index."""
    monkeypatch.setenv("DOCS_SITES", f"{other.url}/sitemap.xml")
    monkeypatch.setenv("DOCS_ADMIN_KEYS", "admin-key-of-tests")
    monkeypatch.setenv("DOCS_CRAWL_ALLOW", "127.0.0.1")
    settings = Settings.load()
    app = create_app(build(settings), settings, ingest_command=INGEST)
    with serving(app) as base, httpx.Client(base_url=base, headers=ADMIN, timeout=60) as made:
        yield made


def ingested(client: httpx.Client, **body: object) -> dict:
    """A run that has ended, as the button starts it."""
    return ended(client, client.post("/v1/ingest", json=body).json()["id"])


def ended(client: httpx.Client, run: str) -> dict:
    wait_for(lambda: client.get(f"/v1/ingest/{run}").json()["state"] in ("done", "failed"))
    return client.get(f"/v1/ingest/{run}").json()


def by_command(*options: str) -> str:
    """What the nightly run says on standard error."""
    done = subprocess.run([*INGEST, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stderr


def pages(client: httpx.Client) -> set[str]:
    return {page["url"] for page in client.get("/v1/admin/pages").json()["data"]}


def rows(client: httpx.Client) -> dict[str, dict]:
    listed = client.get("/v1/admin/sites")
    TypeAdapter(SiteList).validate_json(listed.content, extra="forbid")
    return {row["url"]: row for row in listed.json()["data"]}


def test_a_site_is_looked_at_added_read_paused_and_removed(client: httpx.Client, site: LocalSite, other: LocalSite):
    """By the button and by the command alike; what the settings name stays fixed, and can be paused."""
    fans, pumps = f"{other.url}/sitemap.xml", f"{site.url}/sitemap.xml"
    body = {"url": pumps, "include": ["/guide/*", "/private/*"], "exclude": ["/guide/drafts/*"]}
    seen = client.post("/v1/admin/sites/preview", json=body)
    TypeAdapter(SitePreview).validate_json(seen.content, extra="forbid")
    assert seen.json()["pages"] == [f"{site.url}/guide/pumps", f"{site.url}/guide/valves"]
    assert {one["url"].rpartition("/")[2]: one["reason"] for one in seen.json()["left_out"]} == {
        "motors": "excluded by /guide/drafts/*",
        "plans": "robots.txt forbids it",
        "x": "on a host that isn't one of the given sites",
    }
    assert not any(site.statuses(path) for path in PATHS)  # nothing was fetched but sitemap and robots.txt
    client.post("/v1/admin/sites", json=body).raise_for_status()
    assert {url: (row["origin"], row["pages"]) for url, row in rows(client).items()} == {
        fans: ("settings", None),
        pumps: ("added", None),
    }
    run = ingested(client)
    assert (run["state"], run["counts"]["new"]) == ("done", 3), run["error"]
    row = rows(client)[pumps]
    assert (row["pages"], row["failing"], row["errors"], row["added_by"]) == (2, 0, [], "key admin1")
    assert row["read_at"]

    client.post("/v1/admin/sites/pause", json={"url": pumps}).raise_for_status()
    client.post("/v1/admin/sites/pause", json={"url": fans}).raise_for_status()
    site.log.clear()
    nothing = subprocess.run(INGEST, capture_output=True, text=True, check=False)
    assert (
        nothing.returncode,
        f"Paused in /admin, so neither read nor removed: {pumps}, {fans}" in nothing.stderr,
    ) == (1, True)
    started = asyncio.run(plan(Settings.load(), (fans,), "", replaces=True))
    assert (started[0], fans in started[1][0], pumps in started[1][0]) == ((), True, True)
    client.post("/v1/admin/sites/pause", json={"url": fans, "paused": False}).raise_for_status()
    by_command("--only")
    assert refused(client.post("/v1/ingest", json={"sites": [pumps]}))[0] == 400
    assert ingested(client)["sites"] == [fans]
    assert site.log == []
    assert len(pages(client)) == 3
    client.post("/v1/admin/sites/pause", json={"url": pumps, "paused": False}).raise_for_status()
    by_command()
    assert site.log

    removed = client.post("/v1/admin/sites/remove", json={"url": pumps})
    assert removed.status_code == 202
    run = ended(client, removed.json()["run"]["id"])
    assert (run["state"], run["counts"]["removed"]) == ("done", 2), run["error"]
    wait_for(lambda: list(rows(client)) == [fans])  # the service notices the new generation within seconds
    assert pages(client) == {f"{other.url}/fans"}
    assert refused(client.post("/v1/admin/sites/remove", json={"url": fans})) == (409, "site_exists")


def test_an_admin_may_not_lead_the_crawler_into_the_network(client: httpx.Client, site: LocalSite, monkeypatch):
    """An address that the settings don't allow is refused by preview, list and run; logins, files and other fields are no sites."""
    monkeypatch.delenv("DOCS_CRAWL_ALLOW")
    url = f"{site.url}/sitemap.xml"
    answer = client.post("/v1/admin/sites/preview", json={"url": url})
    assert (answer.status_code, "DOCS_CRAWL_ALLOW" in answer.json()["error"]["message"]) == (400, True)
    told = client.post("/v1/admin/sites", json={"url": url})
    assert refused(told) == (400, "site_unreadable")
    assert "DOCS_CRAWL_ALLOW" in told.json()["error"]["message"]
    client.post("/v1/admin/sites", json={"url": url, "force": True}).raise_for_status()
    run = ingested(client, sites=[url])
    assert (run["state"], "DOCS_CRAWL_ALLOW" in run["error"]) == ("failed", True)
    for body in (
        {"url": "file:///etc/passwd"},
        {"url": "https://me:secret@docs.example.org/"},
        {"url": url, "directory": "/etc"},
        {"url": url, "headers": {"a": "env:HOME"}},
        {"url": url, "language": "Czech"},
    ):
        assert client.post("/v1/admin/sites", json=body).status_code == 400
    assert refused(client.post("/v1/admin/sites/pause", json={"url": "https://nowhere.example.org/"})) == (
        404,
        "site_not_found",
    )
    assert client.post("/v1/admin/sites/remove", json={"url": url}).json()["run"] is None
    client.headers["authorization"] = "Bearer wrong"
    for path in ("", "/preview", "/pause", "/remove"):
        assert client.post(f"/v1/admin/sites{path}", json={"url": url}).status_code == 401


def test_a_site_that_cannot_be_read_is_not_added_and_does_not_stop_the_others(
    client: httpx.Client, site: LocalSite, other: LocalSite
):
    """It is refused with the reason of its preview; added all the same, each run publishes the others and names it."""
    site.put("/sitemap.xml", "", status=500)
    bad, fans = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    preview = client.post("/v1/admin/sites/preview", json={"url": bad}).json()["error"]["message"]
    told = client.post("/v1/admin/sites", json={"url": bad})
    assert refused(told) == (400, "site_unreadable")
    assert preview in told.json()["error"]["message"]
    assert list(rows(client)) == [fans]
    site.put("/sitemap.xml", f"{site.url}/private/plans", "text/plain")
    assert "robots.txt forbids it" in client.post("/v1/admin/sites", json={"url": bad}).json()["error"]["message"]
    site.put("/sitemap.xml", "", status=500)
    client.post("/v1/admin/sites", json={"url": bad, "force": True}).raise_for_status()
    assert rows(client)[bad]["options"] == {"url": bad}
    run = ingested(client)
    assert (run["state"], run["exit_code"]) == ("done", 2), run["error"]
    assert pages(client) == {f"{other.url}/fans"}
    (shown,) = client.get("/v1/admin/runs").json()["data"]
    assert [one.partition(": ")[0] for one in shown["failed_sources"]] == [bad]
    assert rows(client)[bad]["errors"] == shown["failed_sources"]
    problems = {one["code"]: one for one in client.get("/v1/admin/index").json()["problems"]}
    assert "answered 500" in problems["site_failed"]["message"]
    wait_for(lambda: 'docs_assistant_ingest_failed_sources{index="default"} 1.0' in client.get("/metrics").text)


def test_a_damaged_list_stops_a_run(client: httpx.Client, index: Index):
    """A run without it would read the wrong sites."""

    async def damage() -> None:
        store = open_store(Settings.load(None, store=index.address))
        await store.keep("sites", {"added": {"https://a.example.org/": {"who": "x"}}})
        await store.close()

    asyncio.run(damage())
    done = subprocess.run(INGEST, capture_output=True, text=True, check=False)
    assert (done.returncode, "list of sites" in done.stderr) == (1, True)

"""POST and GET /v1/ingest: keys, sites, and the states of a run."""

import asyncio
import io
import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from pydantic import TypeAdapter

from app.assistants.assembly import build
from app.core.generation import Recipe
from app.core.settings import Settings
from app.index import open_store
from app.routes import answer_models as answers
from app.routes.runs import Run
from app.routes.server import create_app
from docs_assistant.cli.serve import INGEST, bind
from ingestion.progress import LogProgress
from tests.app.routes.scripted import CHAT, Scripted, ScriptedAssistants, chat, client_of, refused, serving, wait_for
from tests.docs_assistant.cli.stored_index import Index
from tests.ingestion.local_site import Answer, LocalSite, local_site

pytestmark = pytest.mark.slow

SITES = "https://a.example.org/sitemap.xml https://b.example.org/sitemap.xml"
ADMIN = {"authorization": "Bearer admin-2-key-of-tests"}
OVER = ("done", "failed")


def service(
    *,
    sites: str = SITES,
    admin_keys: str = "admin-1-key-of-tests admin-2-key-of-tests",
    command: tuple[str, ...] = ("false",),
):
    settings = Settings.load(None, sites=sites, admin_keys=admin_keys, api_keys="reader-key-of-tests")
    return create_app(ScriptedAssistants((Scripted(),)), settings, ingest_command=command)


# ---- access ------------------------------------------------------------------------------------


async def test_other_sites_than_the_configured_are_refused():
    """The service fetches nothing that its operator didn't write down; 400 names the field, and no run begins."""
    async with client_of(service()) as client:
        for body, param in (
            ('{"sites": ["http://169.254.169.254/latest/meta-data"]}', "sites[0]"),
            ('{"sites": ["https://a.example.org/sitemap.xml", "https://c.example.org/sitemap.xml"]}', "sites[1]"),
            ('{"sites": ["https://a.example.org/"]}', "sites[0]"),
            ('{"sites": ["--only"]}', "sites[0]"),
            ('{"sites": []}', "sites"),
            ('{"sites": "https://a.example.org/sitemap.xml"}', "sites"),
            ('{"sites": [1]}', "sites[0]"),
            ('{"force": "perhaps"}', "force"),
            ('{"collections": []}', "collections"),
            ('{"collections": [""]}', "collections[0]"),
            ('{"collections": "x"}', "collections"),
            ('{"site": ["https://a.example.org/sitemap.xml"]}', "site"),
            ("[]", None),
            ("{", None),
        ):
            response = await client.post("/v1/ingest", content=body, headers=ADMIN)
            assert (response.status_code, response.json()["error"]["param"]) == (400, param)
            if param == "site":  # a misspelt `sites` was ignored, and everything was indexed
                said = response.json()["error"]["message"]
                assert said.startswith("site: there is no such field. Did you mean sites?")
        assert (await client.get("/v1/ingest", headers=ADMIN)).json()["data"] == []


async def test_a_password_in_the_address_of_a_site_is_not_shown():
    """Neither in the run nor in the message about other sites, nor to other users of the machine in its arguments."""
    show = "import sys; print('docs-assistant:', sys.argv[1:], file=sys.stderr)"
    secret = "https://reader:pa55@a.example.org/sitemap.xml"
    async with client_of(service(sites=secret, command=(sys.executable, "-c", show))) as client:
        other = await client.post("/v1/ingest", json={"sites": ["https://x"]}, headers=ADMIN)
        run = await client.post("/v1/ingest", json={"sites": [secret]}, headers=ADMIN)
        body = await ended(client, run.json()["id"])
    assert "https://reader:…@a.example.org/sitemap.xml" in other.json()["error"]["message"]
    assert body["sites"] == ["https://reader:…@a.example.org/sitemap.xml"]
    assert body["error"] == "['--known=https://reader:…@a.example.org/sitemap.xml']"
    assert "pa55" not in other.text + run.text


async def test_without_configured_sites_there_is_nothing_to_run():
    """The error says which setting lacks."""
    async with client_of(service(sites="")) as client:
        response = await client.post("/v1/ingest", headers=ADMIN)
    assert refused(response) == (400, "no_sites")
    assert "DOCS_SITES" in response.json()["error"]["message"]


async def test_without_a_command_there_is_no_such_address():
    """An application that can't run ingestion doesn't offer it."""
    async with client_of(service(command=())) as client:
        assert (await client.post("/v1/ingest", headers=ADMIN)).status_code == 404
        described = (await client.get("/openapi.json", headers=ADMIN)).json()
        assert "/v1/ingest" not in described["paths"]


# ---- runs that end badly -----------------------------------------------------------------------


async def started(client: httpx.AsyncClient, **body: object) -> dict:
    """A run that has ended."""
    return await ended(client, (await client.post("/v1/ingest", json=body, headers=ADMIN)).json()["id"])


async def ended(client: httpx.AsyncClient, run: str) -> dict:
    async with asyncio.timeout(120):
        while (body := (await client.get(f"/v1/ingest/{run}", headers=ADMIN)).json())["state"] not in OVER:
            await asyncio.sleep(0.05)
    return body


@pytest.mark.parametrize(
    ("script", "reason"),
    [
        ("import sys; print('docs-assistant: The disk is full:\\nfree some', file=sys.stderr); sys.exit(1)",
         "The disk is full:\nfree some"),
        ("import sys; print('Pages: 5'); sys.exit(1)", "The run ended with code 1."),
        ("import os, sys; print('Pages: 5', file=sys.stderr, flush=True); os.kill(os.getpid(), 9)", "The run was killed by signal 9."),
        ("print('{\"published\": null}')", "The run ended with code 0."),
        ("import sys; sys.stderr.write('x' * 3_000_000)", "xxx"),
    ],
)  # fmt: skip
async def test_a_run_that_publishes_nothing_has_failed(script: str, reason: str, caplog: pytest.LogCaptureFixture):
    """If the process fails in any way, the state is failed with a reason, a warning is logged, and the next run may begin."""
    async with client_of(service(command=(sys.executable, "-c", script))) as client:
        for _ in range(2):
            body = await started(client)
            assert body["state"] == "failed"
            assert body["error"].startswith(reason)
    assert any(one.levelname == "WARNING" and reason.partition("\n")[0] in one.getMessage() for one in caplog.records)


async def test_a_command_that_is_missing_fails_the_run_and_not_the_service():
    """The error names the program."""
    async with client_of(service(command=("/nowhere/docs-assistant",))) as client:
        body = await started(client)
        assert (body["state"], body["started_at"]) == ("failed", None)
        assert "/nowhere/docs-assistant" in body["error"]


async def test_only_the_last_runs_are_remembered():
    """Newest first, and no more than ten."""
    async with client_of(service()) as client:
        runs = [(await started(client))["id"] for _ in range(12)]
        listed = [run["id"] for run in (await client.get("/v1/ingest", headers=ADMIN)).json()["data"]]
        assert listed == runs[:1:-1]
        assert (await client.get(f"/v1/ingest/{runs[0]}", headers=ADMIN)).status_code == 404


# ---- options of a run besides its sites ------------------------------------------------------------

SAYS_ITS_ARGUMENTS = "import sys; print('docs-assistant:', *sys.argv[1:], file=sys.stderr); sys.exit(1)"
REFUSED = {"published": None, "exit_code": 3, "refused": ["6 of 10 pages would be lost"], "counts": {"removed": 6}}


@pytest.mark.parametrize(
    ("body", "arguments"),
    [
        ({}, ""),
        ({"force": False}, ""),
        ({"force": True}, "--force"),
        ({"collections": ["docs", "--only"], "force": True}, "--collection=docs --collection=--only --force"),
    ],
)
async def test_options_become_arguments(body: dict[str, object], arguments: str):
    """And nothing that a client sends becomes an option by itself."""
    async with client_of(service(command=(sys.executable, "-c", SAYS_ITS_ARGUMENTS))) as client:
        assert (await started(client, **body))["error"].strip() == (arguments or "docs-assistant:")


async def test_a_refused_run_has_failed_and_keeps_its_report():
    """The state, the reason of the guard, its exit code, and what the run found."""
    script = (
        "import sys; print('docs-assistant: Nothing was published:\\n  6 of 10 pages', file=sys.stderr); "
        f"print({json.dumps(REFUSED)!r}); sys.exit(3)"
    )
    async with client_of(service(command=(sys.executable, "-c", script))) as client:
        run = await started(client)
    assert (run["state"], run["exit_code"], run["counts"]) == ("failed", 3, {"removed": 6})
    assert "6 of 10 pages" in run["error"]
    assert run["report"]["refused"] == REFUSED["refused"]


# ---- real runs: a site, the command, a store ------------------------------------------------------

WORDS = " ".join(f"Sentence number {n} of this page tells readers something about storage." for n in range(12))


@pytest.fixture
def site() -> Iterator[LocalSite]:
    """A site with two sitemaps of one page each."""
    with local_site() as running:
        for name in ("volumes", "snapshots"):
            running.page(f"/{name}", name.title(), f"{name.title()} are explained here. {WORDS}")
            running.sitemap(f"/{name}", at=f"/{name}.xml")
        yield running


@pytest.fixture
def environment(site: LocalSite, index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """The settings of service and command: both sitemaps, an admin key, an empty index."""
    monkeypatch.setenv("DOCS_SITES", f"{site.url}/volumes.xml {site.url}/snapshots.xml")
    monkeypatch.setenv("DOCS_ADMIN_KEYS", "admin-1-key-of-tests admin-2-key-of-tests")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[3]))


@contextmanager
def operated() -> Iterator[httpx.Client]:
    """A client of a real service with the settings of the environment."""
    settings = Settings.load()
    app = create_app(build(settings), settings, ingest_command=INGEST)
    with serving(app) as base, httpx.Client(base_url=base, headers=ADMIN, timeout=30) as made:
        yield made


@pytest.fixture
def client(environment: None) -> Iterator[httpx.Client]:
    """A client of a real service over that index."""
    with operated() as made:
        yield made


def over(client: httpx.Client, **body: object) -> dict:
    """A run that has ended."""
    return finished(client, client.post("/v1/ingest", json=body).json()["id"])


def finished(client: httpx.Client, run: str) -> dict:
    wait_for(lambda: client.get(f"/v1/ingest/{run}").json()["state"] in OVER)
    return client.get(f"/v1/ingest/{run}").json()


def ask(client: httpx.Client, question: str) -> httpx.Response:
    return client.post(CHAT, json=chat(question))


@pytest.mark.server
def test_a_deploy_hook_brings_new_pages_into_answers(client: httpx.Client, site: LocalSite):
    """202 and a place to look, then the whole report; the service that started the run answers from its index."""
    assert ask(client, "What are volumes?").status_code == 503
    response = client.post("/v1/ingest")
    assert response.status_code == 202
    TypeAdapter(answers.IngestRun).validate_json(response.content, extra="forbid")
    queued = response.json()
    assert response.headers["location"] == f"/v1/ingest/{queued['id']}"
    assert queued["state"] == "queued"
    assert queued["sites"] == [f"{site.url}/volumes.xml", f"{site.url}/snapshots.xml"]
    assert queued["by"] == "key admin2 from 127.0.0.1"
    run = finished(client, queued["id"])
    TypeAdapter(answers.IngestRun).validate_python(run, extra="forbid")
    assert (run["state"], run["exit_code"], run["error"]) == ("done", 0, "")
    assert run["queued_at"] <= run["started_at"] <= run["finished_at"]
    assert run["counts"]["new"] == 2
    assert {page["url"] for page in run["report"]["pages"]} == {f"{site.url}/volumes", f"{site.url}/snapshots"}
    wait_for(lambda: ask(client, "What are volumes?").status_code == 200)
    assert f"{site.url}/volumes" in ask(client, "What are volumes?").json()["choices"][0]["message"]["content"]
    listed = client.get("/v1/ingest")
    TypeAdapter(answers.IngestRunList).validate_json(listed.content, extra="forbid")
    assert [(one["id"], "report" in one) for one in listed.json()["data"]] == [(queued["id"], False)]


@pytest.mark.server
def test_recorded_sites_can_be_read_again_without_any_configured(environment: None, site: LocalSite, monkeypatch):
    """With the settings that they were indexed with; beside configured ones, too. Other addresses stay refused."""
    volumes, snapshots = f"{site.url}/volumes.xml", f"{site.url}/snapshots.xml"
    Path("sites.toml").write_text(f'[[source]]\nurl = "{snapshots}"\ncollection = "other"\n', encoding="utf-8")
    subprocess.run([*INGEST, volumes, "sites.toml"], check=True, capture_output=True)
    for configured, body, sites in (
        ("", {}, [volumes, snapshots]),
        ("", {"sites": [snapshots]}, [snapshots]),
        (volumes, {}, [volumes]),
        (volumes, {"sites": [snapshots, volumes]}, [volumes, snapshots]),
    ):
        monkeypatch.setenv("DOCS_SITES", configured) if configured else monkeypatch.delenv("DOCS_SITES")
        with operated() as client:
            known = client.get("/v1/admin/index").json()["sites"]
            run = over(client, **body)
            found = {page["collection"] for page in client.get("/v1/admin/pages").json()["data"]}
            elsewhere = client.post("/v1/ingest", json={"sites": ["http://169.254.169.254/"]})
        assert (run["state"], run["sites"], run["counts"]["unchanged"]) == ("done", sites, len(sites)), run["error"]
        assert known == {
            "configured": [configured] if configured else [],
            "indexed": [snapshots] if configured else [volumes, snapshots],
        }
        assert found == {"docs", "other"}
        assert (elsewhere.status_code, elsewhere.json()["error"]["param"]) == (400, "sites[0]")
        monkeypatch.setenv("DOCS_SITES", volumes)


@pytest.mark.server
def test_a_run_can_be_cancelled_and_says_how_far_it_is(client: httpx.Client, site: LocalSite):
    """It ends as failed, says by whom, and the index stays as it was; a run that is over can't be cancelled."""
    site.answers["/volumes"] = Answer(b"", delay=20)
    run = client.post("/v1/ingest").json()["id"]
    wait_for(lambda: client.get(f"/v1/ingest/{run}").json()["stage"] == "Pages")
    now = client.get(f"/v1/ingest/{run}").json()
    assert now["done"] in (0, 1)
    assert now["total"] == 2
    assert client.post(f"/v1/ingest/{run}/cancel").status_code == 202
    ended = finished(client, run)
    assert (ended["state"], ended["error"]) == ("failed", "Cancelled by key admin2 from 127.0.0.1.")
    assert refused(client.post(f"/v1/ingest/{run}/cancel")) == (409, "run_over")
    assert client.get("/v1/admin/index").json()["indexes"][0]["generation"] is None


def test_lines_of_progress_are_understood():
    """Those of every stage, as the command writes them."""
    stream = io.StringIO()
    lines, run = LogProgress(stream, every=0), Run("r", (), "", "")
    seen = []
    lines.stage("Reading sitemaps", 0)
    lines.advance(3)
    lines.stage("Pages", 40)
    lines.advance(1, "https://docs.example.org/a: 7 of 8")
    lines.advance(1, "https://docs.example.org/b")  # the first page shows no speed
    assert " a second, about 1 min left, https://docs" in stream.getvalue()
    lines.stage("Publishing", 0)
    for line in stream.getvalue().splitlines():
        run.add_line(line)
        seen.append((run.stage, run.done, run.total))
    assert list(dict.fromkeys(seen)) == [
        ("Reading sitemaps", 0, None),
        ("Reading sitemaps", 3, None),
        ("Pages", 0, 40),
        ("Pages", 1, 40),
        ("Pages", 2, 40),
        ("Publishing", 0, None),
    ]
    run.add_line("docs-assistant: 1 of 2 failed")
    assert run.stage == "Publishing"


@pytest.mark.server
@pytest.mark.parametrize(
    ("wanted", "read"),
    [(None, {"volumes", "snapshots"}), (["sites.toml"], {"snapshots"}), (["volumes"], {"volumes"})],
    ids=["all", "file", "site"],
)
def test_sources_of_a_file_are_configured_too(environment: None, site: LocalSite, monkeypatch, wanted, read):
    """Sites and the file are indexed together, and each can be named, the file as a whole."""
    Path("sites.toml").write_text(f'[[source]]\nurl = "{site.url}/snapshots.xml"\n', encoding="utf-8")
    monkeypatch.setenv("DOCS_SITES", f"{site.url}/volumes.xml")
    monkeypatch.setenv("DOCS_SOURCES", "sites.toml")
    body = {"sites": [f"{site.url}/volumes.xml" if name == "volumes" else name for name in wanted]} if wanted else {}
    with operated() as client:
        run = over(client, **body)
        assert run["state"] == "done", run["error"]
        assert {page["url"] for page in run["report"]["pages"]} == {f"{site.url}/{name}" for name in read}
        elsewhere = client.post("/v1/ingest", json={"sites": [f"{site.url}/elsewhere.xml"]})
        assert elsewhere.status_code == 400
        assert "sites.toml" in elsewhere.json()["error"]["message"]


@pytest.mark.server
def test_one_run_at_a_time(client: httpx.Client, site: LocalSite):
    """The second gets 409 with who and when; questions are answered meanwhile; after the end the next one may begin."""
    hold = True

    def slow() -> Answer:
        wait_for(lambda: not hold)
        return Answer(b"<html><body><main><h1>Volumes</h1><p>" + WORDS.encode() + b"</p></main></body></html>")

    site.answers["/volumes"] = slow
    first = client.post("/v1/ingest").json()
    wait_for(lambda: client.get(f"/v1/ingest/{first['id']}").json()["state"] == "running")
    second = client.post("/v1/ingest", headers={"authorization": "Bearer admin-1-key-of-tests"})
    assert refused(second) == (409, "run_under_way")
    for known in (first["id"], first["queued_at"], "key admin2 from 127.0.0.1"):
        assert known in second.json()["error"]["message"]
    wait_for(lambda: client.get(f"/v1/ingest/{first['id']}").json()["progress"].startswith("Pages: 2"))
    assert client.get("/v1/models").status_code == 200
    hold = False
    assert finished(client, first["id"])["state"] == "done"
    third = over(client)
    assert (third["state"], third["counts"]["unchanged"]) == ("done", 2)


@pytest.mark.server
def test_the_end_of_the_service_is_the_end_of_its_run(environment: None, site: LocalSite, index: Index):
    """SIGTERM to a real service: it ends, its run ends with it, and the next one may write to the store at once."""
    site.answers["/volumes"] = Answer(b"", delay=30)
    with bind("127.0.0.1", 0) as free:
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "docs_assistant.cli", "serve", "--port", str(port)]
    with (
        subprocess.Popen(command) as process,
        httpx.Client(base_url=f"http://127.0.0.1:{port}", headers=ADMIN, timeout=30) as client,
    ):
        wait_for(lambda: process.poll() is not None or _listens(client))
        client.post("/v1/ingest")
        wait_for(lambda: "/volumes" in str(site.log) or len(site.statuses("/volumes.xml")) > 0)
        wait_for(lambda: client.get("/v1/ingest").json()["data"][0]["progress"].startswith("Pages"))
        run = _children(process.pid)
        began = time.monotonic()
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) in (0, -signal.SIGTERM)
    assert time.monotonic() - began < 25  # and the page takes 30
    assert len(run) == 1
    assert not Path(f"/proc/{run[0]}").exists()
    asyncio.run(_writes(index))


def _listens(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code in (200, 503)
    except httpx.TransportError:
        return False


def _children(pid: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = stat.read_text(encoding="utf-8").rpartition(")")[2].split()[1]
        except OSError:  # ended meanwhile
            continue
        if int(parent) == pid:
            found.append(int(stat.parent.name))
    return found


async def _writes(index: Index) -> None:
    store = open_store(Settings.load(None, store=index.address))
    try:
        async with await store.draft(Recipe("e", 4, "s", "a")):
            pass
    finally:
        await store.close()

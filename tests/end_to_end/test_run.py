"""`docs-assistant run` when something is in its way: signals, taken ports, sites that fail, a killed service."""

import os
import signal
import socket
import time
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.asking import ask
from tests.end_to_end.program import PATIENCE, READY, free_port, program, service
from tests.ingestion.local_site import Answer, LocalSite, local_site

pytestmark = pytest.mark.slow

PAGES = 30


@pytest.fixture
def site():
    with local_site() as running:
        yield running


def fill(site: LocalSite, delay: float = 0.0) -> str:
    """Pages about gauges that take `delay` seconds each; gives the sitemap's address."""
    paths = [f"/gauge-{n}" for n in range(PAGES)]
    for n, path in enumerate(paths):
        site.page(path, f"Gauge {n}", f"Gauge number {n} measures pressure in boiler {n}.", "Read it every hour.")
        site.answers[path].delay = delay  # type: ignore[union-attr]
    return site.sitemap(*paths)


def half_way(site: LocalSite) -> None:
    """Returns when some pages were read and others weren't."""
    deadline = time.monotonic() + 120
    while sum(path.startswith("/gauge") for path, _, _ in site.log) < 4:
        assert time.monotonic() < deadline
        time.sleep(0.02)


def assert_one_line(text: str, *words: str) -> None:
    """A message for people: no traceback, one line of ours with all the words."""
    assert "Traceback" not in text
    lines = [line for line in text.splitlines() if line.startswith("docs-assistant: ")]
    assert len(lines) == 1, text
    for word in words:
        assert word in lines[0]


def assert_port_is_free(url: str) -> None:
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(url.rpartition(":")[2]))) != 0


def test_stopped_half_way_it_leaves_nothing_running_and_starts_again(site: LocalSite, tmp_path: Path):
    """Whatever stops it in the middle of indexing: no process stays, no traceback, and the next start goes on with the site."""
    port = free_port()
    for number, group, code in ((signal.SIGINT, True, 130), (signal.SIGTERM, False, 143), (signal.SIGHUP, False, 129)):
        sitemap = fill(site, delay=0.3)
        with program(tmp_path, "run", sitemap, "--port", str(port)) as first:
            first.wait_for("Serving on")
            half_way(site)
            assert first.end(number, group=group) == code, number
            assert first.left_behind() == []
            assert "Traceback" not in first.err
            assert "Ready" not in first.out
        site.log.clear()
    fill(site)
    with service(tmp_path, "run", port=port) as again:
        assert f"Going on with the sites of the run that was killed: {sitemap}\n" in again.err
        assert f"{PAGES} new" in again.err
        assert "boiler 7" in ask(again.url, "What does gauge number 7 measure?").text


@pytest.mark.parametrize(
    ("number", "group"), [(signal.SIGINT, True), (signal.SIGTERM, False)], ids=["ctrl-c", "SIGTERM"]
)
def test_stopped_while_serving_it_ends_at_once(indexed: Path, site: LocalSite, number: int, group: bool):
    """Ctrl-C or SIGTERM: within seconds the port is free, and nothing was printed that looks like a fault."""
    with service(indexed, "run", fill(site)) as running:
        began = time.monotonic()
        running.end(number, group=group)
        assert time.monotonic() - began < 60
        assert running.left_behind() == []
        assert_port_is_free(running.url)
        assert "Traceback" not in running.err
        stopped = ["docs-assistant: stopped by Ctrl-C"] if number == signal.SIGINT else []
        assert [line for line in running.err.splitlines() if "docs-assistant:" in line] == stopped


@pytest.mark.parametrize("half", [True, False], ids=["indexing", "serving"])
def test_killed_it_takes_its_service_along(site: LocalSite, tmp_path: Path, half: bool):
    """Kill -9 of the program alone: the port is free soon after, so the next start works."""
    sitemap = fill(site, delay=0.3 if half else 0)
    port = free_port()
    with program(tmp_path, "run", sitemap, "--port", str(port)) as running:
        running.wait_for("Serving on" if half else READY)
        if half:
            half_way(site)
        running.process.kill()
        running.process.wait()
        deadline = time.monotonic() + PATIENCE
        while running.left_behind() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert running.left_behind() == []
        assert_port_is_free(f"http://127.0.0.1:{port}")
    fill(site)
    with service(tmp_path, "run", port=port) as again:
        told = f"Going on with the sites of the run that was killed: {sitemap}\n" in again.err
        assert told is half
        assert "boiler 7" in ask(again.url, "What does gauge number 7 measure?").text


def test_an_unreachable_site_without_a_former_index_ends_it(tmp_path: Path):
    """Nothing to answer from: exit code 1, one line, no process left."""
    gone = f"http://127.0.0.1:{free_port()}/sitemap.xml"
    with program(tmp_path, "run", gone, "--port", str(free_port())) as running:
        assert running.process.wait(60) == 1
        assert_one_line(running.err, gone)
        assert "Ready" not in running.out
        assert running.left_behind() == []


def test_a_service_killed_while_serving_ends_the_program(indexed: Path, site: LocalSite):
    """Out of memory, say: the program says so and ends with 1, it doesn't sit there."""
    with service(indexed, "run", fill(site)) as running:
        (child,) = running.children()
        os.kill(child, signal.SIGKILL)
        assert running.process.wait(20) == 1
        assert_one_line(running.err, "ended by itself", "-9")


@pytest.mark.parametrize("status", [200, 500], ids=["and the site is read", "and the site fails"])
def test_a_service_killed_while_indexing_ends_the_program(site: LocalSite, tmp_path: Path, status: int):
    """Nobody is told that it's ready when there is no service any more."""
    sitemap = fill(site, delay=0.3)
    with program(tmp_path, "run", sitemap, "--port", str(free_port())) as running:
        running.wait_for("Serving on")
        half_way(site)
        for child in running.children():
            os.kill(child, signal.SIGKILL)
        for path, answer in site.answers.items():
            if path.startswith("/gauge") and status != 200:
                site.answers[path] = Answer(b"broken", "text/plain", status)
            else:
                answer.delay = 0.0  # type: ignore[union-attr]
        assert running.process.wait(120) == 1
        assert "Ready" not in running.out
        assert "Traceback" not in running.err
        assert "docs-assistant: " in running.err


def test_a_folder_called_app_in_the_working_directory_is_not_ours(tmp_path: Path):
    """Started in somebody's project, the service is still this one."""
    (tmp_path / "app").mkdir()
    (tmp_path / "app/__init__.py").write_text("raise SystemExit('the wrong app')\n")
    with service(tmp_path, "run") as running:
        assert httpx.get(f"{running.url}/health").is_success

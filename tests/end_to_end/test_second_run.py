"""A newcomer's first hours: her sites stay whatever she starts next, and what she replaces comes back."""

import signal
from pathlib import Path

import httpx
import pytest

from app.index.embedded.pointer import read
from tests.end_to_end.asking import ask
from tests.end_to_end.program import Program, free_port, program, service
from tests.ingestion.local_site import LocalSite, local_site

pytestmark = pytest.mark.slow

GAUGE, VALVE = "What does gauge number 3 measure?", "When does valve number 3 open?"


def gauges(site: LocalSite) -> str:
    """A site about gauges; gives its sitemap."""
    for n in range(8):
        site.page(f"/gauge-{n}", f"Gauge {n}", f"Gauge number {n} measures pressure in boiler {n}.", "Read it hourly.")
    return site.sitemap(*(f"/gauge-{n}" for n in range(8)))


def valves(site: LocalSite) -> str:
    """A site about valves; gives its sitemap."""
    for n in range(5):
        site.page(f"/valve-{n}", f"Valve {n}", f"Valve number {n} opens at {n} bar.", "It closes by itself.")
    return site.sitemap(*(f"/valve-{n}" for n in range(5)))


def answered(running: Program, question: str, path: str) -> bool:
    """Whether the first source of the answer is this page."""
    answer = ask(running.url, question)
    return "Sources" in answer.text and answer.links[0].endswith(path)


def pages(running: Program) -> int:
    return int(httpx.get(f"{running.url}/health").json()["index"]["pages"])


def test_neither_an_outage_nor_a_killed_run_nor_the_guard_costs_a_page(indexed: Path):
    """The service answers from what was there, says why, and reads the same sites the next time."""
    port = free_port()
    with local_site() as site, local_site() as slow:
        hers, others = gauges(site), valves(slow)
        with service(indexed, "run", hers, port=port):
            pass
        for answer in slow.answers.values():
            answer.delay = 0.5  # type: ignore[union-attr]
        with program(indexed, "run", others, "--replace", "--port", str(port)) as running:
            running.wait_for("Removing from the index (--replace)")
            running.wait_for("Pages: ")
            running.end(signal.SIGKILL, group=True)
        assert [one.url for one in read(indexed / "data").live.info.sources] == [hers]
        site.sitemap("/gauge-3")
        with service(indexed, "run", port=port) as running:
            assert "7 of 8 pages" in running.err
            assert "docs-assistant ingest" in running.err
            assert "Going on with what was indexed before." in running.err
            assert answered(running, GAUGE, "/gauge-3")
            assert pages(running) == 8
        gauges(site)
    with service(indexed, "run", port=port) as running:
        assert hers in running.err
        assert "Going on with what was indexed before." in running.err
        assert answered(running, GAUGE, "/gauge-3")

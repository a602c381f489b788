"""A newcomer's first hours: her sites stay whatever she starts next, and what she replaces comes back."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import httpx
import pytest

from app.index.embedded.pointer import read
from tests.end_to_end.asking import QUESTIONS, ask
from tests.end_to_end.program import Program, finished, free_port, program, service
from tests.fake_llm import FakeLLM, Reply
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


def test_what_she_starts_next_never_costs_her_a_site(newcomer: Program, indexed: Path, llm: FakeLLM):
    """As the hints and the README say, in any order: own docs, her site, plain, with a model, another site, replace, rollback."""
    port = free_port()
    with local_site() as first, local_site() as second:
        hers, others = gauges(first), valves(second)
        with service(indexed, "run", hers, port=port) as running:
            assert f"Removing from the index: {newcomer.url}/docs/sitemap.xml" in running.err
            assert answered(running, GAUGE, "/gauge-3")
            assert pages(running) == 8
        with service(indexed, "run", port=port) as running:
            assert f"Reading the indexed sites again: {hers} (8 pages)" in running.err
            assert "8 unchanged" in running.err
            assert ", 0 texts embedded in 0 calls" in running.err
            assert answered(running, GAUGE, "/gauge-3")
            assert "/docs/" not in ask(running.url, QUESTIONS["en"]).text
            assert re.search(r'"content": "[^"]*[Gg]auge', running.out), "a question that her site answers"
        llm.reply = lambda _: Reply("It measures the pressure in boiler 3 [1].")
        with service(indexed, "run", port=port, DOCS_LLM_URL=llm.url, DOCS_LLM_MODEL="fake") as running:
            assert "boiler 3" in ask(running.url, GAUGE).text
            assert not ask(running.url, GAUGE).extractive
            assert pages(running) == 8
            assert "No language model is set" not in running.out
        with service(indexed, "run", others, port=port) as running:
            assert (
                f"Staying in the index: {hers} (8 pages). To keep only the sites that you name, use --replace"
                in running.err
            )
            assert answered(running, GAUGE, "/gauge-3")
            assert answered(running, VALVE, "/valve-3")
        first.page("/gauge-8", "Gauge 8", "Gauge number 8 is new.")
        first.sitemap(*(f"/gauge-{n}" for n in range(9)))
        with service(indexed, "run", port=port) as running:
            assert f"{hers} (8 pages), {others} (5 pages)" in running.err
            assert pages(running) == 14
        with service(indexed, "run", others, "--replace", port=port) as running:
            assert f"Removing from the index (--replace): {hers} (9 pages). `docs-assistant rollback`" in running.err
            assert pages(running) == 5
            done = finished(indexed, "rollback")
            assert (done.returncode, f"Its sites: {hers}, {others}" in done.stdout) == (0, True), done
            assert answered(running, GAUGE, "/gauge-3")
        with service(indexed, "run", port=port) as running:
            assert pages(running) == 14
            assert "14 unchanged" in running.err


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

"""A service whose vectors come from an embedding server: it fails, or another one is set."""

from __future__ import annotations

import httpx
import pytest

from tests.end_to_end.asking import INTRO, ask
from tests.end_to_end.program import finished, service
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import local_site

pytestmark = pytest.mark.slow

QUESTION = "What does gauge number 7 measure?"


@pytest.fixture
def sitemap():
    with local_site() as site:
        for n in range(12):
            site.page(f"/gauge-{n}", f"Gauge {n}", f"Gauge number {n} measures pressure in boiler {n}.")
        yield site.sitemap(*(f"/gauge-{n}" for n in range(12)))


def test_an_embedder_that_is_down_leaves_the_search_by_words(llm: FakeLLM, sitemap: str, tmp_path):
    """The question is answered from the right page all the same; the log says what failed."""
    settings = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    with service(tmp_path, "run", sitemap, **settings) as running:
        assert sum(map(len, llm.embedded)) >= 12
        whole = ask(running.url, QUESTION)
        llm.embedding_status = 500
        for stream in (False, True):
            answer = ask(running.url, QUESTION, stream=stream)
            assert answer.status == 200
            assert answer.links[0].endswith("/gauge-7")
        assert whole.links[0].endswith("/gauge-7")
        assert "searching by words only" in running.err


def test_an_embedder_that_is_down_stops_indexing_and_keeps_the_index(llm: FakeLLM, sitemap: str, tmp_path):
    """New pages can't be embedded: one line, exit code 1, and the old pages answer."""
    settings = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    with local_site() as first:
        first.page("/old", "Old gauge", "The old gauge measures pressure.")
        assert finished(tmp_path, "ingest", first.sitemap("/old"), **settings).returncode == 0
    llm.embedding_status = 500
    done = finished(tmp_path, "ingest", sitemap, **settings)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"{llm.url}/embeddings answered 500" in done.stderr
    asked = finished(tmp_path, "ask", "What does the old gauge measure?", **settings)
    assert asked.returncode == 0
    assert "/old" in asked.stdout


def test_another_embedder_is_refused_until_the_site_is_indexed_anew(llm: FakeLLM, sitemap: str, tmp_path):
    """Vectors of two embedders are never compared: index_mismatch, until the next run."""
    settings = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    assert finished(tmp_path, "ingest", sitemap, **settings).returncode == 0
    with service(tmp_path, "serve") as running:
        answer = ask(running.url, QUESTION)
        assert answer.status == 500
        assert answer.errors[0]["code"] == "index_mismatch"
        health = httpx.get(f"{running.url}/health")
        assert health.status_code == 503
        assert "eight" in health.json()["details"]["index"]
        assert finished(tmp_path, "ingest", sitemap).returncode == 0
        answer = ask(running.url, QUESTION)
        assert answer.text.startswith(INTRO["en"])
        assert answer.links[0].endswith("/gauge-7")

"""What an operator sees of a service whose model server is away and whose site answers only after a while."""

import json
import time
from itertools import chain, repeat
from pathlib import Path

import httpx
import pytest

from tests.end_to_end.asking import ask
from tests.end_to_end.program import service
from tests.ingestion.local_site import Answer, local_site

pytestmark = pytest.mark.slow
ADMIN = {"authorization": "Bearer admin-key-1234567890"}


def test_the_log_has_only_our_lines_and_the_metrics_tell_the_same_story(tmp_path: Path):
    """Every line is JSON of ours: no warning of a library, neither of retries nor when the run is started."""
    with local_site() as site:
        site.page("/volumes", "Volumes", "You create a persistent volume with a claim of the class nfs-csi.")
        page = site.answers["/volumes"]
        tries = chain([Answer(status=503, headers={"retry-after": "1"})], repeat(page))
        site.answers["/volumes"] = lambda: next(tries)
        site.put("/sitemap.xml", f"<urlset><url><loc>{site.url}/volumes</loc></url></urlset>", "application/xml")
        settings = {"DOCS_SITES": f"{site.url}/sitemap.xml", "DOCS_ADMIN_KEYS": "admin-key-1234567890"}
        settings |= {"DOCS_LLM_URL": "http://127.0.0.1:9/v1", "DOCS_LLM_MODEL": "m", "DOCS_LOG_JSON": "true"}
        with service(tmp_path, "serve", **settings) as running:
            httpx.post(f"{running.url}/v1/ingest", json={}, headers=ADMIN).raise_for_status()
            deadline = time.monotonic() + 120
            while '"ingest ended"' not in running.err and time.monotonic() < deadline:
                time.sleep(0.2)
            assert ask(running.url, "How do I create a persistent volume?").extractive
            metrics = httpx.get(f"{running.url}/metrics", headers=ADMIN).text
        assert [line for line in running.err.splitlines() if not line.startswith("{")] == []
        lines = [json.loads(line) for line in running.err.splitlines()]

    assert {line["logger"].partition(".")[0] for line in lines} == {"app", "docs_assistant"}
    said = [line["text"] for line in lines if line["message"] == "ingest says"]
    (retry,) = [json.loads(text) for text in said if text.startswith("{")]
    assert (retry["logger"], retry["message"], retry["reason"]) == ("app.retries", "asking again", "answered 503")
    assert (retry["url"], retry["in_s"], retry["attempt"]) == (f"{site.url}/volumes", 1.0, "2 of 4")
    assert all(text.startswith(("Reading", "Pages", "Publishing", "{")) for text in said)
    (answered,) = [line for line in lines if line.get("outcome")]
    assert (answered["outcome"], answered["extractive"], answered["generation"]) == ("extractive", True, 1)

    assert 'docs_assistant_ingest_runs_total{index="default",result="published"} 1.0' in metrics
    assert 'outcome="extractive"} 1.0' in metrics
    assert 'docs_assistant_call_failures_total{error="ModelUnavailable"' in metrics

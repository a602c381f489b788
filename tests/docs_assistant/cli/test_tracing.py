"""Traces of the commands: sent before a program ends, whoever ends it."""

import os
import signal
import subprocess
import sys
import time

import httpx
import pytest

from tests.end_to_end.program import free_port
from tests.otlp import receiver


def test_a_run_has_its_stages_and_the_calls_to_the_embedder(cli, site):
    with receiver() as collector:
        done = cli("ingest", f"{site.url}/sitemap.xml", OTEL_EXPORTER_OTLP_ENDPOINT=collector.url)
    assert done.code == 0, done.err
    (run,) = collector.named("ingest")
    assert run.facts == {"docs_assistant.result": "published", "docs_assistant.pages": 3}
    assert [one.name for one in collector.children(run)] == ["list", "pages", "publish"]
    (pages,) = collector.named("pages")
    assert {one.facts["gen_ai.operation.name"] for one in collector.children(pages)} == {"embeddings"}


@pytest.mark.slow
def test_a_service_that_is_stopped_sends_its_last_spans(indexed):
    """Uvicorn ends the program with the signal, so no code after it runs."""
    port = free_port()
    with receiver() as collector:
        environment = {**os.environ, "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": "60000"}
        service = subprocess.Popen(
            [sys.executable, "-m", "docs_assistant.cli", "serve", "--port", str(port)], env=environment
        )
        try:
            url = f"http://127.0.0.1:{port}"
            deadline = time.monotonic() + 30
            while time.monotonic() < deadline:
                try:
                    httpx.get(f"{url}/health/live", trust_env=False)
                    break
                except httpx.TransportError:
                    time.sleep(0.1)
            asked = {"query": "What measures pressure?"}
            assert httpx.post(f"{url}/v1/search", json=asked, trust_env=False, timeout=30).status_code == 200
            assert not collector.spans
            service.send_signal(signal.SIGTERM)
            service.wait(timeout=20)
        finally:
            service.kill()
            service.wait()
    (server,) = collector.named("POST /v1/search")
    assert "retrieve" in {one.name for one in collector.children(server)}

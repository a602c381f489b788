"""Regressions planted into the real thing: each is caught by the gate, and nothing else is."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from eval.commands.options import AssistantFinder
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Plan, evaluate
from eval.questions.cases import load_cases
from ingestion.run import ingest
from tests.eval.planted import alarms, dropped, lose_headings, without_czech_analysis
from tests.ingestion.local_site import load
from tests.scripted import ScriptedModel, load_script
from tests.serving import serving

pytestmark = [pytest.mark.server, pytest.mark.slow]
EVAL = Path(__file__).parents[2] / "../shared/eval"
if not EVAL.is_dir():
    pytest.skip("needs the shared question set beside the checkout", allow_module_level=True)

CASES = load_cases(EVAL / "questions.jsonl")
SCRIPT = load_script(EVAL / "model_outputs.jsonl", CASES)
KNOWN = tuple(case for case in CASES if SCRIPT.find(case.question))


@dataclass
class Bench:
    """Indexes the shared corpus over HTTP and measures the shared questions on it."""

    site: str
    folder: Path

    def index(self, name: str) -> Path:
        store = self.folder / name
        settings = Settings.load(env_file=None, store=str(store))

        async def run() -> None:
            opened_store = EmbeddedStore(str(store), keep=1)
            sites = [f"{self.site}/{language}/sitemap" for language in ("en", "cs")]
            await ingest(sites, store=opened_store, embedder=open_embedder(settings), settings=settings)
            await opened_store.close()

        asyncio.run(run())
        return store

    def measure(self, store: Path, *, scripted: bool = False, cases=CASES, **settings: Any) -> RetrievalResult:
        wanted = Settings.load(env_file=None, store=str(store), **settings)
        model = ScriptedModel(SCRIPT, load_prompts(wanted.languages)) if scripted else None

        async def run() -> RetrievalResult:
            async with opened(wanted, model=model) as assistants:
                return await evaluate(AssistantFinder(assistants), cases, Plan())

        return asyncio.run(run())


@pytest.fixture(scope="module")
def bench(tmp_path_factory) -> Iterator[Bench]:
    served = load(EVAL / "serve_fumadocs.py")
    served.Handler.root, served.Handler.quiet = str((EVAL / "corpus").resolve()), True
    with serving(ThreadingHTTPServer(("127.0.0.1", 0), served.Handler)) as url:
        logging.getLogger("app").setLevel(logging.ERROR)
        yield Bench(url, tmp_path_factory.mktemp("planted"))
        logging.getLogger("app").setLevel(logging.NOTSET)


@pytest.fixture(scope="module")
def store(bench: Bench) -> Path:
    return bench.index("sound")


@pytest.fixture(scope="module")
def sound(bench: Bench, store: Path) -> RetrievalResult:
    return bench.measure(store)


def test_without_a_change_twenty_random_halves_pass(bench: Bench, sound: RetrievalResult):
    """The corpus indexed anew and asked anew, half of the questions at a time: no false alarm."""
    assert alarms(bench.measure(bench.index("again")), sound) == []


def test_swapped_weights_are_caught(bench: Bench, store: Path, sound: RetrievalResult):
    """0.2 for words and 0.8 for vectors, instead of the other way round: both languages drop."""
    found = dropped(bench.measure(store, vector_weight={"*": 0.8}), sound)
    assert {("page", "en"), ("page", "cs"), ("page", "mean"), ("chunk", "mean")} <= found


def test_a_lost_language_model_is_caught(bench: Bench, store: Path):
    """Keywords of the scripted model, then none: Czech questions about English pages drop most."""
    before = bench.measure(store, scripted=True, cases=KNOWN)
    found = dropped(bench.measure(store, cases=KNOWN), before)
    assert {("page", "mean"), ("page", "cs-cross"), ("chunk", "cs-cross")} <= found


def test_lost_heading_paths_are_caught(bench: Bench, sound: RetrievalResult, monkeypatch):
    """Chunks forget their headings: pages are found as before, but no link leads to the right section."""
    lose_headings(monkeypatch)
    found = dropped(bench.measure(bench.index("headless")), sound)
    assert {("section", "mean"), ("section", "cs"), ("section", "en")} <= found
    assert not any(measure == "page" for measure, _ in found)


def test_a_lost_czech_analysis_is_caught(bench: Bench, sound: RetrievalResult):
    """Czech words count only as they are written: Czech drops, English doesn't."""
    with without_czech_analysis():
        found = dropped(bench.measure(bench.index("plain")), sound)
    assert ("page", "cs") in found
    assert not any(language == "en" for _, language in found)

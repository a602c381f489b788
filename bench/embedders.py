"""Embedders, stores and question sets: quality, time and memory of each combination.

python -m bench.embedders [EMBEDDER ...] [--set NAME=QUESTIONS,SITEMAP[,SITEMAP]] [--opensearch URL] [--shares 0.2,0.5]

EMBEDDER is a value of DOCS_EMBEDDING_MODEL, `onnx` (e5-small-v2, English, 8 bits, which `make install-dev` brings, read by
fastembed), or `server`: an OpenAI-compatible server with the weights of multilingual-e5-small. The first set is this
product's own documentation; others need their site, served. Without a language model. With --shares, a row for each
weight of the vector search instead of the one in force. Every passage is embedded once for both stores.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from fastapi import FastAPI

from app.api.html_pages import Site, find_docs
from app.assistants.assembly import opened
from app.core.settings import Settings
from app.core.types import Vector
from app.index import open_store
from app.models import Embedder, open_embedder
from eval.commands.options import NO_MODEL, AssistantFinder, quiet_pipeline
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Plan, evaluate
from eval.measure.tables import as_table
from eval.questions.cases import Case, load_cases
from eval.questions.own_docs import SITE, own_set
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest

EMBEDDERS = ("local:static", "local:multilingual-e5-small", "onnx", "server")
ONNX = Path(os.environ.get("DOCS_TEST_ONNX", Path(sys.prefix, "onnx")))  # where make install-dev unpacks it
COLUMNS = ("embedder", "store", "set", "weight", "cs", "en", "all", "cross", "ms a question", "ms a passage", "MB")
OWN = "own docs"
INDEX = "bench-embedders"


@dataclass
class Remembering:
    """An embedder that embeds each passage once, and counts the seconds that it took: one call at a time, so that calls
    that wait for each other aren't counted twice.
    """

    embedder: Embedder
    known: dict[str, Vector] = field(default_factory=dict)
    seconds: float = 0.0
    turn: asyncio.Lock = field(default_factory=asyncio.Lock)

    @property
    def name(self) -> str:
        """The name that the index records."""
        return self.embedder.name

    async def dimension(self) -> int:
        """Length of the vectors."""
        return await self.embedder.dimension()

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each question."""
        return await self.embedder.embed_queries(texts)

    async def embed_passages(self, texts: Sequence[str]) -> list[Vector]:
        """A vector for each passage."""
        async with self.turn:
            new = [text for text in dict.fromkeys(texts) if text not in self.known]
            began = time.perf_counter()
            self.known.update(zip(new, await self.embedder.embed_passages(new), strict=True) if new else ())
            self.seconds += time.perf_counter() - began
        return [self.known[text] for text in texts]

    async def close(self) -> None:
        """Nothing: runs close their embedder, and this one serves several."""


@dataclass(frozen=True)
class QuestionSet:
    """Questions with the sitemaps of their site; without sitemaps, our own documentation."""

    name: str
    cases: Sequence[Case]
    sitemaps: Sequence[str] = ()

    @classmethod
    def parse(cls, text: str) -> QuestionSet:
        """From NAME=QUESTIONS,SITEMAP[,SITEMAP]."""
        name, _, rest = text.partition("=")
        path, *sitemaps = rest.split(",")
        return cls(name, load_cases(Path(path)), sitemaps)

    async def index(self, settings: Settings, embedder: Embedder) -> None:
        """Crawl the site into the store of these settings."""
        app = FastAPI(openapi_url=None)
        Site(find_docs(), default_language=settings.default_language).add_to(app)
        transport = None if self.sitemaps else httpx.ASGITransport(app)
        store = open_store(settings)
        try:
            async with Fetcher(settings, transport=transport) as fetcher:
                sitemaps = self.sitemaps or [f"{SITE}/docs/sitemap.xml"]
                report = await ingest(sitemaps, store=store, embedder=embedder, settings=settings, fetcher=fetcher)
        finally:
            await store.close()
        if report.exit_code:
            raise SystemExit(report.text)


@contextmanager
def settings_of(embedder: str) -> Iterator[tuple[Mapping[str, Any], int]]:
    """Context of the settings of an embedder and, if it is a server, its process id."""
    if embedder == "onnx":
        with tempfile.TemporaryDirectory() as folder:
            yield {"embedding_model": f"local:{onnx_model(Path(folder))}"}, 0
        return
    if embedder != "server":
        yield {"embedding_model": embedder}, 0
        return
    with subprocess.Popen(
        [sys.executable, "-m", "bench.embedding_server"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout
        try:
            port = int(process.stdout.readline())
            model = "multilingual-e5-small"
            yield (
                {"embedding_url": f"http://127.0.0.1:{port}/v1", "embedding_model": model, "embedding_timeout": 600},
                process.pid,
            )
        finally:
            process.terminate()


def onnx_model(folder: Path) -> Path:
    """The files of the model in the layout of an export."""
    name = "e5-small-v2-q"
    directory = folder / name
    directory.mkdir()
    (directory / "model_quantized.onnx").symlink_to(ONNX / f"{name}.onnx")
    (directory / "tokenizer.json").symlink_to(ONNX / f"{name}-tokenizer.json")
    settings = {"model_max_length": 512, "pad_token": "[PAD]"}
    (directory / "tokenizer_config.json").write_text(json.dumps(settings), encoding="utf-8")
    return directory


def resident_mb(process: int | str) -> float:
    """Memory of a process, by its id or "self"."""
    status = Path(f"/proc/{process}/status").read_text(encoding="ascii")
    return int(status.split("VmRSS:")[1].split()[0]) / 1000


@asynccontextmanager
async def stores(opensearch: str) -> AsyncIterator[Mapping[str, str]]:
    """Context of temporary stores by name; `DOCS_STORE` of each."""
    with tempfile.TemporaryDirectory() as folder:
        found = {"embedded": folder}
        if opensearch:
            found["OpenSearch"] = f"{opensearch.replace('http', 'opensearch', 1).rstrip('/')}/{INDEX}"
        try:
            yield found
        finally:
            if opensearch:
                async with httpx.AsyncClient(base_url=opensearch) as client:
                    named = await client.get(f"/_cat/indices/{INDEX}*?h=index&expand_wildcards=all")
                    for index in named.text.split():
                        await client.delete(f"/{index}")


async def measure(name: str, one: QuestionSet, opensearch: str, shares: Sequence[float]) -> AsyncIterator[list[str]]:
    """The rows of an embedder over a set."""
    with settings_of(name) as (own, process):
        settings = Settings.load(None, **NO_MODEL, **own)
        embedder = Remembering(open_embedder(settings))
        before = 0.0 if process else resident_mb("self")
        await embedder.embed_passages(["The weights are loaded."])
        memory, embedder.seconds = resident_mb(process or "self") - before, 0.0
        async with stores(opensearch) as by_name:
            for store, address in by_name.items():
                at = settings.model_copy(update={"store": address})
                await one.index(at, embedder)
                for share in shares or (settings.vector_share("en", embedder.name),):
                    result = await _ask(at.model_copy(update={"vector_weight": {"*": share}}), one.cases)
                    cost = f"{result.milliseconds['p50']:.0f}", f"{1000 * embedder.seconds / len(embedder.known):.0f}"
                    yield [name, store, one.name, f"{share:g}", *_quality(result), *cost, f"{memory:.0f}"]
        await embedder.embedder.close()


async def _ask(settings: Settings, cases: Sequence[Case]) -> RetrievalResult:
    async with opened(settings) as assistants:
        return await evaluate(AssistantFinder(assistants), cases, Plan(parallel=1))


def _quality(result: RetrievalResult) -> Iterator[str]:
    for wanted in (lambda one: one.language == "cs", lambda one: one.language == "en", lambda _: True):
        yield _mrr([one.scores.rr for one in result.cases if not one.case.cross and wanted(one.case)])
    yield _mrr([one.scores.rr for one in result.cases if one.case.cross])


def _mrr(values: Sequence[float]) -> str:
    return f"{sum(values) / len(values):.3f}" if values else "-"


async def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("embedder", nargs="*", help="a value of DOCS_EMBEDDING_MODEL, onnx, or server")
    parser.add_argument("--set", action="append", default=[], type=QuestionSet.parse, help="one more question set")
    parser.add_argument("--opensearch", default="", metavar="URL", help="measure this server too")
    parser.add_argument("--shares", default="", help="weights of the vector search, with commas between them")
    chosen = parser.parse_args()
    shares = [float(share) for share in chosen.shares.split(",") if share]
    with own_set() as path:
        sets = [QuestionSet(OWN, load_cases(path)), *chosen.set]
    with quiet_pipeline():
        rows = [
            row
            for name in chosen.embedder or EMBEDDERS
            for one in sets
            async for row in measure(name, one, chosen.opensearch, shares)
        ]
    print("\n".join(as_table(list(COLUMNS), rows)))


if __name__ == "__main__":
    asyncio.run(main())

"""Indexes this product's own documentation in a temporary directory, without a port.

The pages come from the service's documentation site, called in this process; everything else is the same as for any
site.
"""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import as_file, files
from pathlib import Path

import httpx
from fastapi import FastAPI

from app.api.site import Site, find_docs
from app.core.settings import Settings
from app.index import open_store
from app.models import open_embedder
from eval.errors import EvaluationError
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest

SITE = "http://docs.localhost"  # always the same, because addresses are indexed too
ANSWERABLE = "docs.jsonl"
UNANSWERABLE = "docs_unanswerable.jsonl"


@contextmanager
def own_set(name: str = ANSWERABLE) -> Iterator[Path]:
    """The packaged question set about our documentation."""
    with as_file(files("eval") / "sets" / name) as path:
        yield path


@asynccontextmanager
async def indexed_docs(settings: Settings, folder: Path | None = None) -> AsyncIterator[Settings]:
    """Settings with a temporary store that has our documentation, or that of `folder`."""
    folder = folder or find_docs()
    if not folder.is_dir():
        raise EvaluationError(f"{folder}: there is no such directory, so there is no documentation to measure.")
    app = FastAPI(openapi_url=None)
    # only Markdown: the built site may be of another state of the documentation
    Site(folder, default_language=settings.default_language, built=folder / "not-built").add_to(app)
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as directory:
        own = settings.model_copy(update={"store": directory, "store_ca": "", "collection": "docs"})
        store, embedder = open_store(own), open_embedder(own)
        try:
            async with Fetcher(own, transport=httpx.ASGITransport(app)) as fetcher:
                report = await ingest(
                    [f"{SITE}/docs/sitemap.xml"], store=store, embedder=embedder, settings=own, fetcher=fetcher
                )
        finally:
            await store.close()
            await embedder.close()
        if report.exit_code:
            raise EvaluationError(f"Our documentation could not be indexed completely:\n{report.text}")
        yield own

"""Question sets that are made: over our own documentation, and from questions that readers asked."""

import tempfile
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urldefrag

import aiohttp
import uvicorn
from fastapi import FastAPI

from app.conversations import log_figures as figures
from app.conversations.question_log import Asked, nothing_logged, opened_log
from app.core.settings import Settings
from app.index import directory_of, open_store
from app.models import open_embedder
from app.routes.html_pages import Site, find_docs
from app.routes.routers import include
from eval.files import EvaluationError
from ingestion.crawl.fetch import Fetcher
from ingestion.run import ingest

SITE = "http://docs.localhost"  # always the same, because addresses are indexed too
ANSWERABLE = "docs.jsonl"
UNANSWERABLE = "docs_unanswerable.jsonl"
IN_CONVERSATION = "conversations.jsonl"


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
    site = Site(folder, default_language=settings.default_language, built=folder / "not-built")
    include(app, [site.router()])
    with tempfile.TemporaryDirectory(prefix="docs-assistant-eval-") as directory:
        own = settings.model_copy(update={"store": directory, "store_ca": "", "collection": "docs"})
        store, embedder = open_store(own), open_embedder(own)
        try:
            async with (
                _served(app) as socket,
                Fetcher(own, connect=lambda _: aiohttp.UnixConnector(socket)) as fetcher,
            ):
                report = await ingest(
                    [f"{SITE}/docs/sitemap.xml"], store=store, embedder=embedder, settings=own, fetcher=fetcher
                )
        finally:
            await store.close()
            await embedder.close()
        if report.exit_code:
            raise EvaluationError(f"Our documentation could not be indexed completely:\n{report.text}")
        yield own


@asynccontextmanager
async def _served(app: FastAPI) -> AsyncIterator[str]:
    """The path of a socket on which the app answers while the context lasts; signals are left to the command."""
    with tempfile.TemporaryDirectory(prefix="docs-assistant-site-") as directory:
        path = str(Path(directory) / "site")
        config = uvicorn.Config(app, uds=path, lifespan="off", log_config=None, access_log=False)
        config.load()
        server = uvicorn.Server(config)
        server.lifespan = config.lifespan_class(config)
        await server.startup()
        try:
            yield path
        finally:
            await server.shutdown()


Only = Literal["all", "refused", "weak", "down"]
AT_MOST = 10_000
"""Different questions of a set, the most frequent ones."""
KIND = "from log"


def logged_rows(settings: Settings, asked: Asked, only: Only) -> Sequence[Mapping[str, Any]]:
    """The rows of a set, the most frequent question first. Raises `RequestError` if there is no such question.

    `doc` is the page of the first source of an answer that was rated up; the others don't have it, so that they are read as
    unanswerable questions or labelled by hand.
    """
    with opened_log(settings, directory_of(settings)) as log:
        numbers = log.read(figures.newest_of_each, asked, only, AT_MOST)
        rows = log.read(figures.rows_of, numbers)
        if not rows:
            raise nothing_logged(settings, asked, log.read(figures.count_before, asked)[2], only)
        chosen = [rows[number] for number in numbers if number in rows]
        liked = log.read(figures.rated_up, asked, [row.digest for row in chosen])
    return [_row(row.digest, row.language, row.text, liked.get(row.digest, ())) for row in chosen]


def _row(digest: str, language: str, text: str, used: Sequence[str]) -> Mapping[str, Any]:
    row = {"id": digest[:12], "lang": language, "question": text}
    pages = list(dict.fromkeys(urldefrag(url).url for url in used))
    if not pages:
        return row | {"kind": KIND}
    return row | {"doc": pages[0]} | ({"also": pages[1:]} if pages[1:] else {})

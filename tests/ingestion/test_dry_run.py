"""A dry run tells what a real one would do, and writes nothing; a run without a change writes nothing either."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx
import pytest

from app.core.errors import NoIndex, RunRefused, StoreBusy
from app.core.settings import Settings
from app.index import open_store
from ingestion.publish.recipe import recipe_for
from ingestion.report import EXIT_NOT_PUBLISHED, EXIT_OK, EXIT_REFUSED, EXIT_WITH_FAILURES, Report
from tests.ingestion.index import LONG, Index
from tests.ingestion.local_site import LocalSite

OPENSEARCH = os.environ.get("DOCS_TEST_OPENSEARCH", "")


class Five(Index):
    """An index of five pages on a store, and what its files or indices look like."""

    def __init__(self, address: str, site: LocalSite) -> None:
        super().__init__(open_store(Settings.load(None, store=address)), site, chunk_size=600)
        for name in "abcde":
            site.page(f"/{name}", f"Page {name}", f"About {name * 4}.", LONG)
        site.sitemap(*[f"/{name}" for name in "abcde"])

    def written(self) -> object:
        """What differs as soon as a page, a chunk or a pointer was written."""
        raise NotImplementedError


class Directory(Five):
    """The embedded store."""

    def __init__(self, directory: Path, site: LocalSite) -> None:
        super().__init__(str(directory), site)
        self.directory = directory

    def written(self) -> object:
        # the lock is an empty file that every writer opens; the results of runs are no part of the index
        others = {"write.lock", "runs.json"}
        files = (file for file in sorted(self.directory.rglob("*")) if file.is_file() and file.name not in others)
        return [(str(file), file.stat().st_mtime_ns, file.stat().st_size) for file in files]


class Server(Five):
    """An index of its own on a real OpenSearch."""

    def __init__(self, site: LocalSite) -> None:
        self.name = f"dry-{secrets.token_hex(4)}"
        super().__init__(f"{OPENSEARCH.replace('http', 'opensearch', 1)}/{self.name}", site)

    def written(self) -> object:
        found = httpx.get(f"{OPENSEARCH}/{self.name}-*/_stats/indexing", trust_env=False).json()["indices"]
        counted = {name: stats["primaries"]["indexing"] for name, stats in found.items() if not name.endswith("-meta")}
        # alias and numbers of operations; the lock is in an index of its own
        alias = httpx.get(f"{OPENSEARCH}/_alias/{self.name}", trust_env=False).json()
        return {n: (c["index_total"], c["delete_total"]) for n, c in counted.items()}, alias

    def remove(self) -> None:
        httpx.delete(f"{OPENSEARCH}/{self.name}*", trust_env=False)


@pytest.fixture(params=["embedded", pytest.param("opensearch", marks=pytest.mark.opensearch)])
def made(request: pytest.FixtureRequest, site: LocalSite, tmp_path: Path) -> Iterator[Five]:
    """An empty index on each store."""
    if request.param == "embedded":
        yield Directory(tmp_path / "data", site)
        return
    if not OPENSEARCH:
        pytest.skip("DOCS_TEST_OPENSEARCH is not set: make opensearch starts one")
    server = Server(site)
    yield server
    server.remove()


@pytest.fixture
async def index(made: Five) -> AsyncIterator[Five]:
    """Its connections are closed at the end."""
    yield made
    await made.store.close()


async def test_when_every_answer_is_304_nothing_is_written(index: Five) -> None:
    """No chunk, no page record, no pointer; the report says so and the exit code is 0."""
    await index.run()
    before, texts = index.written(), len(index.embedder.texts)
    report = await index.run()
    assert index.written() == before
    assert len(index.embedder.texts) == texts
    assert not report.changed
    assert report.exit_code == EXIT_OK
    assert report.text.splitlines()[1].startswith("Nothing changed: the index still holds 5 pages, ")
    assert json.loads(report.to_json())["changed"] is False


async def test_a_dry_run_of_a_new_site(index: Five) -> None:
    """All pages would be new; nothing is embedded, no index appears, and the exit code is that of the real run."""
    before = index.written()
    report = await index.run(dry_run=True)
    assert report.counts["new"] == 5
    assert (report.published, report.changed, report.exit_code) == (None, True, EXIT_OK)
    assert report.embedded_texts > 5
    assert index.embedder.texts == []
    assert index.written() == before
    with pytest.raises(NoIndex):
        await index.store.live()
    real = await index.run()
    assert real.embedded_texts == report.embedded_texts == len(index.embedder.texts)
    assert real.embedding_calls == report.embedding_calls
    assert report.text.splitlines()[1] == (
        f"Dry run, nothing was written. A real one would embed {real.embedded_texts} texts and publish a new state of "
        "the index."
    )


async def test_a_dry_run_says_what_the_real_one_then_does(index: Five, site: LocalSite) -> None:
    """New, changed, removed and failed pages, texts to embed and exit code are the same; then nothing is left to do."""
    await index.run()
    site.page("/b", "Page b", "About bbbb.", LONG, "A paragraph more.")
    site.put("/c", "", status=404)
    site.put("/d", "", status=500)
    site.page("/f", "Page f", "About ffff.", LONG)
    site.sitemap("/a", "/b", "/c", "/d", "/e", "/f")
    before, texts = index.written(), len(index.embedder.texts)
    dry = await index.run(dry_run=True)
    assert index.written() == before
    assert len(index.embedder.texts) == texts
    real = await index.run()
    assert dry.counts == real.counts
    assert dry.counts == {"new": 1, "changed": 1, "unchanged": 2, "removed": 1, "skipped": 0, "failed": 1}
    assert dry.embedded_texts == real.embedded_texts == len(index.embedder.texts) - texts
    assert dry.exit_code == real.exit_code == EXIT_WITH_FAILURES
    again = await index.run(dry_run=True)
    assert "would change nothing" in again.text
    assert not again.changed


async def test_a_dry_run_has_the_verdict_of_the_guard(index: Five, site: LocalSite) -> None:
    """The same error with the same exit code; --force would publish."""
    await index.run()
    site.sitemap("/a", "/b")
    with pytest.raises(RunRefused, match="3 of 5 pages") as refused:
        await index.run(dry_run=True)
    report = refused.value.report
    assert isinstance(report, Report)
    assert (report.exit_code, report.counts["removed"]) == (EXIT_REFUSED, 3)
    assert report.text.splitlines()[1].startswith("Dry run: a real one would not be published: 3 of 5 pages")
    assert (await index.run(dry_run=True, force=True)).exit_code == EXIT_OK


async def test_a_dry_run_needs_no_lock(index: Five) -> None:
    """It runs beside a real one; a second real one is told, at once or when it has waited long enough."""
    await index.run()
    async with await index.store.draft(await recipe_for(index.embedder, index.settings())) as draft:
        await draft.remove(next(iter(await draft.page_states())))  # OpenSearch locks with the first write
        assert (await index.run(dry_run=True)).exit_code == EXIT_OK
        with pytest.raises(StoreBusy):
            await index.run()
        with pytest.raises(StoreBusy):
            await index.run(wait=0.2)


def test_a_dry_run_that_reads_nothing_ends_as_a_real_one() -> None:
    """Without a page there would be nothing to publish."""
    assert Report(("s",), dry_run=True).exit_code == EXIT_NOT_PUBLISHED
    assert "would publish nothing" in Report(("s",), dry_run=True).text

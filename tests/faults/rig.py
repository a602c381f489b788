"""A site of marked pages, an embedder that counts, a store, and runs over them; what then answers, by real queries."""

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from app.core.generation import GenerationInfo
from app.core.settings import NAMES, Settings
from app.core.types import LexicalText, Page, Query
from app.index.protocols import Generation
from app.models import open_embedder
from ingestion.crawl.fetch import Fetcher
from ingestion.options import RunOptions
from ingestion.report import Report
from ingestion.run import ingest
from tests.fake_llm import FakeLLM
from tests.faults.places import Place, opened
from tests.faults.process import Started
from tests.ingestion.local_site import Answer, LocalSite

PAGES = 12


def text(number: int, marker: str) -> str:
    """What a page says; the marker tells the state of the site in every chunk."""
    return f"Gauge number {number} of {marker} measures the pressure in boiler {number} and shows it on the panel."


@dataclass(repr=False)
class Rig:
    """Everything that a nightly run touches. `settings` are also those of processes; `batch` texts are embedded at once."""

    site: LocalSite
    llm: FakeLLM
    place: Place
    folder: Path
    pages: int = PAGES
    batch: int = 50
    _started: list[Started] = field(default_factory=list)

    def write_site(self, marker: str) -> None:
        """Bring all pages of the site to this state."""
        for number in range(self.pages):
            self.write_page(number, marker)
        self.list_pages(self.pages)

    def write_page(self, number: int, marker: str) -> None:
        """Bring one page to this state."""
        said = text(number, marker)
        self.site.page(f"/gauge-{number}", f"Gauge {number}", said, f"It belongs to {marker}.")

    def list_pages(self, count: int) -> None:
        """Have the sitemap list the first pages."""
        self.site.sitemap(*(f"/gauge-{number}" for number in range(count)))

    @property
    def sitemap(self) -> str:
        return f"{self.site.url}/sitemap.xml"

    @property
    def values(self) -> dict[str, str]:
        """The settings of a run."""
        return {
            "store": self.place.address,
            "store_timeout": "10",
            "embedding_url": self.llm.url,
            "embedding_model": "eight",
            "embedding_batch": str(self.batch),
            "embedding_parallel": "1",
            "crawl_timeout": "20",
            "crawl_max_bytes": "20000",
        }

    @property
    def settings(self) -> dict[str, str]:
        """The same, as an operator sets them."""
        return {NAMES.variable(name): value for name, value in self.values.items()}

    async def run(self, *, wait: float = 0.0, force: bool = False, rebuild: bool = False, **changes: object) -> Report:
        """A run in this process, with short waits between tries."""
        settings = Settings.load(None, **(self.values | changes))
        store, embedder = opened(self.place), open_embedder(settings)
        try:
            async with Fetcher(settings, retry_wait=0.01) as fetcher:
                return await ingest(
                    [self.sitemap],
                    store=store,
                    embedder=embedder,
                    settings=settings,
                    fetcher=fetcher,
                    options=RunOptions(wait=wait, force=force, rebuild=rebuild),
                )
        finally:
            await store.close()
            await embedder.close()

    def process(self, *options: str, limit: int | None = None) -> Started:
        """A run as `docs-assistant ingest`, in small batches; `limit` is the largest file it may write, in bytes."""
        started = Started(self.folder / "runs", ["ingest", self.sitemap, *options], self.settings, limit)
        self._started.append(started)
        return started

    def end(self) -> None:
        """Leave no process behind."""
        for started in self._started:
            started.kill()

    async def content(self) -> dict[str, tuple[str, ...]]:
        """Every page with the texts of its chunks, of the live generation as another process sees it."""
        store = opened(self.place)
        try:
            live = await store.live()
            pages = await live.pages()
            chunks = {
                chunk.id: chunk.text for chunk in await live.fetch([i for p in pages for i in p.derived.chunk_ids])
            }
            assert len(chunks) == live.info.chunks
            assert len(pages) == live.info.pages
            return {page.url: tuple(chunks[id_] for id_ in page.derived.chunk_ids) for page in pages}
        finally:
            await store.close()

    async def records(self) -> tuple[GenerationInfo, tuple[Page, ...]]:
        """The live generation and its page records, with ETags, dates and since when they are stale."""
        store = opened(self.place)
        try:
            live = await store.live()
            return live.info, await live.pages()
        finally:
            await store.close()

    async def answers(self) -> set[str]:
        """The states of the site that a question for all pages finds, in a store opened anew."""
        store = opened(self.place)
        try:
            return await markers(await store.live())
        finally:
            await store.close()

    def hold(self, path: str) -> tuple[threading.Event, threading.Event]:
        """Have this path wait: the first event is set when it was asked for, the second lets it answer."""
        asked, go_on = threading.Event(), threading.Event()
        answer = self.site.answers[path]
        assert isinstance(answer, Answer)

        def held() -> Answer:
            asked.set()
            assert go_on.wait(60)
            return answer

        self.site.answers[path] = held
        return asked, go_on

    def after(self, calls: int, do: Callable[[], None]) -> None:
        """Do this when so many more embedding calls were made."""
        due = len(self.llm.embedded) + calls

        def look() -> None:
            if len(self.llm.embedded) == due:
                do()

        self.llm.embedding_hook = look


async def markers(live: Generation, depth: int = 100) -> set[str]:
    """The states of the site that both legs find, by the markers in the chunks' texts."""
    query = Query(texts=(LexicalText("en", "gauge pressure boiler panel"),), vector=[1.0] * 8, depth=depth)
    legs = await live.search(query)
    assert legs.lexical
    assert legs.vector
    ids = {candidate.id for leg in (legs.lexical, legs.vector) for candidate in leg}
    chunks = await live.fetch(sorted(ids))
    assert len(chunks) == len(ids)
    return {word for chunk in chunks for word in re.findall(r"state\d+", chunk.text)}

"""Sites as their generators build them, crawled and cut: what readers of a page find is in its chunks."""

from pathlib import Path
from urllib.parse import urlsplit

import pytest

from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from ingestion.run import ingest
from tests.end_to_end.fidelity import Fidelity
from tests.fakes import FakeEmbedder
from tests.frontend.sites import SITE, built
from tests.ingestion.local_site import local_site

pytestmark = pytest.mark.slow

MAIN = {"mkdocs": "article.md-content__inner", "sphinx": "article[role=main]", "docusaurus": ".theme-doc-markdown"}


@pytest.mark.parametrize("generator", MAIN)
async def test_code_anchors_and_units_of_a_built_site_are_whole(generator: str, tmp_path: Path) -> None:
    """Code is byte-equal, every link to a section leads to it, nothing is cut that belongs together, nothing is there twice."""
    files = built(generator, tmp_path / "site")
    found, store = Fidelity(), EmbeddedStore(tmp_path / "data")
    with local_site() as site:
        for file in files.rglob("*.html"):
            path = f"/{file.relative_to(files).as_posix()}"
            site.put(path.removesuffix("index.html"), file.read_text("utf-8").replace(SITE, site.url))
        settings = Settings.load(None, crawl_timeout=60)
        await ingest([f"{site.url}/"], store=store, embedder=FakeEmbedder(), settings=settings)
        live = await store.live()
        pages = await live.chunks_of([page.url for page in await live.pages()])
        for url, chunks in pages.items():
            found.page(url, site.answers[urlsplit(url).path].body.decode(), MAIN[generator], chunks)
    found.site(pages)
    await store.close()
    assert len(pages) >= 3
    assert (found.all["code"] and found.all["cuts"]) or generator == "mkdocs"  # its handbook has no code and no tables
    assert min(found.all[measure] for measure in ("anchors", "copies"))
    assert not {
        measure: found.wrong[measure] for measure in ("code", "anchors", "cuts", "copies") if found.wrong[measure]
    }

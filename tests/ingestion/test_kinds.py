"""Sources of every kind in one run: forms of files in git, a built site, and runs without changes."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingestion.crawl.fetch import Fetcher
from ingestion.sources import Source, load_sources
from tests.ingestion.git_server import GitServer, Repository, repository
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import LocalSite, list_sources

URL = "https://docs.example.org"
FILES = Path(__file__).parent / "files"
LONG = " ".join(f"Sentence number {n} says something about storage." for n in range(8))


@pytest.fixture
def repo(tmp_path: Path) -> Repository:
    """Pages in every form, and files that are none."""
    made = repository(tmp_path / "served" / "docs.git")
    made.commit(
        **{
            "LICENSE": "Free.",
            "docs/conf.py": "release = '4.7.11'\n",
            "docs/index.md": f"# Home\n\n{LONG} Restart the blue server afterwards.\n",
            "docs/old.txt": "Of the blue server.\n",
            "docs/a.md": f"# Alpha\n\n{LONG} Alpha.",
            "docs/api/openapi.yaml": (FILES / "petstore.yaml").read_bytes(),
            "docs/data.json": "{}",
            "docs/manual.pdf": (FILES / "manual.pdf").read_bytes(),
            "docs/picture.png": b"\x89PNG",
        }
    )
    return made


def build_site(root: Path) -> None:
    """Write a built site: pages that share a banner, a PDF, and what nobody reads."""
    root.mkdir()
    for name in ("index", *(f"p{number}" for number in range(6))):
        asked = "<div>Did this page answer what you came for?</div>"
        body = f"<main><h1>Built {name}</h1><p>{LONG} This is {name}.</p>{asked}</main>"
        (root / f"{name}.html").write_text(f"<html lang=en><title>{name}</title>{body}")
    (root / "columns.pdf").write_bytes((FILES / "columns.pdf").read_bytes())
    (root / "search.js").write_text("var x = 1")


@pytest.mark.plugins
async def test_all_kinds_of_sources_are_read_together_and_a_second_run_writes_nothing(
    served: GitServer, repo: Repository, site: LocalSite, index: Index, tmp_path: Path
) -> None:
    """Files are read in their own form, also those larger than a page may be."""
    build_site(tmp_path / "site")
    for number in range(6):
        site.page(f"/w{number}", f"Page {number}", f"{LONG} On the web {number}.")
    urls = "".join(f"<url><loc>{site.url}/w{n}</loc><lastmod>2024-01-01</lastmod></url>" for n in range(6))
    site.put("/sitemap.xml", f"<urlset>{urls}</urlset>", "application/xml")
    site.put("/openapi.yaml", (FILES / "petstore.yaml").read_bytes().replace(b"pet", b"cat"), "application/yaml")
    toml = tmp_path / "sites.toml"
    toml.write_text(
        f'[[source]]\nurl = "{URL}/git/"\ngit = "{served.url}/docs.git"\nfolder = "docs"\nending = "/"\n'
        f'[[source]]\nurl = "{URL}/built/"\ndirectory = "site"\n'
        f'[[source]]\nurl = "{site.url}/sitemap.xml"\n'
        f'[[source]]\nurl = "{URL}/api"\nopenapi = "{site.url}/openapi.yaml"\n'
    )
    index.values |= {"store": str(tmp_path / "data"), "crawl_max_bytes": 50_000}
    sources = load_sources(toml)
    first = await index.run(*sources)
    assert set(outcomes(first).values()) == {"new"}, first.pages
    git = {page.url.removeprefix(f"{URL}/git/") for page in first.pages if "/git/" in page.url}
    assert git == {"", "a/", "api/openapi/", "manual.pdf"}
    assert len(first.pages) == 4 + 8 + 6 + 1
    assert "Restart the blue server" in (await index.page(f"{URL}/git/")).markdown
    built = (await index.page(f"{URL}/built/p1.html")).markdown
    assert ("This is p1." in built, "Did this page" in built) == (True, False)
    before = (await index.store.live()).info.id

    second = await index.run(*sources)
    assert set(outcomes(second).values()) == {"unchanged"}, outcomes(second)
    assert (await index.store.live()).info.id == before
    assert second.embedded_texts == 0

    repo.commit(**{"docs/index.md": f"# Home\n\n{LONG} Restart the green server afterwards.\n"})
    third = await index.run(*sources)
    assert {page.url for page in third.pages if page.outcome != "unchanged"} == {f"{URL}/git/"}
    assert "green server" in await index.text(f"{URL}/git/")


async def test_an_openapi_document_takes_the_place_of_the_page_that_shows_it(site: LocalSite, fetcher: Fetcher) -> None:
    """Whichever source comes first: the page itself is made by scripts."""
    site.page("/api", "API", "Swagger UI needs scripts.")
    pages = Source(url=site.sitemap("/api"))
    document = Source(url=f"{site.url}/api", openapi=f"{site.url}/openapi.yaml")
    for sources in ((pages, document), (document, pages)):
        listing = await list_sources(sources, fetcher)
        assert [entry.url for entry in listing.entries] == [document.openapi]
        assert [skip.url for skip in listing.skipped] == [document.url]

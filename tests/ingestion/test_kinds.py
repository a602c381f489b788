"""Sources of every kind in one run: forms of files in git and archives, what pages include, and runs without changes."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path, PurePosixPath

import pytest

from ingestion.crawl.directory import may_be_beside
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
    """Pages in every form, with what they include, and files that are none of these."""
    made = repository(tmp_path / "served" / "docs.git")
    made.commit(
        **{
            "LICENSE": "Free.",
            "docs/conf.py": "release = '4.7.11'\n",
            "docs/index.rst": f"Home\n====\n\n{LONG} It is |release|.\n\n.. include:: _shared/note.inc\n\n"
            ".. literalinclude:: code/run.sh\n",
            "docs/_shared/note.inc": "Restart the blue server afterwards.\n",
            "docs/code/run.sh": "make --everything\n",
            "docs/a.md": f"# Alpha\n\n{LONG} Alpha.",
            "docs/api/openapi.yaml": (FILES / "petstore.yaml").read_bytes(),
            "docs/data.json": "{}",
            "docs/manual.pdf": (FILES / "manual.pdf").read_bytes(),
            "docs/picture.png": b"\x89PNG",
        }
    )
    return made


def built_site() -> bytes:
    """The archive of a built site: pages that share a banner, a PDF, and what nobody reads."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as opened:
        for name in ("index", *(f"p{number}" for number in range(6))):
            asked = "<div>Did this page answer what you came for?</div>"
            body = f"<main><h1>Built {name}</h1><p>{LONG} This is {name}.</p>{asked}</main>"
            opened.writestr(f"site/{name}.html", f"<html lang=en><title>{name}</title>{body}")
        opened.writestr("site/columns.pdf", (FILES / "columns.pdf").read_bytes())
        opened.writestr("site/search.js", "var x = 1")
    return packed.getvalue()


@pytest.mark.plugins
async def test_all_kinds_of_sources_are_read_together_and_a_second_run_writes_nothing(
    served: GitServer, repo: Repository, site: LocalSite, index: Index, tmp_path: Path
) -> None:
    """Files are read in their own form, also those larger than a page may be; what they include changes them."""
    site.put("/site.zip", built_site(), "application/zip")
    for number in range(6):
        site.page(f"/w{number}", f"Page {number}", f"{LONG} On the web {number}.")
    urls = "".join(f"<url><loc>{site.url}/w{n}</loc><lastmod>2024-01-01</lastmod></url>" for n in range(6))
    site.put("/sitemap.xml", f"<urlset>{urls}</urlset>", "application/xml")
    site.put("/openapi.yaml", (FILES / "petstore.yaml").read_bytes().replace(b"pet", b"cat"), "application/yaml")
    toml = tmp_path / "sites.toml"
    toml.write_text(
        f'[[source]]\nurl = "{URL}/git/"\ngit = "{served.url}/docs.git"\nfolder = "docs"\nending = "/"\n'
        f'[[source]]\nurl = "{URL}/zip/"\narchive = "{site.url}/site.zip"\nfolder = "site"\n'
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
    page = (await index.page(f"{URL}/git/")).markdown
    assert all(words in page for words in ("It is 4.7.11.", "Restart the blue server", "make --everything"))
    built = (await index.page(f"{URL}/zip/p1.html")).markdown
    assert ("This is p1." in built, "Did this page" in built) == (True, False)
    before = (await index.store.live()).info.id

    second = await index.run(*sources)
    assert set(outcomes(second).values()) == {"unchanged"}, outcomes(second)
    assert (await index.store.live()).info.id == before
    assert second.embedded_texts == 0

    repo.commit(**{"docs/_shared/note.inc": "Restart the green server afterwards.\n"})
    third = await index.run(*sources)
    assert {page.url for page in third.pages if page.outcome != "unchanged"} == {f"{URL}/git/"}
    assert "green server" in await index.text(f"{URL}/git/")


@pytest.mark.plugins
async def test_a_page_of_a_directory_is_read_again_when_what_it_includes_changes(index: Index, tmp_path: Path) -> None:
    """Its own file is the same."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/index.rst").write_text(f"Home\n====\n\n{LONG}\n\n.. include:: note.inc\n")
    (tmp_path / "docs/a.md").write_text(f"# A\n\n{LONG} A.")
    source = Source(url=f"{URL}/", directory=str(tmp_path / "docs"))
    for colour, outcome in (("blue", "new"), ("blue", "unchanged"), ("green", "changed")):
        (tmp_path / "docs/note.inc").write_text(f"Restart the {colour} server.\n")
        assert outcomes(await index.run(source))[f"{URL}/"] == outcome
    assert "green server" in await index.text(f"{URL}/")


def test_what_pages_may_include_is_told_by_its_name() -> None:
    """Texts of any kind, also what a system takes for a video; no pictures, packed files or built pages."""
    texts = {"a/x.ts", "x.py", "_parts/x.inc", "antora.yml", "x.csv", "x.json", "Makefile", "x.sh", "x.sql", "x.adoc"}
    others = {"x.png", "x.svg", "x.pdf", "x.tar.gz", "x.csv.gz", "x.woff2", "x.html", ".git/x.py", "node_modules/x.js"}
    assert {name for name in texts | others if may_be_beside(PurePosixPath(name))} == texts


async def test_an_openapi_document_takes_the_place_of_the_page_that_shows_it(site: LocalSite, fetcher: Fetcher) -> None:
    """Whichever source comes first: the page itself is made by scripts."""
    site.page("/api", "API", "Swagger UI needs scripts.")
    pages = Source(url=site.sitemap("/api"))
    document = Source(url=f"{site.url}/api", openapi=f"{site.url}/openapi.yaml")
    for sources in ((pages, document), (document, pages)):
        listing = await list_sources(sources, fetcher)
        assert [entry.url for entry in listing.entries] == [document.openapi]
        assert [skip.url for skip in listing.skipped] == [document.url]

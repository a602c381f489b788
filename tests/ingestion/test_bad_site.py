"""One of several sites can't be read: the others are published, and what the index has of the bad one stays."""

from __future__ import annotations

import re
import shutil
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.errors import NotPublished, SitemapError
from app.index.run_history import runs_of
from ingestion.report import EXIT_NOT_PUBLISHED, EXIT_OK, EXIT_WITH_FAILURES
from ingestion.sources import Source
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import LocalSite, local_site


@pytest.fixture
def bad() -> Iterator[LocalSite]:
    """Another site than `site`."""
    with local_site() as running:
        running.page("/b", "B", "Words of the other site.")
        yield running


def closed_port() -> str:
    """An address of this machine at which nothing listens."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{one.getsockname()[1]}"


def _answers(body: str, status: int = 200) -> Callable[[LocalSite], None]:
    return lambda site: site.put("/sitemap.xml", body, "application/xml", status=status)


FAULTS: dict[str, tuple[Callable[[LocalSite], None], str]] = {
    "404": (_answers("", 404), "can't be read: answered 404"),
    "500": (_answers("", 500), "can't be read: answered 500"),
    "login": (_answers("", 401), "the site wants a login"),
    "broken XML": (_answers("<urlset><url"), "sitemap"),
    "HTML": (_answers("<html><body>We'll be back</body></html>"), "is an HTML page, not a sitemap"),
    "empty": (_answers("<urlset></urlset>"), "lists no page"),
    "no page for us": (
        _answers("<urlset><url><loc>https://else.example.org/</loc></url></urlset>"),
        "None of the pages",
    ),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
async def test_the_other_sites_are_published_and_its_pages_stay(
    site: LocalSite, bad: LocalSite, index: Index, fault: tuple[Callable[[LocalSite], None], str]
) -> None:
    """In every order of the sites; the run ends with exit code 2, and names the site, its reason and nothing else."""
    site.page("/a", "A", "Words of one site.")
    good, other = site.sitemap("/a"), bad.sitemap("/b")
    assert (await index.run(good, other)).exit_code == EXIT_OK
    break_it, reason = fault
    break_it(bad)
    for sites, words in (((other, good), "Newer words."), ((good, other), "The newest words.")):
        site.page("/a", "A", words)
        report = await index.run(*sites)
        assert (report.exit_code, report.result) == (EXIT_WITH_FAILURES, "partial")
        (failed,) = report.failed_sources
        assert failed.startswith(f"{other}: "), failed
        assert reason in failed
        assert "Nothing was changed" not in failed
        assert outcomes(report) == {"/a": "changed"}
        texts = await index.texts()
        assert words in texts["/a"]
        assert "Words of the other site." in texts["/b"]
    kept = await runs_of(index.store)
    assert kept.failed_sources == (failed,)
    bad.sitemap("/b")
    assert (await index.run(good, other)).exit_code == EXIT_OK
    assert (await runs_of(index.store)).failed_sources == ()


async def test_sites_that_are_down_or_speak_no_tls(site: LocalSite, index: Index) -> None:
    """They needn't be in the index already; later runs of all that is in it ask for them again."""
    site.page("/a", "A", "Words of one site.")
    down, plain = f"{closed_port()}/sitemap.xml", f"{site.url.replace('http://', 'https://')}/other.xml"
    report = await index.run(down, site.sitemap("/a"), plain)
    assert report.exit_code == EXIT_WITH_FAILURES
    assert [one.partition(": ")[0] for one in report.failed_sources] == [down, plain]
    assert "no connection" in report.failed_sources[0]
    assert "doesn't speak TLS" in report.failed_sources[1]
    assert set(await index.pages()) == {"/a"}
    assert {record.url for record in (await index.store.live()).info.sources} == {
        down,
        plain,
        f"{site.url}/sitemap.xml",
    }


@pytest.mark.parametrize("mode", ["only", "rebuild", "dry_run", "force"])
async def test_in_every_kind_of_run(site: LocalSite, bad: LocalSite, index: Index, mode: str) -> None:
    """Also one of a whole site, whose sitemaps robots.txt names, and one that removes all sites that aren't given."""
    site.page("/a", "A", "Words of one site.")
    bad.put("/robots.txt", f"Sitemap: {bad.sitemap('/b')}", "text/plain")
    good = site.sitemap("/a")
    await index.run(good, f"{bad.url}/")
    bad.put("/sitemap.xml", "", status=500)
    report = await index.run(good, f"{bad.url}/", **{mode: True})
    assert report.exit_code == EXIT_WITH_FAILURES
    assert report.counts["removed"] == 0
    assert set(await index.pages()) == {"/a", "/b"}
    bad.sitemap("/b")
    bad.page("/b", "B", "Newer words of the other site.")
    assert outcomes(await index.run(good, f"{bad.url}/")) == {"/a": "unchanged", "/b": "changed"}


async def test_a_directory_that_is_empty_tonight(site: LocalSite, index: Index, tmp_path: Path) -> None:
    """A volume that isn't mounted is such a site, too."""
    site.page("/a", "A", "Words of one site.")
    here = tmp_path / "files"
    here.mkdir()
    (here / "b.md").write_text("# B\n\nWords of a file.\n")
    files, good = Source(url="https://docs.example.org/", directory=str(here)), site.sitemap("/a")
    await index.run(good, files)
    shutil.rmtree(here)
    report = await index.run(good, files)
    assert report.exit_code == EXIT_WITH_FAILURES
    assert "holds no file that can be read" in report.failed_sources[0]
    assert len(await index.pages()) == 2


PATHS = tuple(f"/page-{number}" for number in range(10))


def _unlisted(site: LocalSite) -> None:
    site.sitemap(*PATHS[:4])


def _unreadable(site: LocalSite) -> None:
    for path in PATHS[:7]:
        site.put(path, "", status=500)


def _noindex(site: LocalSite) -> None:
    for path in PATHS:
        site.put(
            path, "<html><head><meta name=robots content=noindex></head><body><p>Words.</body></html>", "text/html"
        )


def _emptied(site: LocalSite) -> None:
    for path in PATHS:
        site.page(path, path, "Words.")


LOSES: dict[str, tuple[Callable[[LocalSite], None], str]] = {
    "unlisted": (_unlisted, "6 of 10 pages of .* would be lost: no longer listed"),
    "unreadable": (_unreadable, "7 of 11 pages could not be read: .*answered 500"),
    "noindex": (_noindex, "10 of its 10 pages say noindex"),
    "emptied": (_emptied, "10 of 10 pages of .* would be lost"),
}


@pytest.mark.parametrize("loses", LOSES.values(), ids=LOSES)
async def test_a_site_that_loses_too_much_is_left_as_it_was(
    site: LocalSite, bad: LocalSite, index: Index, loses: tuple[Callable[[LocalSite], None], str]
) -> None:
    """Its sitemap can be read, but the guard refuses what it lists. The other site is published, with exit code 2."""
    site.page("/a", "A", "Words of one site.")
    for path in PATHS:
        bad.page(path, path, f"{path} has a text of its own. " * 30)
    good, other = site.sitemap("/a"), bad.sitemap(*PATHS)
    assert (await index.run(good, other)).exit_code == EXIT_OK
    before = await index.texts()
    break_it, reason = loses
    break_it(bad)
    site.page("/a", "A", "Newer words.")
    report = await index.run(good, other)
    assert (report.exit_code, report.refused, outcomes(report)) == (EXIT_WITH_FAILURES, [], {"/a": "changed"})
    (failed,) = report.failed_sources
    assert re.match(rf"{re.escape(other)}: .*{reason}.* use docs-assistant ingest --force$", failed), failed
    after = await index.texts()
    assert "Newer words." in after.pop("/a")
    assert after == {path: before[path] for path in PATHS}
    (kept,) = (await runs_of(index.store)).failed_sources
    assert failed.startswith(kept)  # of a long reason, the beginning
    with pytest.raises(NotPublished):  # both lose too much
        break_it(bad)
        site.put("/a", "", status=500)
        await index.run(good, other, only=True)


async def test_force_takes_what_a_site_lost(site: LocalSite, bad: LocalSite, index: Index) -> None:
    """And a site that was left as it was catches up as soon as it lists its pages again."""
    site.page("/a", "A", "Words of one site.")
    for path in PATHS:
        bad.page(path, path, f"{path} has a text of its own.")
    sites = site.sitemap("/a"), bad.sitemap(*PATHS)
    await index.run(*sites)
    _unlisted(bad)
    assert (await index.run(*sites)).exit_code == EXIT_WITH_FAILURES
    bad.sitemap(*PATHS)
    bad.page(PATHS[0], "Changed", "Newer words of it.")
    assert outcomes(await index.run(*sites))[PATHS[0]] == "changed"
    _unlisted(bad)
    assert (await index.run(*sites, force=True)).exit_code == EXIT_OK
    assert set(await index.pages()) == {"/a", *PATHS[:4]}


async def test_if_no_site_can_be_read_the_index_is_as_it_was(site: LocalSite, bad: LocalSite, index: Index) -> None:
    """The error names all of them."""
    site.page("/a", "A", "Words of one site.")
    sites = site.sitemap("/a"), bad.sitemap("/b")
    await index.run(*sites)
    before = await index.texts()
    for one in (site, bad):
        one.put("/sitemap.xml", "", status=500)
    with pytest.raises(NotPublished) as caught:
        await index.run(*sites)
    assert all(f"{one}: The sitemap" in str(caught.value) for one in sites)
    assert caught.value.report.exit_code == EXIT_NOT_PUBLISHED  # type: ignore[union-attr]
    assert await index.texts() == before
    with pytest.raises(SitemapError, match=r"answered 500.*Nothing was changed\."):
        await index.run(sites[0])
    assert await index.texts() == before

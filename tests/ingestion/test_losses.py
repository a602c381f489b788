"""The guard: runs over a site at fault are refused on every store of ours, and --force publishes them."""

import datetime as dt
import re
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import NotPublished, RunRefused
from ingestion.publish.recipe import recipe_for
from ingestion.report import EXIT_OK, EXIT_REFUSED, EXIT_WITH_FAILURES, Report
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

NAMES = "abcdefghij"


def words(name: str) -> tuple[str, ...]:
    return tuple(f"Sentence {name} {n} of {name * 5} says what {name * 4} does with {name * 3}." for n in range(12))


class Ten(Index):
    """An index of a site of ten pages."""

    def __init__(self, directory: Path, site: LocalSite) -> None:
        super().__init__(directory, site)
        self.paths = [f"/{name}" for name in NAMES]
        for name in NAMES:
            site.page(f"/{name}", f"Page {name * 6}", *words(name))
        self.sitemap = site.sitemap(*self.paths)

    async def refused(self, *words_: str, **changes: object) -> RunRefused:
        """The run is refused with these words, and the index is as it was."""
        before = (await self.store.live()).info
        with pytest.raises(RunRefused) as caught:
            await self.run(**changes)
        assert (await self.store.live()).info == before
        assert isinstance(caught.value.report, Report)
        assert caught.value.report.exit_code == EXIT_REFUSED
        assert "--force" in str(caught.value)
        for word in words_:
            assert word in str(caught.value)
        return caught.value


@pytest.fixture
async def ten(site: LocalSite, tmp_path: Path) -> AsyncIterator[Ten]:
    """Its first run is done."""
    async with Ten(tmp_path / "data", site) as made:
        await made.run()
        yield made


async def test_a_sitemap_that_lost_most_pages_is_refused(ten: Ten) -> None:
    """-60 %: nothing leaves until somebody says that it is right."""
    ten.site.sitemap(*ten.paths[:4])
    await ten.refused("6 of 10 pages", "no longer listed (6)", "30 %", "DOCS_MAX_LOST", ten.sitemap)
    assert (await ten.run(force=True)).counts["removed"] == 6
    assert set(await ten.pages()) == set(ten.paths[:4])


@pytest.mark.parametrize(("gone", "refused"), [(3, False), (4, True)])
async def test_the_limit_is_a_share(ten: Ten, gone: int, refused: bool) -> None:
    """Three of ten are 30 %, which may go; four may not, unless the setting says so."""
    for path in ten.paths[:gone]:
        ten.site.put(path, "", status=410)
    if refused:
        await ten.refused("answered 410 (4)")
        assert (await ten.run(max_lost=40)).counts["removed"] == 4
    else:
        assert (await ten.run()).counts["removed"] == 3


async def test_one_page_of_a_small_site_may_always_go(ten: Ten) -> None:
    """One of two is half of them, and still what people do; both are not."""
    two = ten.site.sitemap("/x", "/y", at="/two.xml")
    for name in "xy":
        ten.site.page(f"/{name}", f"Page {name * 6}", *words(name))
    await ten.run(two)
    ten.site.put("/x", "", status=404)
    assert (await ten.run(two)).counts["removed"] == 1
    ten.site.page("/z", "Page z", *words("z"))
    ten.site.put("/y", "", status=404)
    assert (await ten.run(ten.site.sitemap("/y", "/z", at="/two.xml"))).counts["removed"] == 1


async def test_a_small_site_is_not_lost_among_large_ones(ten: Ten) -> None:
    """Each site has its own share: three of three pages are all of it, though 23 % of the run."""
    three = ten.site.sitemap("/x", "/y", "/z", at="/three.xml")
    for name in "xyz":
        ten.site.page(f"/{name}", f"Page {name * 6}", *words(name))
    await ten.run(three)
    ten.site.page("/other", "Other", "Quite another page.")
    ten.site.sitemap("/other", at="/three.xml")
    report = await ten.run(ten.sitemap, three)
    assert re.search(r"3 of 3 pages of .*three\.xml", report.failed_sources[0])
    with pytest.raises(RunRefused, match=r"3 of 3 pages of .*three\.xml"):
        await ten.run(three)


async def test_a_rebuilt_site_with_the_same_texts_loses_nothing(ten: Ten) -> None:
    """Other addresses for all pages: by redirects, or by their texts."""
    for name in NAMES:
        ten.site.page(f"/new/{name}", f"Page {name * 6}", *words(name))
        ten.site.put(f"/{name}", "", status=301, headers={"Location": f"/new/{name}"})
    report = await ten.run()
    assert report.counts["removed"] == 10
    assert set(await ten.pages()) == {f"/new/{name}" for name in NAMES}
    for name in NAMES:
        ten.site.page(f"/newest/{name}", f"Page {name * 6}", *words(name))
    ten.site.sitemap(*[f"/newest/{name}" for name in NAMES])
    assert (await ten.run()).counts["removed"] == 10
    assert set(await ten.pages()) == {f"/newest/{name}" for name in NAMES}


async def test_too_many_failures_are_refused(ten: Ten) -> None:
    """Half may fail and keeps its chunks; more is an outage. What rules keep out suddenly counts as well."""
    for path in ten.paths[:5]:
        ten.site.put(path, "", status=500)
    report = await ten.run()
    assert report.exit_code == EXIT_WITH_FAILURES
    ten.site.put(ten.paths[5], b"\x00", "application/octet-stream")
    await ten.refused("6 of 10 pages could not be read", "answered 500 (5)", "50 %")
    assert (await ten.run(force=True)).exit_code == EXIT_WITH_FAILURES
    assert len(await ten.pages()) == 10


LOGIN = "Please log in with the account of your organisation to go on reading this."
FILLER = "You need an account of your organisation, which its administrator creates for you on request. " * 12


def _one_page_for_all(ten: Ten) -> None:
    for path in ten.paths[2:]:
        ten.site.put(path, "", status=302, headers={"Location": "/login"})
    ten.site.page("/login", "Log in", "Please log in first.")


def _login(ten: Ten) -> None:
    for path in ten.paths[1:]:
        ten.site.page(path, "Log in", LOGIN)


def _login_that_names_each_page(ten: Ten) -> None:
    for number, path in enumerate(ten.paths):
        ten.site.page(path, "Sign in", f"Sign in to see {ten.site.url}{path} (request {number}).", FILLER)


def _nearly_empty(ten: Ten) -> None:
    for name, path in zip(NAMES, ten.paths, strict=True):
        ten.site.page(path, f"Page {name * 6}", "Loading.")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (_one_page_for_all, "would be lost"),
        (_login, "'# Log in Please log in"),
        (_login_that_names_each_page, "the same text as others now"),
        (_nearly_empty, "hardly a text left"),
    ],
)
async def test_what_answers_200_in_place_of_all_pages_is_refused(
    ten: Ten, change: Callable[[Ten], None], said: str
) -> None:
    """A page for what is gone, a login, a long text with addresses and numbers in it, and hardly any text."""
    change(ten)
    await ten.refused(said)
    assert (await ten.run(force=True)).published is not None


async def test_a_first_run_into_a_login_page_is_refused(site: LocalSite, tmp_path: Path) -> None:
    """There is nothing to lose yet, but nothing to win either."""
    async with Ten(tmp_path / "data", site) as made:
        for path in made.paths:
            site.page(path, "Log in", LOGIN)
        with pytest.raises(RunRefused, match="10 of 10 pages say the same"):
            await made.run()


async def test_nothing_readable_is_not_published_by_force(ten: Ten) -> None:
    """An empty index is never what was meant."""
    for path in ten.paths:
        ten.site.put(path, "", status=404)
    with pytest.raises(NotPublished, match="No page could be read"):
        await ten.run(force=True)


async def test_only_is_said_on_purpose(ten: Ten) -> None:
    """Pages of sites that weren't given leave by `only`, however many."""
    ten.site.page("/x", "Page x", *words("x"))
    await ten.run(ten.site.sitemap("/x", at="/x.xml"), only=True)
    assert set(await ten.pages()) == {"/x"}


async def since(ten: Ten, days: float, *paths: str) -> None:
    """These pages couldn't be read for so many days."""
    moment = (dt.datetime.now(dt.UTC) - dt.timedelta(days=days)).isoformat(timespec="seconds")
    async with await ten.store.draft(await recipe_for(ten.embedder, ten.settings())) as draft:
        states = await draft.page_states()
        pages = [states[ten.site.url + path] for path in paths]
        await draft.touch([replace(page, fetch=replace(page.fetch, stale_since=moment)) for page in pages])
        await draft.publish()


async def test_a_page_that_stays_unreadable_leaves_at_last(ten: Ten) -> None:
    """13 days keep it, 15 don't, and the report has a line for it; a page that is well again stays."""
    ten.site.put("/a", "", status=500)
    ten.site.put("/b", "", status=403)
    await since(ten, 13, "/a", "/b", "/c")
    assert (await ten.run()).counts["removed"] == 0
    await since(ten, 15, "/a", "/c")
    report = await ten.run()
    (gone,) = (page for page in report.pages if page.outcome == "removed")
    assert gone.url.endswith("/a")
    assert gone.reason.startswith("answered 500, ever since 20")
    assert "Removed (1):" in report.text
    assert set(await ten.pages()) == set(ten.paths[1:])
    ten.site.page("/b", "Page b", *words("b"))
    assert (await ten.run()).exit_code in (EXIT_OK, EXIT_WITH_FAILURES)


async def test_the_guard_counts_pages_that_leave_as_stale(ten: Ten) -> None:
    """Four pages of ten at once are too many, also after two weeks."""
    for path in ten.paths[:4]:
        ten.site.put(path, "", status=500)
    await since(ten, 15, *ten.paths[:4])
    await ten.refused("4 of 10 pages", "answered 500, ever since")


async def test_a_refused_run_marks_nothing_as_stale(ten: Ten) -> None:
    """An outage brings no page nearer to its end; one that was stale before stays so since then."""
    ten.site.put("/a", "", status=500)
    await since(ten, 10, "/a")
    before = await (await ten.store.live()).pages()
    for path in ten.paths[1:7]:
        ten.site.put(path, "", status=500)
    await ten.refused("7 of 10 pages could not be read")
    assert await (await ten.store.live()).pages() == before
    for name in NAMES[1:]:
        ten.site.page(f"/{name}", f"Page {name * 6}", *words(name))
    assert (await ten.run()).exit_code == EXIT_WITH_FAILURES
    stale = {
        page.url: page.fetch.stale_since for page in await (await ten.store.live()).pages() if page.fetch.stale_since
    }
    assert stale == {page.url: page.fetch.stale_since for page in before if page.url.endswith("/a")}

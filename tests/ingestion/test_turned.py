"""Pages that turn into a login form or an error page of status 200 don't overwrite what the index has; honest changes do."""

import asyncio
import hashlib
import random
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import pytest

from app.core.errors import NotPublished, RunRefused
from app.index.protocols import Store
from app.index.run_history import runs_of
from ingestion.report import EXIT_WITH_FAILURES
from tests.contract.conftest import embedded, opensearch
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite, local_site

SYLLABLES = ("ka", "lo", "mi", "ter", "vu", "san", "der", "pol", "ri", "nge", "fa", "zo")
SITE_FRAME = "<header>{header}</header><nav><a href=/>Start</a> <a href=/all>All pages</a></nav>"
LOGIN = '<form><input name=user> <input type="password" name=word> <button>Continue</button></form>'


def word(seed: object) -> str:
    return "".join(random.Random(str(seed)).choices(SYLLABLES, k=4))


def text(seed: str, sentences: int = 8) -> str:
    """Sentences of words that no other seed has in this order."""
    chance = random.Random(seed)
    words = ["".join(chance.choices(SYLLABLES, k=3)) for _ in range(sentences * 5)]
    forms = (
        "{} of the {} is what {} uses when it is with {} and {}.",
        "If you have {}, set {} in the {} for {} or {}.",
    )
    return " ".join(chance.choice(forms).format(*words[at : at + 5]) for at in range(0, len(words), 5)).capitalize()


class Forty(Index):
    """An index of a site of forty pages; each may be changed by a function of its path."""

    def __init__(self, store: Path | Store, site: LocalSite) -> None:
        super().__init__(store, site)
        self.paths = [f"/guide/{word(n)}-{n}" for n in range(40)]
        self.put(self.paths, lambda path: (path.title(), text(path)))
        site.sitemap(*self.paths)

    def put(
        self, paths: list[str], content: Callable[[str], tuple[str, str]], more: str = "", header: str = "Docs"
    ) -> None:
        frame = SITE_FRAME.format(header=header)
        for path in paths:
            title, body = content(path)
            main = f"<main><h1>{title}</h1><p>{body}</p>{more}</main>"
            self.site.put(path, f"<html lang=en><head><title>{title}</title></head><body>{frame}{main}</body></html>")


@pytest.fixture(scope="module")
def first_run(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[LocalSite, Path]]:
    """The site, and its index after a run."""
    data = tmp_path_factory.mktemp("forty") / "data"

    async def run(site: LocalSite) -> None:
        async with Forty(data, site) as made:
            report = await made.run()
            assert report.counts["new"] == 40, report.text

    with local_site() as running:
        asyncio.run(run(running))
        yield running, data


@pytest.fixture
async def forty(first_run: tuple[LocalSite, Path], tmp_path: Path) -> AsyncIterator[Forty]:
    """Its first run is done."""
    site, data = first_run
    site.answers = {}
    site.log.clear()
    shutil.copytree(data, tmp_path / "data")
    async with Forty(tmp_path / "data", site) as made:
        yield made


def login(path: str) -> tuple[str, str]:
    return "Sign in", "Please continue with the account of your organisation."


def own_login(path: str) -> tuple[str, str]:
    """No two are the same: a greeting, and a way back."""
    return "Sign in", f"Please tell {word(path)} your name and word. You return to {path} after that."


def nothing_here(path: str) -> tuple[str, str]:
    return "Nothing here", "The page that you are looking for has moved, or it never existed. Try the search."


def soft_404(path: str) -> tuple[str, str]:
    name, request = path.rpartition("/")[2], hashlib.sha256(path.encode()).hexdigest()[:8]
    return "Oops", f"We have no page {name} at {path} (request {request}1). Perhaps it has moved to another place."


def no_words(path: str) -> tuple[str, str]:
    return "404", "404"


def another_error(path: str) -> tuple[str, str]:
    """No two have a sentence in common."""
    return word(f"title {path}"), text(f"error {path}", 2)


def maintenance(path: str) -> tuple[str, str]:
    return "Maintenance", f"{text(f'joke {path}', 1)} We are back at {len(path)} o'clock."


TURNED = [
    (login, LOGIN, "shows a login form"),
    (own_login, LOGIN, "shows a login form"),
    (nothing_here, "", "the same text as others now"),
    (soft_404, "", "the same text as others now"),
    (no_words, "", "the same text as others now"),
    (another_error, "", "has another title now"),
    (maintenance, "", "has another title now"),
]


@pytest.mark.parametrize(("content", "more", "reason"), TURNED)
async def test_a_third_that_turns_into_something_else_is_kept_and_told(
    forty: Forty, content: Callable[[str], tuple[str, str]], more: str, reason: str
) -> None:
    """12 of 40 are 30 %: the others are updated, in the next run, too, and the pages are well again when the site is."""
    before, turned, changed = await forty.texts(), forty.paths[:36:3], forty.paths[1]
    pages = dict(forty.site.answers)
    forty.put(turned, content, more)
    forty.put([changed], lambda path: (path.title(), text("new" + path)))
    for _ in range(2):
        report = await forty.run()
        told = {page.url.removeprefix(forty.site.url): page for page in report.pages if page.outcome == "failed"}
        assert set(told) == set(turned), report.text
        assert all(page.kept and page.stale_since and page.reason.startswith(reason) for page in told.values())
        assert turned[0] in report.text
        assert report.exit_code == EXIT_WITH_FAILURES
        now = await forty.texts()
        assert {path for path in before if before[path] != now[path]} == {changed}
    forty.site.answers = pages
    assert (await forty.run()).exit_code == 0
    assert await forty.texts() == before


@pytest.mark.parametrize(("content", "more", "reason"), TURNED[1::2])
async def test_more_than_a_third_is_refused_unless_it_is_said_to_be_right(
    forty: Forty, content: Callable[[str], tuple[str, str]], more: str, reason: str
) -> None:
    """13 of 40 are a loss of 32 %."""
    before = await forty.texts()
    forty.put(forty.paths[:13], content, more)
    with pytest.raises(RunRefused, match=f"13 of 40 pages .*{reason}"):
        await forty.run()
    assert await forty.texts() == before
    await forty.run(force=True)
    assert len([path for path, now in (await forty.texts()).items() if now != before[path]]) == 13
    assert (await forty.run()).exit_code == 0


async def test_a_single_login_form_is_kept_off(forty: Forty) -> None:
    """No other page has its text."""
    before = await forty.texts()
    forty.put(forty.paths[:1], login, LOGIN)
    (told,) = (page for page in (await forty.run()).pages if page.outcome == "failed")
    assert "set `headers` of its source" in told.reason
    assert await forty.texts() == before


async def test_a_single_page_that_is_not_found_is_kept(forty: Forty) -> None:
    """The site says the same at an address that can't exist; it is asked once, and only for a page that is another one."""
    missing, stub, changed = forty.paths[:3]
    before = await forty.texts()

    class Answering(dict[str, object]):
        def get(self, path: str, default: object = None) -> object:
            if path not in self and path.startswith("/guide/"):
                forty.put([path], soft_404)
            return super().get(path, default)

    forty.site.answers = Answering(forty.site.answers)  # type: ignore[assignment]
    forty.put([missing], soft_404)
    forty.put([stub], lambda _: ("Moved", "This is now a part of the handbook, with much more to read."))
    forty.put([changed], lambda path: (path.title(), text("new" + path)))
    (told,) = (page for page in (await forty.run()).pages if page.outcome == "failed")
    assert told.url == forty.site.url + missing
    assert told.reason.startswith("says what the site says at an address that doesn't exist")
    now = await forty.texts()
    assert {path for path in before if before[path] != now[path]} == {stub, changed}
    assert len([path for path, _, _ in forty.site.log if "no-page" in path]) == 1


async def test_a_rebuilt_index_keeps_them_and_copies_of_them(forty: Forty) -> None:
    """Their text is taken from the old index; a page that had the same text as one of them stays its copy."""
    copy, original = forty.paths[20], forty.paths[0]
    forty.put([copy], lambda _: (original.title(), text(original)))
    await forty.run()
    before = await forty.texts()
    forty.put(forty.paths[:6], nothing_here)
    for rebuild in (False, True):
        report = await forty.run(rebuild=rebuild)
        assert report.counts["failed"] == 6, report.text
        assert await forty.texts() == before
        copies = [page for page in await (await forty.store.live()).pages() if page.derived.same_as]
        assert [(page.url, page.derived.same_as) for page in copies] == [
            (forty.site.url + copy, forty.site.url + original)
        ]


async def test_errors_of_different_texts_on_a_site_that_answers_200_for_all(forty: Forty) -> None:
    """Also where the pages were as short as the errors; what repeats half of the site's error is one alone."""
    short = forty.paths[:14]
    forty.put(short, lambda path: (path.title(), text(path, 2)))
    await forty.run()
    before = await forty.texts()

    class Answering(dict[str, object]):
        def get(self, path: str, default: object = None) -> object:
            if path not in self and path.startswith("/guide/"):
                forty.put([path], another_error)
            return super().get(path, default)

    forty.site.answers = Answering(forty.site.answers)  # type: ignore[assignment]
    forty.put(short[:11], another_error)
    forty.put(short[12:13], lambda _: ("Moved", "This is now a part of the handbook, with much more to read."))
    report = await forty.run()
    assert report.exit_code == EXIT_WITH_FAILURES
    told = {page.url.removeprefix(forty.site.url) for page in report.pages if page.outcome == "failed"}
    assert told >= set(short[:11])
    now = await forty.texts()
    assert all(now[path] == before[path] for path in short[:11])


HONEST: dict[str, tuple[Callable[[str], tuple[str, str]], str, str]] = {
    "all are rewritten": (lambda path: (path.title(), text("new" + path)), "", "Docs"),
    "another design": (
        lambda path: (path.title(), text(path) + " Edit this."), "<aside>Was it useful?</aside>", "<b>New</b> Log in"
    ),
    "a form for logins in every page": (lambda path: (path.title(), text("new" + path)), LOGIN, "Docs"),
    "stubs": (lambda path: (path.title(), text("stub" + path, 1)), "", "Docs"),
    "stubs that name their place": (lambda path: (path.title(), f"Now in {text(path + 'x', 1)[:20]}"), "", "Docs"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
async def test_honest_changes_are_taken_over(forty: Forty, name: str) -> None:
    """12 or all pages: a text of their own is one, however short."""
    content, more, header = HONEST[name]
    paths = forty.paths[:12] if "stubs" in name else forty.paths
    before = await forty.texts()
    forty.put(paths, content, more, header)
    report = await forty.run()
    assert report.exit_code == 0, report.text
    assert report.counts["changed"] == len(paths)
    now = await forty.texts()
    assert {path for path in before if before[path] != now[path]} == set(paths)


async def test_pages_about_logins_change_and_two_may_be_merged(forty: Forty) -> None:
    """A form as an example or as a demonstration doesn't make a page a login; equal pages stay equal."""
    how, demo, *twins = forty.paths[:6]
    forty.put([how], lambda _: ("Log in", text("how") + " Enter name and password."))
    forty.put(twins, lambda _: ("Twin", text("twin")))
    forty.put([demo], lambda _: ("Forms", text("demo")), LOGIN)
    await forty.run(force=True)
    example = f"<pre>{LOGIN.replace('<', '&lt;')}</pre>"
    forty.put([how], lambda _: ("How to log in", text("another how") + " Enter name and password."), example)
    forty.put([demo], lambda _: ("Forms to log in", text("demo", 7) + " Enter name and password."), LOGIN)
    forty.put(twins, lambda _: ("Twin", text("another twin")))
    forty.put(forty.paths[6:8], lambda _: ("Both", text("both")))
    report = await forty.run()
    assert report.exit_code == 0, report.text
    now = await forty.texts()
    assert now[how].startswith("# How to log in")
    assert now[demo].startswith("# Forms to log in")
    assert {now[path] for path in twins} == {now[twins[0]]}
    assert now[forty.paths[6]] == now[forty.paths[7]]


async def test_a_first_run_takes_stubs_and_names_login_forms(site: LocalSite, tmp_path: Path) -> None:
    """Nobody knows what the pages were before: stubs and pages with one text are indexed, but no short page with a login form."""
    async with Forty(tmp_path / "data", site) as made:
        made.put(made.paths[:6], nothing_here)
        made.put(made.paths[6:8], own_login, LOGIN)
        made.put(made.paths[8:9], login, LOGIN)
        report = await made.run()
        assert report.exit_code == EXIT_WITH_FAILURES
        told = {page.url.removeprefix(site.url): page.reason for page in report.pages if page.outcome == "failed"}
        assert set(told) == set(made.paths[6:9])
        assert all("is a login form: the site wants a login, so set `headers`" in reason for reason in told.values())
        assert made.paths[6] in report.text
        assert set(await made.texts()) == {path for path in made.paths if path not in told}
        assert (await made.run(force=True)).exit_code == 0
        assert (await made.run()).exit_code == 0
        assert len(await made.texts()) == 40


async def test_a_first_run_that_meets_only_login_forms_publishes_nothing(site: LocalSite, tmp_path: Path) -> None:
    """No two are the same, so they aren't one text."""
    async with Forty(tmp_path / "data", site) as made:
        made.put(made.paths, own_login, LOGIN)
        with pytest.raises(NotPublished, match="is a login form"):
            await made.run()


async def test_a_form_beside_every_text_is_no_login(site: LocalSite, tmp_path: Path) -> None:
    """A site with a field for a password in its frame: short pages are indexed, in the first run and later."""
    async with Forty(tmp_path / "data", site) as made:
        long = [f"/long-{n}" for n in range(3)]
        made.put(made.paths, lambda path: (path.title(), text(path)), LOGIN)
        made.put(long, lambda path: (path.title(), text(path, 40)), LOGIN)
        made.site.sitemap(*made.paths[:39], *long)
        assert (await made.run()).exit_code == 0
        made.site.sitemap(*made.paths, *long)
        report = await made.run()
        assert (report.exit_code, report.counts["new"]) == (0, 1), report.text


async def eroded(made: Forty, *counts: int) -> None:
    for count in counts:
        made.site.sitemap(*made.paths[:count])
        await made.run()


@pytest.mark.parametrize("kind", [embedded, pytest.param(opensearch, marks=pytest.mark.opensearch)])
async def test_slow_erosion_is_stopped_and_what_was_accepted_is_the_new_most(
    site: LocalSite, tmp_path: Path, kind: Callable[[Path], object]
) -> None:
    """Each run loses less than 30 %, all of them more: the most of the last runs counts, on both stores."""
    async with kind(tmp_path) as open_store:  # type: ignore[attr-defined]
        made = Forty(await open_store(), site)
        await eroded(made, 40, 29)
        with pytest.raises(RunRefused, match=r"21 pages after this run, and had 40 .*DOCS_MAX_LOST") as caught:
            await eroded(made, 21)
        assert "--force" in str(caught.value)
        assert len(await made.texts()) == 29
        await made.run(force=True)
        (source,) = (await runs_of(made.store)).sources.values()
        assert source.pages == (21,)
        await eroded(made, 21, 15)
        with pytest.raises(RunRefused, match="11 pages after this run, and had 21"):
            await eroded(made, 11)


async def test_a_few_pages_a_night_are_erosion_too_and_runs_are_forgotten_at_last(
    forty: Forty, monkeypatch: pytest.MonkeyPatch
) -> None:
    """28 of 40 are 30 % less; what was there before the last 14 runs, here 4, doesn't count."""
    monkeypatch.setattr("app.index.run_history.COUNTED", 4)
    await eroded(forty, 36, 32, 28)
    with pytest.raises(RunRefused, match="27 pages after this run, and had 40"):
        await eroded(forty, 27)
    await eroded(forty, *[28] * 4, 27)
    (source,) = (await runs_of(forty.store)).sources.values()
    assert source.pages == (28, 28, 28, 27)


async def test_new_pages_make_up_for_lost_ones(forty: Forty) -> None:
    """A site that renews a quarter of its pages each night isn't eroded."""
    for night in range(5):
        gone, forty.paths = forty.paths[:10], forty.paths[10:] + [f"/night{night}/{n}" for n in range(10)]
        assert len(gone) == 10
        forty.put(forty.paths[-10:], lambda path: (path.title(), text(path)))
        await eroded(forty, 40)
        assert len(await forty.texts()) == 40

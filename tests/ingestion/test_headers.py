"""Headers of a source open a site that wants a login, are sent to it alone, and are kept nowhere."""

from __future__ import annotations

import io
import logging
from collections.abc import Callable
from pathlib import Path

import pytest

from app.core.errors import AssistantError, SettingsError
from ingestion.progress import LogProgress
from ingestion.report import Report
from ingestion.sources import Source, as_sources
from tests.ingestion.index import Index
from tests.ingestion.local_site import Answer, LocalSite, local_site

TOKEN, COOKIE = "t0ken-0123456789", "c00kie-abcdef"
HEADERS = 'headers = { Authorization = "Bearer env:WIKI_TOKEN", Cookie = "session=file:cookie.txt" }'


def close(site: LocalSite, token: str = TOKEN) -> None:
    """From now on, the site answers only to this token and to the cookie."""

    def guarded(answer: Answer) -> Callable[[], Answer]:
        def given() -> Answer:
            known = site.authorization == f"Bearer {token}" and site.cookie == f"session={COOKIE}"
            return answer if known else Answer(b"who are you?", "text/plain", 401, etag=False)

        return given

    for path, answer in site.answers.items():
        assert isinstance(answer, Answer)
        site.answers[path] = guarded(answer)


def sources(directory: Path, site: LocalSite, *more: str) -> tuple[Source, ...]:
    """The site as a file of sources names it."""
    (directory / "cookie.txt").write_text(f"{COOKIE}\n")
    file = directory / "sites.toml"
    file.write_text("\n".join(["[[source]]", f'url = "{site.url}/sitemap.xml"', *more]))
    return as_sources([str(file)])


async def run(given: tuple[Source, ...], directory: Path, stream: io.StringIO | None = None) -> Report:
    async with Index(directory, crawl_allow=("127.0.0.0/8",)) as index:
        return await index.run(*given, progress=LogProgress(stream or io.StringIO(), every=0))


async def test_headers_open_the_site_and_are_in_no_log_report_index_or_history(
    site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A page that moves to another host of the source is read there without them; all files of the index are searched."""
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    with local_site() as other:
        other.page("/b", "Page b", "Open words.")
        site.page("/a", "Page a", "Some words about closed things.")
        site.put("/b", "", status=302, headers={"Location": f"{other.url}/b"})
        site.put("/broken", "", status=500)
        site.sitemap("/a", "/b", "/missing", "/broken")
        close(site)
        stream, data = io.StringIO(), tmp_path / "data"
        given = sources(tmp_path, site, f'hosts = ["{other.url.removeprefix("http://")}"]', HEADERS)
        report = await run(given, data, stream)
        assert report.counts["new"] == 2, report.text
        assert {"/robots.txt", "/b"} <= {path for path, _, _ in other.log}
        assert not [headers for _, _, headers in other.log if {"Authorization", "Cookie"} & headers.keys()]
    async with Index(data) as index:
        record = (await index.store.live()).info.sources[0]
    assert "headers" not in record.options
    assert "headers" in record.unreadable
    told = [report.text, report.to_json(), stream.getvalue(), repr(report), repr(given), caplog.text]
    files = [path.read_bytes() for path in data.rglob("*") if path.is_file()]
    assert files
    for secret in (TOKEN, COOKIE):
        assert not [text for text in told if secret in text]
        assert not [body for body in files if secret.encode() in body]


async def test_a_refused_login_says_what_to_set(
    site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without headers it names them; with headers that the site doesn't take, it says that these were sent."""
    monkeypatch.setenv("WIKI_TOKEN", TOKEN)
    site.page("/a", "Page a", "Some words.")
    site.sitemap("/a")
    close(site, token="another")
    with pytest.raises(AssistantError, match=r"answered 401: the site wants a login, so set `headers` of its source"):
        await run(sources(tmp_path, site), tmp_path / "data")
    with pytest.raises(AssistantError, match=r"answered 401, although the login of its source was sent") as caught:
        await run(sources(tmp_path, site, HEADERS), tmp_path / "data")
    assert str(caught.value).endswith("still valid. Nothing was changed.")  # its address is right
    assert TOKEN not in repr(caught.value)


async def test_mistakes_in_headers_are_errors_that_show_no_value(
    site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Values don't belong into the file, and what the file names must be there."""
    for written, told in (
        ('{ Authorization = "Bearer s3cret" }', "Authorization must name where its value is: env:NAME or file:PATH"),
        ('"s3cret"', "isn't a table of headers"),
        ('{ Host = "env:X" }', "'Host' is no header that can be set"),
    ):
        with pytest.raises(SettingsError) as caught:
            sources(tmp_path, site, f"headers = {written}")
        assert told in str(caught.value)
        assert "s3cret" not in str(caught.value)
    monkeypatch.setenv("TWO_LINES", "s3cret\nX-Other: 1")
    for written, told in (
        ("env:NOT_SET", "headers: X-Key: the environment variable NOT_SET is not set or empty"),
        ("file:gone.txt", "gone.txt can't be read: No such file"),
        ("env:TWO_LINES", "has characters that no header can have"),
    ):
        with pytest.raises(SettingsError) as caught:
            await run(sources(tmp_path, site, f'headers = {{ X-Key = "{written}" }}'), tmp_path / "d")
        assert told in str(caught.value)
        assert "s3cret" not in str(caught.value)


async def test_a_site_that_asks_for_a_login_in_any_form_is_named_as_such_and_loses_nothing(
    site: LocalSite, tmp_path: Path
) -> None:
    """401, a redirect to a login or to a host for logins, a login form in place of every page or of the sitemap."""
    words = "Some words about closed things, how to install them, and how to use them every day at work."
    form = f'<html lang=en><main><h1>Welcome</h1><p>{words}</p><input name=p type="password"></main>'
    urls = [f"/p{number}" for number in range(6)]
    for url in urls:
        site.page(url, f"Page {url}", f"{words} It is {url}.")
    site.sitemap(*urls)
    pages = dict(site.answers)
    await run(sources(tmp_path, site), tmp_path / "data")

    def moved(target: str) -> Answer:
        return Answer(status=302, headers={"Location": target}, etag=False)

    login = r"the site wants a login, so set `headers` of its source"
    other = site.url.replace("127.0.0.1", "localhost")
    for answer, paths, told in (
        (Answer(b"no", "text/plain", 401, etag=False), urls, f"answered 401: {login}"),
        (Answer(b"no", "text/plain", 403, etag=False), urls, "answered 403: the site refuses it; if it wants a login"),
        (moved(f"{other}/oauth2/authorize?state=x"), urls, f"redirected to {other}/oauth2/authorize: {login}"),
        (moved("/user/sign_in?next=/p"), urls, f"redirected to {site.url}/user/sign_in: {login}"),
        (moved("/login"), urls, f"redirected to {site.url}/login: {login}"),
        (
            Answer(form.encode()),
            urls,
            "the same text as others now .*'# Welcome.*if the site wants a login, set `headers`",
        ),
        (moved("/login"), ["/sitemap.xml"], f"sitemap.xml can't be read: redirected to {site.url}/login: {login}"),
        (Answer(form.encode()), ["/sitemap.xml"], "page with a login form, so set `headers` of its source"),
    ):
        site.answers = {**pages, "/login": Answer(form.encode()), **dict.fromkeys(paths, answer)}
        with pytest.raises(AssistantError, match=told):
            await run(sources(tmp_path, site), tmp_path / "data")
    for answer, told in (
        (Answer(b"no", "text/plain", 401, etag=False), f"answered 401: {login}"),
        (Answer(form.encode()), "leads to no other page: it is a page with a login form"),
    ):
        site.answers = dict.fromkeys(("/docs/", "/sitemap.xml", "/docs/sitemap.xml", "/robots.txt"), answer)
        if told.startswith("leads"):
            del site.answers["/sitemap.xml"], site.answers["/docs/sitemap.xml"]
        with pytest.raises(AssistantError, match=told):
            await run(as_sources([f"{site.url}/docs/"]), tmp_path / "other")
    site.answers = {**pages, "/p0": moved("/guide/login"), "/guide/login": pages["/p0"]}
    report = await run(sources(tmp_path, site), tmp_path / "data")
    assert report.counts["unchanged"] == 5, report.text
    assert report.exit_code == 0  # a page about logins, which moved

"""Names and passwords in the addresses of sites are for the sites: nobody else is shown them, and nothing keeps them."""

from __future__ import annotations

import base64
import io
import json
import logging
from pathlib import Path

import pytest

from app.core.errors import AssistantError, SettingsError
from app.core.log_message import masked
from app.core.settings import Settings
from ingestion.crawl.fetch import Fetcher
from ingestion.progress import LogProgress
from ingestion.report import PageReport, Report
from ingestion.sources import Source, as_sources
from tests.ingestion.index import Index, outcomes
from tests.ingestion.local_site import Answer, LocalSite

SECRET = "p%40ss-w0rd"
WHOLE = "Basic " + base64.b64encode(b"reader:p@ss-w0rd").decode()


@pytest.fixture
def closed(site: LocalSite) -> str:
    """The address, with its password, of a site that lists its pages as paths and asks for the password everywhere."""
    site.page("/a", "Page a", "Some words about closed things.")
    site.put("/sitemap.txt", "/a\n/missing\n/broken\n", "text/plain")
    site.put("/broken", "", status=500)
    for path, answer in list(site.answers.items()):
        assert isinstance(answer, Answer)

        def guarded(answer: Answer = answer) -> Answer:
            return answer if site.authorization == WHOLE else Answer(b"who are you?", "text/plain", 401, etag=False)

        site.answers[path] = guarded
    return f"{site.url.replace('://', f'://reader:{SECRET}@')}/sitemap.txt"


async def test_a_password_opens_the_site_and_is_told_to_nobody(closed: str, site: LocalSite, index: Index) -> None:
    """Every page is asked for with it; report, JSON, page, progress and index lack it."""
    stream = io.StringIO()
    report = await index.run(closed, progress=LogProgress(stream, every=0))
    assert outcomes(report) == {"/a": "new", "/missing": "skipped", "/broken": "failed"}
    kept = [page.facts for page in (await index.pages()).values()]
    assert kept[0]["source"] == f"{site.url}/sitemap.txt"
    told = [report.text, report.to_json(), stream.getvalue(), repr(report), repr(kept)]
    assert not [text for text in told if "w0rd" in text]


async def test_a_password_is_in_no_error(closed: str, site: LocalSite, index: Index) -> None:
    """The message names the site without it."""
    site.put("/sitemap.txt", "", status=500)
    with pytest.raises(AssistantError) as caught:
        await index.run(closed)
    assert site.url in str(caught.value)
    assert "w0rd" not in repr(caught.value)


async def test_another_host_gets_no_password(closed: str, site: LocalSite) -> None:
    """It belongs to host and port."""
    async with Fetcher(Settings.load(None)) as fetcher:
        fetcher.sign_in(closed, {})
        assert fetcher._logins.keys() == {site.url}


@pytest.mark.parametrize("wrong", ['languages = "english"', "parallel = 0", 'x = "https://u:w0rd@h/"'])
def test_a_mistake_in_a_file_of_sources_is_told_without_it(tmp_path: Path, wrong: str) -> None:
    """The source is named by its address."""
    file = tmp_path / "sites.toml"
    file.write_text(f'[[source]]\nurl = "https://reader:w0rd@docs.example.org/"\n{wrong}\n', encoding="utf-8")
    with pytest.raises(SettingsError) as caught:
        as_sources([str(file)])
    assert "https://reader:…@docs.example.org/" in str(caught.value)
    assert "w0rd" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("see https://u:p@h.org/x.", "see https://u:…@h.org/x."),
        ("https://u:p@ss:1@h.org/", "https://u:…@h.org/"),
        ("opensearch://admin:a%2Fb@h:9200/docs", "opensearch://admin:…@h:9200/docs"),
        ("https://token@h.org/", "https://…@h.org/"),
        ("https://h.org/@u/a?mail=a:b@c.org", "https://h.org/@u/a?mail=a:b@c.org"),
        ("https://h.org?mail=a:b@c.org", "https://h.org?mail=a:b@c.org"),
        ("opensearch://user:password@host:9200/index", "opensearch://user:password@host:9200/index"),
        ('"http://a.org","b:c@d"', '"http://a.org","b:c@d"'),
        ("http://a:1@h http://b:2@h", "http://a:…@h http://b:…@h"),
        ("https://h.org/a.zip?v=1&X-Amz-Signature=ab%2F&x=1", "https://h.org/a.zip?v=1&X-Amz-Signature=…&x=1"),
        ("https://h.org/a?sig=a&author=b&monkey=c#auth=d", "https://h.org/a?sig=…&author=b&monkey=c#auth=d"),
        ("postgresql://h/d?sslpassword=a", "postgresql://h/d?sslpassword=…"),
    ],
)
def test_addresses_are_masked_wherever_they_stand(text: str, shown: str) -> None:
    """Only what stands before the host, and all of that."""
    assert masked(text) == shown


def test_what_is_masked_in_json_is_still_json() -> None:
    """A message may have an address in quotation marks, or a value may end with a backslash."""
    for text in (
        'says "https://h.org/?token=abc" twice',
        "https://h.org/?token=a\\b\\",
        "https://h.org/?token=a\nthen this",
    ):
        shown = json.loads(masked(json.dumps([text, "and more"])))
        assert shown[1] == "and more"
        assert shown[0].partition("token=")[2].startswith("…")


def test_a_password_that_a_site_puts_into_its_own_links_is_masked() -> None:
    """The report shows what a sitemap says, but not this."""
    site = "https://u:w0rd@h.org/"
    page = PageReport(f"{site}a", "failed", f"redirected to {site}b", redirects=(f"{site}c",))
    report = Report((site,), [page], warnings=[f"{site} says no"])
    assert not [text for text in (report.text, report.to_json()) if "w0rd" in text]


@pytest.mark.plugins
async def test_a_signed_address_that_a_document_redirects_to_is_told_to_nobody(
    site: LocalSite, index: Index, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Stores of files sign them. Report, JSON, page, log and all files of the index lack it, also where it fails."""
    caplog.set_level(logging.DEBUG)
    petstore = (Path(__file__).parent / "files/petstore.yaml").read_bytes()
    signed = "?X-Amz-Signature=s1gn3d&private_token=t0k3n"
    site.put("/api.yaml", "", status=302, headers={"Location": f"{site.url}/store/api.yaml{signed}"})
    site.put(f"/store/api.yaml{signed}", petstore, "application/yaml")
    source = Source(url="https://docs.example.org/api/", openapi=f"{site.url}/api.yaml")
    told: list[str] = []
    for status in (200, 403, 503):
        if status != 200:
            site.put(f"/store/api.yaml{signed}", "", status=status)
        site.page("/other", "Other", "Some words.")
        report = await index.run(source, site.sitemap("/other"))
        assert len(report.pages) > 1 or status != 200
        told += [report.text, report.to_json()]
    files = [file.read_bytes().decode("latin-1") for file in tmp_path.rglob("*") if file.is_file()]
    logged = [line.getMessage() for line in caplog.records if line.name.startswith(("app", "ingestion"))]
    assert [line for line in logged if "X-Amz-Signature=…" in line]
    for text in [*told, *logged, *files]:
        assert "s1gn3d" not in text, text[max(0, text.find("s1gn3d") - 300) :][:600]
        assert "t0k3n" not in text

"""`docs-assistant ingest`: its report, its exit codes, and which sites it takes."""

import json
from pathlib import Path

import pytest

from tests.ingestion.local_site import LocalSite, local_site


def test_the_report_is_text_or_json(cli, site: LocalSite):
    """Standard output has the report alone, progress goes to standard error; a second run embeds nothing."""
    done = cli("ingest", f"{site.url}/sitemap.xml")
    assert done.ok.startswith("3 new; ")
    assert "The index holds 3 pages" in done.out
    assert "Pages: 3" in done.err
    again = cli("ingest", f"{site.url}/sitemap.xml", "--json")
    report = json.loads(again.out)
    assert report["counts"] == {"new": 0, "changed": 0, "unchanged": 3, "removed": 0, "skipped": 0, "failed": 0}
    assert (report["embedded_texts"], report["exit_code"]) == (0, 0)
    assert {page["url"] for page in report["pages"]} == {f"{site.url}/gauge-{n}" for n in range(3)}


def test_failed_pages_make_the_exit_code_2(cli, site: LocalSite):
    """The index is published, and cron gets an exit code that isn't 0."""
    site.put("/gauge-1", "no", status=403)
    done = cli("ingest", f"{site.url}/sitemap.xml", "--json")
    report = json.loads(done.out)
    assert done.code == report["exit_code"] == 2
    (failed,) = (page for page in report["pages"] if page["outcome"] == "failed")
    assert failed["url"] == f"{site.url}/gauge-1"
    assert "403" in failed["reason"]


def test_sites_come_from_the_settings(cli, site: LocalSite):
    """Without an address, DOCS_SITES is indexed."""
    done = cli("ingest", "--json", DOCS_SITES=f"{site.url}/sitemap.xml")
    assert json.loads(done.out)["sites"] == [f"{site.url}/sitemap.xml"]


def test_other_sites_stay_unless_only_these_are_wanted(cli, indexed: LocalSite):
    """A second site is added; with --only the first one leaves."""
    with local_site() as other:
        other.page("/valve", "Valve", "A valve opens and closes.")
        sitemap = other.sitemap("/valve")
        added = json.loads(cli("ingest", sitemap, "--json").out)
        assert added["published"]["pages"] == 4
        alone = json.loads(cli("ingest", sitemap, "--only", "--json").out)
        assert alone["published"]["pages"] == 1
        assert alone["counts"]["removed"] == 3


def test_readers_that_print_or_fail_leave_the_report_whole(
    cli, site: LocalSite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The output is JSON alone; the site is published, and the reader that failed is named there and on the page."""
    monkeypatch.syspath_prepend(str(tmp_path))
    (tmp_path / "loud.py").write_text(
        "from llama_index.core.readers.base import BaseReader\n"
        "class Loud(BaseReader):\n"
        "    def load_data(self, good=False):\n"
        "        print('Reading ...')\n"
        "        from llama_index.core.schema import Document\n"
        "        return [Document(text='Some words.', metadata={'url': 'https://a.example.org/x'})] if good else 1 / 0\n"
    )
    tables = [f'url = "{site.url}/sitemap.xml"']
    for name, good in (("a", "true"), ("b", "false")):
        tables.append(f'url = "https://{name}.example.org/"\nreader = "loud:Loud"\nload_args = {{ good = {good} }}')
    (tmp_path / "sites.toml").write_text("".join(f"[[source]]\n{table}\n" for table in tables))
    done = cli("ingest", str(tmp_path / "sites.toml"), "--json")
    report = json.loads(done.out)
    assert (done.code, report["counts"]["new"]) == (2, 4)
    assert report["failed_sources"] == [
        "https://b.example.org/: loud:Loud failed (ZeroDivisionError: division by zero)"
    ]
    assert "Reading ..." in done.err

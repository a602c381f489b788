"""Nothing is replaced by accident: an index knows its sites, on each store."""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from app.core.errors import IndexDamaged, RunRefused, SitemapError
from app.core.generation import GenerationInfo
from app.core.settings import Settings
from docs_assistant.cli.ingest import index as index_sites
from docs_assistant.cli.ingest import plan
from ingestion.entry import Listing
from ingestion.options import RunOptions
from ingestion.publish.recorded import records_of
from ingestion.sources import OwnDocumentation, Source
from tests.docs_assistant.cli.stored_index import Index
from tests.fake_llm import FakeLLM
from tests.ingestion.local_site import LocalSite, local_site

OWN = "http://127.0.0.1:8000/docs/sitemap.xml"


@pytest.fixture
def other() -> Iterator[LocalSite]:
    with local_site() as running:
        for n in range(2):
            running.page(f"/valve-{n}", f"Valve {n}", f"Valve {n} opens at {n} bar.")
        running.sitemap("/valve-0", "/valve-1")
        yield running


@pytest.fixture
def run(index: Index) -> Callable[..., tuple[str, GenerationInfo | None]]:
    """What `run` does with its index beside serving: the lines that it prints before it reads, and what it published."""
    settings = Settings.load(None, store=index.address, splitter="page")

    def running(*named: str, replaces: bool = False, own: str = OWN) -> tuple[str, GenerationInfo | None]:
        sources, lines = asyncio.run(plan(settings, named, own, replaces=replaces))
        report = asyncio.run(index_sites(settings, sources, RunOptions(replace=replaces))) if sources else None
        return "\n".join(lines), report.published if report else None

    return running


def urls(cli) -> set[str]:
    """The paths of the indexed pages."""
    return {"/" + page["url"].rpartition("/")[2] for page in json.loads(cli("pages", "--json").out)}


GAUGES = {"/gauge-0", "/gauge-1", "/gauge-2"}
VALVES = {"/valve-0", "/valve-1"}


def test_another_site_is_added_and_a_plain_run_reads_both(cli, run, site: LocalSite, other: LocalSite):
    """In any order of commands; the lines say how many pages stay or are read again."""
    gauges, valves = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    assert run(gauges)[0] == ""
    said, _ = run(valves)
    assert said.startswith(f"Staying in the index: {gauges} (3 pages). ")
    assert "--replace" in said
    assert urls(cli) == GAUGES | VALVES
    site.page("/gauge-3", "Gauge 3", "New.")
    site.sitemap("/gauge-0", "/gauge-1", "/gauge-2", "/gauge-3")
    said, info = run()
    assert said == f"Reading the indexed sites again: {gauges} (3 pages), {valves} (2 pages)"
    assert [one.url for one in info.sources] == [gauges, valves]
    assert urls(cli) == GAUGES | VALVES | {"/gauge-3"}
    site.sitemap("/gauge-1", "/gauge-2", "/gauge-3")
    done = cli("ingest", "--json")
    assert gauges in done.err
    assert json.loads(done.out)["counts"]["removed"] == 1
    assert "own" not in said


def test_a_replaced_site_comes_back_with_rollback_and_stays(cli, index: Index, run, site: LocalSite, other: LocalSite):
    """What goes is said before; a plain run redoes nothing."""
    gauges, valves = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    run(gauges)
    said, _ = run(valves, replaces=True)
    assert said.startswith(f"Removing from the index (--replace): {gauges} (3 pages). `docs-assistant rollback`")
    assert urls(cli) == VALVES
    done = cli("rollback")
    assert (done.code, done.out.splitlines()[1]) == (0, f"Its sites: {gauges}")
    assert urls(cli) == GAUGES
    assert run()[0] == f"Reading the indexed sites again: {gauges} (3 pages)"
    assert urls(cli) == GAUGES


def test_another_embedder_leaves_the_way_back_and_says_what_it_needs(
    cli, index: Index, run, site: LocalSite, other: LocalSite, llm: FakeLLM
):
    """Before the pages go, in the report and by rollback; with the embedder set again, all come back."""
    gauges, valves = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    eight = {"DOCS_EMBEDDING_URL": llm.url, "DOCS_EMBEDDING_MODEL": "eight"}
    run(gauges)
    again = Settings.load(None, store=index.address, embedding_url=llm.url, embedding_model="eight")
    _, lines = asyncio.run(plan(again, [valves], "", replaces=True))
    assert "They were indexed with the embedder local:words" in lines[0]
    assert "set that embedder again" in lines[0]
    run(valves, replaces=True)
    report = cli("ingest", **eight)
    assert "generation 2, the one before, was built with the embedder local:words" in report.out
    refused = cli("rollback", **eight)
    assert (refused.code, "Set that embedder again first" in refused.err) == (1, True)
    assert cli("rollback").code == 0
    assert urls(cli) == VALVES
    assert cli("rollback").code == 0
    assert urls(cli) == GAUGES


def test_our_own_documentation_is_for_an_empty_index_and_gives_way(cli, run, site: LocalSite, other: LocalSite):
    """Never mixed with the user's pages, never indexed where there are some, whichever command brings them."""
    own, gauges = f"{other.url}/sitemap.xml", f"{site.url}/sitemap.xml"
    _, info = run(own=own)
    assert (urls(cli), [one.demo for one in info.sources]) == (VALVES, [True])
    assert run(own=own) == ("", info)
    said, _ = run(gauges)
    assert said == f"Removing from the index: {own} (2 pages), our own documentation, which was there for a first try."
    assert urls(cli) == GAUGES
    assert run(own=own)[0] == f"Reading the indexed sites again: {gauges} (3 pages)"
    assert urls(cli) == GAUGES
    cli("rollback")
    report = cli("ingest", gauges)
    assert f"Sites removed (1):\n  {own}, 2 pages: our own documentation" in report.out
    assert urls(cli) == GAUGES


def test_a_site_that_is_away_or_half_empty_costs_nothing(cli, run, site: LocalSite, other: LocalSite):
    """Not when it is read again, and not when it should replace others: the guard holds."""
    gauges, valves = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    run(gauges)
    with pytest.raises(SitemapError, match="missing"):
        run(f"{other.url}/missing.xml", replaces=True)
    site.sitemap("/gauge-0")
    with pytest.raises(RunRefused, match="2 of 3 pages"):
        run()
    with pytest.raises(RunRefused, match="2 of 3 pages"):
        run(gauges, replaces=True)
    run(gauges, valves, replaces=True)
    assert urls(cli) == GAUGES | VALVES
    site.put("/sitemap.xml", "gone", status=500)
    with pytest.raises(SitemapError):
        run(gauges)
    assert urls(cli) == GAUGES | VALVES


def test_a_source_is_read_again_as_it_was_configured(cli, index: Index, run, site: LocalSite, tmp_path: Path):
    """With its collection, patterns and selectors; a directory too, unless others may write to the index."""
    (tmp_path / "pages").mkdir()
    (tmp_path / "pages/valve.md").write_text("# Valve\n\nOpens at 3 bar.\n")
    (tmp_path / "sites.toml").write_text(
        f'[[source]]\nurl = "{site.url}/sitemap.xml"\ncollection = "manual"\nexclude = ["*-2"]\ndrop_selectors = "nav"\n'
        '[[source]]\nurl = "https://docs.example.org/"\ndirectory = "pages"\n'
    )
    _, first = run(str(tmp_path / "sites.toml"))
    said, again = run()
    assert again.sources == first.sources
    assert {page["collection"] for page in json.loads(cli("pages", "--json").out)} == {"manual", "docs"}
    assert urls(cli) == {"/gauge-0", "/gauge-1", "/valve"}
    on_server = "://" in index.address
    assert ("Not read again:" in said) is on_server
    assert f"{tmp_path}/pages (1 page)" in said


def test_no_secret_is_kept_in_the_index(cli, index: Index, run, site: LocalSite):
    """A source whose password isn't known any more keeps its pages, also with `--only`, and a line says what to do."""
    address = site.url.replace("://", "://reader:sesame@") + "/sitemap.xml"
    _, info = run(address)
    assert "sesame" not in repr(info)
    said, published = run()
    assert published is None
    assert f"Not read again: {site.url}/sitemap.xml (3 pages), because its password, headers" in said
    only = cli("ingest", "--only")
    assert (only.code, "--only needs the sites that stay" in only.err, urls(cli)) == (1, True, GAUGES)
    assert run(address)[1].sources == info.sources


def test_a_site_that_a_damaged_index_lost_is_read_by_the_next_run(
    cli, run, site: LocalSite, other: LocalSite, index: Index
):
    """A run of another site builds the index anew, and doesn't forget which sites it had."""
    if "://" in index.address:
        pytest.skip("damage to files")
    gauges, valves = f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"
    run(gauges, valves)
    for file in (file for table in Path(index.address).glob("pages*") for file in table.rglob("*.lance")):
        file.write_bytes(b"torn")
    assert cli("ingest", gauges).code == 0
    assert run()[0] == f"Reading the indexed sites again: {gauges} (3 pages), {valves} (0 pages)"
    assert urls(cli) == GAUGES | VALVES


def test_into_a_damaged_index_goes_no_other_site(cli, run, site: LocalSite, tmp_path: Path, index: Index):
    """What is recorded is read again and the index built anew; where that is lost too, the message names the command."""
    if "://" in index.address:
        pytest.skip("damage to files")
    gauges = f"{site.url}/sitemap.xml"
    run(gauges)
    for table in Path(index.address).glob("pages*"):
        for file in table.rglob("*.lance"):
            file.write_bytes(b"torn")
    assert run()[0] == f"Reading the indexed sites again: {gauges}"
    assert urls(cli) == GAUGES
    (Path(index.address) / "index.json").write_text("{")
    with pytest.raises(IndexDamaged, match="build it again: docs-assistant ingest https://"):
        run()
    assert cli("ingest").code == 1
    run(gauges)
    assert urls(cli) == GAUGES


def test_runs_of_single_sites_without_changes_write_nothing(index: Index, run, site: LocalSite, other: LocalSite):
    """Whichever of them is read, the record of the sites stays the same."""
    both = [f"{site.url}/sitemap.xml", f"{other.url}/sitemap.xml"]
    _, info = run(*both)
    assert [run(one)[1] for one in (*both, *both)] == [info] * 4


def test_the_documentation_is_a_demo_by_its_class_alone(run, site: LocalSite):
    """Whoever names an address of /docs/ keeps its pages beside others."""
    assert not isinstance(Source(url=OWN), OwnDocumentation)
    site.sitemap("/gauge-0", at="/docs/sitemap.xml")
    run(f"{site.url}/docs/sitemap.xml")
    assert run(f"{site.url}/sitemap.xml")[0].startswith("Staying in the index")


def test_arguments_of_readers_are_recorded_where_they_are_read_again_and_no_secret_is():
    """On a server, where others see the index and no reader is started from it, none is."""

    def recorded(store: str, **arguments: str) -> tuple[str, bool]:
        source = Source(url="https://docs.example.org/", reader="readers:Files", reader_args=arguments)
        listed = Listing((), (), frozenset(), frozenset(), roots={source: frozenset({source.url})})
        (record,) = records_of([source], listed, Settings.load(None, store=store))
        return str(record.options.get("reader_args", "")), bool(record.unreadable)

    assert recorded("data/", path="pages") == ('{"path": "pages"}', False)
    for name in (
        "api_key",
        "password",
        "passphrase",
        "pwd",
        "github_pat",
        "bearer",
        "cookie",
        "sas_url",
        "Authorization",
    ):
        assert recorded("data/", **{name: "sesame"}) == ("", True), name
    assert recorded("opensearch://localhost:9200/docs", path="pages") == ("", False)

"""`docs-assistant pages`, as typed."""

import json

import pytest
import yaml

from tests.docs_assistant.cli.stored_index import SITE, Index, page_with

pytestmark = pytest.mark.parametrize("index", ["embedded"], indirect=True)

LONG = "To install the client, download the archive for your system and unpack it, then put the program on your path."


@pytest.fixture
def filled(index: Index) -> Index:
    """Three pages, one of them stale and in Czech, one without chunks."""
    index.publish(
        page_with("/install", LONG, "Second part.", title="Install the client"),
        page_with(
            "/cs/prehled", "Přehled služeb.", title="Přehled úložiště", language="cs", stale_since="2026-02-01T01:02:03+00:00"
        ),
        page_with("/empty", title="Empty", collection="blog", modified=""),
    )  # fmt: skip
    return index


def listed(cli, *arguments: str) -> list[str]:
    return [page["url"].removeprefix(SITE) for page in json.loads(cli("pages", *arguments, "--json").ok)]


def test_all_pages_are_listed_with_their_data(cli, filled):
    """One line per page, nothing cut off; an unknown field is a dash; the last line has the totals."""
    heading, *rows, empty, total = cli("pages").ok.splitlines()
    assert heading.split() == "language chunks modified last ok stale since collection url title".split()  # noqa: SIM905
    cells = [row.split() for row in rows]
    assert cells == [
        ["cs", "1", "2026-01-02", "2026-02-03", "04:05", "2026-02-01", "01:02", "docs", f"{SITE}/cs/prehled", "Přehled", "úložiště"],
        ["en", "0", "-", "2026-02-03", "04:05", "-", "blog", f"{SITE}/empty", "Empty"],
        ["en", "2", "2026-01-02", "2026-02-03", "04:05", "-", "docs", f"{SITE}/install", "Install", "the", "client"],
    ]  # fmt: skip
    assert empty == ""
    assert total.startswith("3 of 3 pages, 3 of 3 chunks, 1 stale (generation ")


def test_the_list_as_json_has_the_same_fields(cli, filled):
    """Times have seconds and a time zone."""
    assert json.loads(cli("pages", "--search", "prehled", "--json").ok) == [
        {
            "url": f"{SITE}/cs/prehled",
            "title": "Přehled úložiště",
            "language": "cs",
            "collection": "docs",
            "chunks": 1,
            "modified": "2026-01-02",
            "last_ok": "2026-02-03T04:05:06+00:00",
            "stale_since": "2026-02-01T01:02:03+00:00",
        }
    ]


def test_a_text_is_searched_in_address_and_title(cli, filled):
    """Upper case and diacritics don't matter."""
    assert listed(cli, "--search", "CLIENT") == ["/install"]
    for text in ("uloziste", "ÚLOŽIŠTĚ", "/cs/"):
        assert listed(cli, "--search", text) == ["/cs/prehled"]
    assert listed(cli, "--search", "docs.example") == ["/cs/prehled", "/empty", "/install"]
    assert listed(cli, "--search", "nowhere") == []


def test_a_search_without_result_says_how_many_pages_there_are(cli, filled):
    """No empty table."""
    assert cli("pages", "--search", "nowhere").ok.startswith("0 of 3 pages, 0 of 3 chunks (generation ")


def test_one_page_is_shown_with_its_chunks(cli, filled):
    """Its record, then each chunk with heading path, anchor, length and first words. A link from an answer works too."""
    shown = yaml.safe_load(cli("pages", "--url", f"{SITE}/install#part-1").ok)
    assert (shown["url"], shown["language"], shown["etag"]) == (f"{SITE}/install", "en", '"e1"')
    first, second = shown["chunks"]
    assert first["begins"].startswith("To install the client, download")
    assert (first["characters"], second["sections"][0]["anchor"]) == (len(LONG), "part-1")
    assert "unpack it, then put the program on your path." not in first["begins"]


def test_full_shows_the_whole_text(cli, filled):
    """Word for word, as text and as JSON."""
    assert yaml.safe_load(cli("pages", "--url", f"{SITE}/install", "--full").ok)["chunks"][0]["text"] == LONG
    page = json.loads(cli("pages", "--url", f"{SITE}/install", "--full", "--json").ok)
    assert [chunk["text"] for chunk in page["chunks"]] == [LONG, "Second part."]
    assert page["markdown"] == f"{LONG}\n\nSecond part."


def test_one_page_as_json_has_its_record_and_chunks(cli, filled):
    """Without --full, there is no text."""
    page = json.loads(cli("pages", "--url", f"{SITE}/install", "--json").ok)
    assert "markdown" not in page
    assert (page["title"], page["etag"], page["status"]) == ("Install the client", '"e1"', 200)
    second = page["chunks"][1]
    assert second.pop("id")
    assert second == {
        "link": f"{SITE}/install#part-1",
        "language": "en",
        "sections": [{"offset": 0, "path": ["Install the client", "Part 1"], "anchor": "part-1"}],
        "characters": 12,
        "begins": "Second part.",
    }


def test_an_unknown_address_names_the_nearest(cli, filled):
    """Exit code 1, and the right page comes first."""
    done = cli("pages", "--url", f"{SITE}/installs/")
    first, nearest_one, *_ = done.err.splitlines()
    assert first == f"docs-assistant: {SITE}/installs/ is not indexed. The nearest are:"
    assert nearest_one == f"  {SITE}/install"
    assert (done.code, done.out) == (1, "")


def test_options_that_do_not_fit_are_refused(cli, filled):
    """A whole text without --url, and a list and a page at once."""
    for options, code, words in ((("--full",), 1, "--url"), (("--search", "a", "--url", "b"), 2, "not allowed with")):
        done = cli("pages", *options)
        assert (done.code, words in done.err) == (code, True)


def test_stale_pages_can_be_listed_alone(cli, filled):
    """Pages whose older state is kept; with --search, those of them that match."""
    assert listed(cli, "--stale") == ["/cs/prehled"]
    assert listed(cli, "--stale", "--search", "client") == []
    assert cli("pages", "--stale", "--url", f"{SITE}/install").code == 1

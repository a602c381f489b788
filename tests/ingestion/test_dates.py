"""Dates of pages: the most trustworthy word first, in one form, and nothing that can't be true."""

import datetime as dt

from app.core.types import Page
from ingestion.convert import SourceText, convert
from ingestion.convert.prepare import iso_date, without_build_dates
from ingestion.entry import Entry
from ingestion.sources import Source
from tests.ingestion.index import Index
from tests.ingestion.local_site import LocalSite

NOW = dt.datetime.now(dt.UTC)


DATES = [
    ("2024-05-06", "2024-05-06"),
    ("2024-05-06T07:08:09Z", "2024-05-06T07:08:09+00:00"),
    ("2024-05-06T01:00:00+02:00", "2024-05-05T23:00:00+00:00"),
    ("2024-05-06 07:08", "2024-05-06T07:08:00+00:00"),
    (" Mon, 06 May 2024 07:08:09 GMT ", "2024-05-06T07:08:09+00:00"),
    ("1970-01-01", ""),
    ("1970-01-01T00:00:00Z", ""),
    ("0001-01-01T00:00:00+14:00", ""),
    ("2024-13-40", ""),
    ("yesterday", ""),
    ("", ""),
    ((NOW + dt.timedelta(days=3)).date().isoformat(), ""),
    ("9999-12-31T23:59:59-12:00", ""),
    ("+999999999999999", ""),
    ("Mon, 06 May 99999999999 07:08:09 GMT", ""),
    ("9" * 5000, ""),
]


def test_dates_have_one_form() -> None:
    """A day stays a day, a time becomes UTC; what is no date, in the future or before the web is dropped."""
    assert [(written, iso_date(written)) for written, _ in DATES] == DATES


def html(head: str = "", body: str = "") -> tuple[str, str]:
    text = (
        f"<html><head>{head}</head><body><main><h1>A</h1><p>Text of it.</p></main><footer>{body}</footer></body></html>"
    )
    made = convert(SourceText("https://docs.example.org/a", text))
    return made.published, made.modified


META = {
    '<meta property="article:published_time" content="2024-01-02">': ("2024-01-02", ""),
    '<meta property="article:modified_time" content="2024-01-03">': ("", "2024-01-03"),
    '<meta property="og:updated_time" content="2024-01-03">': ("", "2024-01-03"),
    '<meta itemprop="dateModified" content="2024-01-03">': ("", "2024-01-03"),
    '<meta name="date" content="2024-01-02">': ("2024-01-02", ""),
}
BOTH = '<script type="application/ld+json">{"datePublished": "2024-01-02", "dateModified":"2024-01-03"}</script>'
TIMES = {
    '<time itemprop="dateModified" datetime="2024-01-03">then</time>': ("", "2024-01-03"),
    '<p>Last updated: <time datetime="2024-01-03">3 January</time></p>': ("", "2024-01-03"),
    '<p>Naposledy upraveno <b><time datetime="2024-01-03">3. 1.</time></b></p>': ("", "2024-01-03"),
    '<div class="VPLastUpdated"><time datetime="2024-01-03">x</time></div>': ("", "2024-01-03"),
    '<p>Published <time datetime="2024-01-02">x</time></p>': ("2024-01-02", ""),
    '<p>The outage of <time datetime="2024-01-02">2 January</time> is over.</p>': ("", ""),
    "<p>Last updated: <time>3 January</time></p>": ("", ""),
}


def test_dates_in_html() -> None:
    """Meta tags first, then JSON-LD, then a <time> that says what it is, in the footer too."""
    assert {head: html(head) for head in META} == META
    assert html(BOTH) == ("2024-01-02", "2024-01-03")
    assert {body: html("", body) for body in TIMES} == TIMES
    updated = '<p>Updated <time datetime="2020-01-03">x</time></p>'
    assert html('<meta property="article:modified_time" content="2024-01-03">', updated) == ("", "2024-01-03")


def entries(*lastmods: str, source: str = "https://docs.example.org/sitemap.xml") -> list[Entry]:
    return [Entry(f"{source}/{n}", source, Source(url=source), lastmod) for n, lastmod in enumerate(lastmods)]


def test_one_day_for_all_pages_is_when_the_site_was_built() -> None:
    """It says nothing of any page; sitemaps are judged one by one. Two pages may well be written on one day."""
    for days in (["2024-05-06"] * 2, ["2024-05-06"], ["2024-05-06", "2024-05-06", "2024-05-07"], ["", "", ""]):
        assert [entry.lastmod for entry in without_build_dates(entries(*days))] == days
    built = entries("2024-05-06T10:00:00Z", "2024-05-06T10:00:03Z", "2024-05-06T10:01:00+00:00")
    true = entries("2024-05-06", "2024-05-07", "2023-01-01", source="https://docs.example.org/cs/sitemap.xml")
    assert [entry.lastmod for entry in without_build_dates([*built, *true])] == ["", "", "", *(e.lastmod for e in true)]


async def dated(site: LocalSite, index: Index, lastmods: dict[str, str]) -> dict[str, Page]:
    urls = "".join(f"<url><loc>{site.url}{path}</loc><lastmod>{day}</lastmod></url>" for path, day in lastmods.items())
    site.put("/sitemap.xml", f'<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{urls}</urlset>', "text/xml")
    await index.run(f"{site.url}/sitemap.xml")
    return await index.pages()


async def test_the_order_of_trust(site: LocalSite, index: Index) -> None:
    """Sitemap, front matter or meta tag, Last-Modified; each counts where those before it say nothing; chunks have it."""
    header = {"Last-Modified": "Sat, 04 Jan 2020 00:00:00 GMT"}
    meta = '<meta property="article:modified_time" content="2020-01-03">'
    for path in ("/all", "/wrong"):
        site.put(path, f"<html><head>{meta}</head><main><h1>{path}</h1><p>Text.", headers=header)
    site.put(
        "/front.md", "---\nupdated: 2020-01-02\ndate: 2019-01-01\n---\n# F\n\nText.", "text/markdown", headers=header
    )
    site.put("/header", "<main><h1>H</h1><p>Words.", headers=header)
    site.put("/none", "<main><h1>N</h1><p>Nothing.")
    found = await dated(
        site, index, {"/all": "2020-01-01", "/wrong": "2999-01-01", "/front.md": "", "/header": "", "/none": "2020"}
    )
    assert {path: page.modified for path, page in found.items()} == {
        "/all": "2020-01-01",
        "/wrong": "2020-01-03",
        "/front": "2020-01-02",
        "/header": "2020-01-04T00:00:00+00:00",
        "/none": "",
    }
    assert found["/front"].published == "2019-01-01"
    chunks = await (await index.store.live()).fetch(found["/front"].derived.chunk_ids)
    assert {(chunk.published, chunk.modified) for chunk in chunks} == {("2019-01-01", "2020-01-02")}


async def test_a_build_date_gives_way_to_what_pages_say(site: LocalSite, index: Index) -> None:
    """All pages of the day on which the site was built: their own word counts."""
    for name in "abc":
        site.put(f"/{name}", f"<head><meta name=dateModified content=2020-01-0{ord(name) - 96}></head><main><h1>{name}")
    found = await dated(site, index, dict.fromkeys(("/a", "/b", "/c"), "2024-05-06"))
    assert [page.modified for page in found.values()] == ["2020-01-01", "2020-01-02", "2020-01-03"]

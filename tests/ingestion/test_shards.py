"""A run that several processes share: the index is that of one process, whatever is killed on the way."""

from __future__ import annotations

import asyncio
from argparse import Namespace
from collections.abc import AsyncIterator, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.cli.ingest import shard_of
from app.core.errors import (
    IndexDamaged,
    ModelUnavailable,
    NoIndex,
    SettingsError,
    ShardsDiffer,
    ShardsMissing,
    StoreBusy,
)
from app.core.settings import Settings
from app.index.embedded.store import EmbeddedStore
from app.index.protocols import Store
from ingestion.convert.javascript import NeedsJavaScript
from ingestion.crawl.fetch import Fetcher
from ingestion.entry import Entry
from ingestion.errors import NOINDEX, PageError, PageGone, PageLeftOut, PageSkipped
from ingestion.report import Report
from ingestion.run import ingest
from ingestion.sharding.kept import KeptEmbedder
from ingestion.sharding.reading import FINAL, Failure, Readings, reading_key
from ingestion.sharding.shared import Shard
from ingestion.site_blocks import SAMPLE
from ingestion.sources import Source
from tests.contract.conftest import OPENERS
from tests.fakes import FakeEmbedder
from tests.ingestion.local_site import LocalSite, local_site

PAGES = 60
IN_PROGRESS = 40
SHARDS = 3
WORDS = "Some words about the thing that this page explains, how to install it, and how to use it every day at work."
FOOTER = "<div class=foot><p>Was this page helpful to you and your team today? Tell us on the forum.</p></div>"


def write(site: LocalSite, number: int, text: str = "", head: str = "") -> None:
    """Put a page with a block that all pages repeat."""
    text = text or f"It is number {number}, and its part is called part{number}x."
    body = f"<h1>Page {number}</h1><p>{WORDS} {text}</p><h2 id=more>More of {number}</h2><p>{text} {WORDS}</p>{FOOTER}"
    site.put(f"/p{number}", f"<html lang=en><head><title>Page {number}</title>{head}</head><main>{body}</main></html>")


@pytest.fixture
def docs() -> Iterator[LocalSite]:
    """60 pages: copies of one text, pages with one canonical address, one that is gone, one that asks not to be indexed, translations."""
    with local_site() as site:
        for number in range(PAGES):
            write(site, number)
        for number in (10, 25, 40, 55):  # with the same title, these are copies
            site.answers[f"/p{number}"] = site.answers["/p10"]
        for number, text in ((5, "The one text."), (6, "Another text.")):
            write(site, number, text, f'<link rel=canonical href="{site.url}/named">')
        write(site, 7, head='<meta name=robots content="noindex">')
        del site.answers["/p8"]
        for code, text in (
            ("en", WORDS),
            ("cs", "Několik slov o věci, kterou tato stránka vysvětluje, a jak ji používat."),
        ):
            links = "".join(f'<link rel=alternate hreflang={c} href="{site.url}/{c}/a">' for c in ("en", "cs"))
            site.put(f"/{code}/a", f"<html lang={code}><head>{links}</head><main><h1>A</h1><p>{text}</p></main></html>")
        site.sitemap(*(f"/p{n}" for n in range(PAGES)), "/en/a", "/cs/a")
        yield site


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An OpenSearch index."""
    async with OPENERS["opensearch"](tmp_path) as opener:
        yield await opener()


async def run(site: LocalSite, store: Store, shard: Shard | None = None, **options: Any) -> Report:
    """A run, or a part of one."""
    others = options.pop("settings", {})
    settings = Settings.load(None, crawl_timeout=5, crawl_parallel=16, embedding_batch=8, **others)
    embedder = options.pop("embedder", None) or FakeEmbedder()
    source = options.pop("source", None) or Source(url=f"{site.url}/sitemap.xml", markdown="off")
    async with Fetcher(settings, retry_wait=0.001) as fetcher:
        return await ingest(
            [source], store=store, embedder=embedder, settings=settings, fetcher=fetcher, shard=shard, **options
        )


async def facts(store: Store) -> list[tuple[object, ...]]:
    """What is the same in two indexes of one site."""
    live = await store.live()
    pages = [
        (p.url, p.hash, p.chunk_ids, p.same_as, p.translation_set, p.language, p.canonical, p.reading, p.etag)
        for p in await live.pages()
    ]
    chunks = await live.chunks_of([url for url, *_ in pages])
    plain = await live.plain_texts([url for url, *_ in pages])
    blocks = [record.repeated for record in live.info.sources]
    return [*pages, (dict(sorted(chunks.items())), dict(sorted(plain.items())), blocks, live.info.chunks)]


def test_a_failure_of_the_page_is_raised_again_as_it_was():
    for error in (PageGone("gone", 410), PageSkipped("a login"), PageLeftOut(NOINDEX), NeedsJavaScript("scripts")):
        again = Failure.of(error).error()
        assert str(again) == str(error)
        assert isinstance(error, type(again))
        assert getattr(again, "status", 0) == getattr(error, "status", 0)
    assert not isinstance(PageError("no answer"), FINAL)


def test_the_shards_have_each_page_once_and_all_forms_of_its_address_together():
    source = Source(url="https://docs.example.org/sitemap.xml")
    pages = [Entry(f"https://docs.example.org/p{number}.html", source.url, source) for number in range(400)]
    shards = [Shard("a", 4, number) for number in range(1, 5)]
    parts = [[one.url for one in pages if shard.has(one)] for shard in shards]
    assert sorted(url for part in parts for url in part) == sorted(one.url for one in pages)
    assert all(60 < len(part) < 140 for part in parts)
    for one in pages:
        form = replace(one, url=one.url.removesuffix(".html") + "/index.md")
        assert [shard.has(form) for shard in shards] == [shard.has(one) for shard in shards]


@pytest.mark.opensearch
@pytest.mark.server
class TestShards:
    async def test_what_cant_be_read_of_a_shard_is_a_named_error(self, store):
        source = Source(url="https://docs.example.org/sitemap.xml")
        entry = Entry("https://docs.example.org/p", source.url, source)
        parts = store.parts("damaged")
        await parts.open()
        readings = Readings(parts, writes=True)
        readings.begin(entry, ("", ""))
        readings.note(entry.url, failure=Failure.of(PageGone("gone", 404)))
        await readings.done(entry)
        assert (await Readings(parts, writes=False).of(entry)).failure == Failure("PageGone", "gone", 404)
        await parts.keep(reading_key(entry.url), {"document": "no document"})
        with pytest.raises(IndexDamaged, match="another --draft"):
            await Readings(parts, writes=False).of(entry)
        embedder = KeptEmbedder(FakeEmbedder(), parts)
        await embedder.embed_passages(["a text"])
        await parts.keep(embedder._key("a text"), {"vector": "cos\nsystem"})
        with pytest.raises(IndexDamaged, match="another --draft"):
            await embedder.embed_passages(["a text"])

    @pytest.mark.slow
    async def test_shards_make_the_index_of_one_process_and_a_killed_one_is_run_again(self, docs, store, tmp_path):
        one = EmbeddedStore(tmp_path / "one", keep=2)
        await run(docs, one)
        expected = await facts(one)
        assert any(same_as for *_, same_as, _, _, _, _, _ in expected[:-1])

        docs.log.clear()
        killed = FakeEmbedder(failing_from=1, error=ModelUnavailable("the shard dies"))
        await run(docs, store, Shard("night-1", SHARDS, 1))
        with pytest.raises(ModelUnavailable):
            await run(docs, store, Shard("night-1", SHARDS, 2), embedder=killed)
        with pytest.raises(ShardsMissing, match=r"2/3, 3/3.*--draft night-1 --shard 2/3"):
            await run(docs, store, Shard("night-1", SHARDS))
        with pytest.raises(ShardsDiffer, match="shards: 3, here 4"):
            await run(docs, store, Shard("night-1", 4, 4))
        with pytest.raises(ShardsDiffer, match=r"anchors: auto, here github\)"):
            await run(docs, store, Shard("night-1", SHARDS, 3), settings={"anchors": "github"})
        with pytest.raises(ShardsDiffer, match=r"replace: false, here true\)"):
            await run(docs, store, Shard("night-1", SHARDS, 3), replace=True)
        with pytest.raises(NoIndex):
            await store.live()

        assert "these aren't: 2" in (await run(docs, store, Shard("night-1", SHARDS, 3))).state
        again = FakeEmbedder()
        report = await run(docs, store, Shard("night-1", SHARDS, 2), embedder=again)
        assert not set(again.texts) & set(killed.texts)
        assert report.published is not None
        assert report.exit_code == 0
        assert await facts(store) == expected
        # each page once, and those of the sample that is compared; a few were being read when the shard died
        assert len(docs.log) < len(docs.answers) + SAMPLE + IN_PROGRESS + 2 * (SHARDS + 1)

        docs.log.clear()
        late = await run(docs, store, Shard("night-1", SHARDS, 3))
        assert (late.state, docs.log) == ("The draft night-1 is published.", [])

        # the next night: pages that didn't change are asked for conditionally, each by one shard, and stay as they are
        write(docs, 12, "A new sentence.")
        write(docs, 40)
        del docs.answers["/p30"]
        await run(docs, one)
        docs.log.clear()
        for number in range(1, SHARDS + 1):
            report = await run(docs, store, Shard("night-2", SHARDS, number))
        assert report.counts["removed"] == 1
        assert await facts(store) == await facts(one)
        assert len(docs.log) <= len(docs.answers) + SAMPLE + 2 * (SHARDS + 1)
        assert set(docs.statuses("/p20")) == {304}
        await one.close()

    @pytest.mark.slow
    async def test_the_draft_of_a_killed_finisher_is_published_once(self, docs, store):
        draft = store.parts("night-1")
        await draft.open()
        await draft.first("finishing", {"by": 2})
        await run(docs, store, Shard("night-1", 2, 1))
        await draft.keep("shard-2", {"warnings": [], "calls": 0, "texts": 0})  # what it has not kept is read at the end
        assert "one of them publishes" in (await run(docs, store, Shard("night-1", 2, 1))).state
        ends = await asyncio.gather(*(run(docs, store, Shard("night-1", 2)) for _ in range(2)), return_exceptions=True)
        assert sum(isinstance(end, Report) and end.published is not None for end in ends) == 1
        (refused,) = [end for end in ends if not (isinstance(end, Report) and end.published is not None)]
        assert isinstance(refused, StoreBusy | ShardsMissing), refused
        assert len(await store.generations()) == 1

    async def test_parts_of_forgotten_drafts_are_deleted_and_no_index_of_another_store(self, store, monkeypatch):
        monkeypatch.setattr("app.index.opensearch.parts.FORGOTTEN", -60)
        name, connection = store.parts("a")._name, store._connection
        for draft in ("forgotten", "night-1"):
            await store.parts(draft).open()
        for other in ("parts-1", "meta"):
            await connection.call("PUT", f"/{name}-{other}", {"settings": {"number_of_replicas": 0}})
        await store.parts("night-1").publish()
        assert list(await connection.call("GET", f"/{name}-parts-*")) == [f"{name}-parts-1"]

    async def test_what_cant_be_divided_is_an_error(self, docs, store, tmp_path):
        one = EmbeddedStore(tmp_path / "one", keep=2)
        with pytest.raises(SettingsError, match="several machines"):
            await run(docs, one, Shard("a", 2, 1))
        with pytest.raises(SettingsError, match="dry run"):
            await run(docs, store, Shard("a", 2, 1), dry_run=True)
        with pytest.raises(SettingsError, match="following links"):
            await run(docs, store, Shard("a", 2, 1), source=Source(url=f"{docs.url}/p1", follow=True))
        for wrong in (("A b", 2, 1), ("a", 2, 3), ("a", 0, 0), ("a", 10_000, 1)):
            with pytest.raises(SettingsError):
                Shard(*wrong)
        for options in ({"draft": "a"}, {"shard": "1/2"}, {"draft": "a", "shard": "2"}, {"draft": "a", "shard": "0/2"}):
            with pytest.raises(SettingsError, match="--shard"):
                shard_of(Namespace(**{"draft": None, "shard": None, "finish": None, **options}))
        assert shard_of(Namespace(draft="a", shard=None, finish=4)) == Shard("a", 4)
        await one.close()

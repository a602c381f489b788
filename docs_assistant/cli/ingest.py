"""`docs-assistant ingest`: indexes sites into the store. Also which sites `run` reads, and what becomes of the others."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from app.core import logs
from app.core.errors import IndexDamaged, NoIndex, NotPublished, SettingsError, StoreError, StoreUnavailable
from app.core.log_message import masked
from app.core.settings import Settings
from docs_assistant.cli import tracing
from docs_assistant.cli.shared import index_option, json_text, opened_store, print_error, settings_of, site_argument

if TYPE_CHECKING:
    from app.core.generation import SourceRecord
    from app.index.kept_sites import KeptSites
    from app.models import Embedder
    from ingestion.options import RunOptions
    from ingestion.report import Report
    from ingestion.sources import Source
    from ingestion.split.embedding import ResumingEmbedder

LOCAL = "an index on a server may not choose files, readers and keys of this machine"
BACK = "`docs-assistant rollback` brings them back."
OTHER_EMBEDDER = (
    "They were indexed with the embedder {embedder}, and another one is set: to bring them back, set that embedder again, "
    "then `docs-assistant rollback`."
)
DAMAGED = "The index is damaged and is built anew, so they can't be brought back."
NO_BACK = "DOCS_GENERATIONS=1 keeps no earlier state, so they can't be brought back."


@click.command(
    epilog="Exit codes: 0 all pages are indexed; 2 published, but some pages or sites failed; 3 not published, because too"
    " much of a site was missing, failed or empty (--force publishes it); 1 not published, because of an error."
)
@site_argument
@click.option("--only", is_flag=True, help="remove the pages of all other sites from the index")
@click.option("--force", is_flag=True, help="publish even if too much of a site is missing")
@click.option(
    "--collection", multiple=True, metavar="NAME", help="index only the sources of this collection (can be repeated)"
)
@click.option(
    "--known",
    multiple=True,
    metavar="URL",
    help="read only this site of those of the settings, of the index or added in /admin (can be repeated)",
)
@click.option("--added", metavar="JSON", hidden=True, help="a site as /admin adds it, to --list what it would fetch")
@click.option(
    "--remove",
    multiple=True,
    metavar="URL",
    help="remove this site of the index with its pages, also of those added in /admin (can be repeated)",
)
@click.option("--list", "lists", is_flag=True, help="fetch no page, only list which would be fetched or left out")
@click.option("--dry-run", is_flag=True, help="write nothing, only report what would change")
@click.option("--rebuild", is_flag=True, help="build a new index, even if the existing one can't be read")
@click.option(
    "--trigger",
    default="command",
    metavar="WORD",
    help="what starts it, for the list of runs: nightly, deploy (default: command)",
)
@click.option("--wait", type=float, default=0.0, metavar="SECONDS", help="how long to wait for another run to finish")
@index_option
@click.option("--json", "as_json", is_flag=True, help="print the report as JSON")
async def ingest(**options: Any) -> int:
    """Indexes sites and publishes the new index in one step; pages of other sites are kept."""
    from app.index.run_history import RunOrigin
    from ingestion.options import RunOptions
    from ingestion.sources import added_site, of_collections

    settings = settings_of(options["index"])
    logs.configure(settings)
    sites = [added_site(json.loads(options["added"]))] if options["added"] else await _chosen(settings, options)
    if options["collection"]:
        sites = of_collections(sites, options["collection"], settings)
    if options["lists"]:
        return await _list(sites, settings, as_json=options["as_json"])
    named = {name: options[name] for name in ("only", "force", "dry_run", "rebuild", "wait")}
    origin = RunOrigin.of_process(options["trigger"])
    run_options = RunOptions(removed=options["remove"], origin=origin, **named)
    try:
        # a reader may print, and the output is the report
        with redirect_stdout(sys.stderr), tracing.tracing():
            report = await index(settings, sites, run_options)
    except NotPublished as error:
        print_error(error)
        report = cast("Report", error.report)
    if options["remove"] and report.published:
        await _forget(settings, options["remove"])
    print(report.to_json() if options["as_json"] else report.text)
    return report.exit_code


async def _chosen(settings: Settings, options: Mapping[str, Any]) -> Sequence[Source]:
    """The sites of the command line; without any those of the settings, else of the index, and the added ones, but no
    paused ones.

    Raises `SettingsError` if there are none.
    """
    from ingestion.sources import added_sites, as_sources, configured

    if options["site"]:
        return as_sources(options["site"])
    kept, known = await kept_sites(settings), options["known"]
    fixed = as_sources(site for site in configured(settings) if not known or masked(site) in known)
    if options["only"] and not (fixed or kept.added):  # of the recorded sites, some may not be read again
        raise SettingsError("--only needs the sites that stay: name them, or set DOCS_SITES.")
    if options["remove"]:
        await _check_removed(settings, kept, fixed, options["remove"])
        return ()
    others = [url for url in known if url not in {*map(masked, configured(settings)), *kept.added}]
    held = await indexed(settings) if others or not (fixed or known) else Indexed()
    recorded, lines = again((held.only(others) if others else held).without(kept), settings)
    lines += paused_line(kept)
    print(*lines, sep="\n", end="\n" if lines else "", file=sys.stderr)
    fixed = tuple(source for source in fixed if source.without_login().url not in kept.paused)
    names = {source.without_login().url for source in fixed}
    added = [site for site in added_sites(kept) if site.url not in names and (not known or site.url in known)]
    if sites := (*fixed, *recorded, *added):
        return sites
    raise SettingsError(
        "No site to index: name a sitemap, for example docs-assistant ingest https://docs.example.org/sitemap.xml, or set DOCS_SITES or DOCS_SOURCES."
    )


async def _check_removed(settings: Settings, kept: KeptSites, fixed: Iterable[Source], urls: Sequence[str]) -> None:
    """Raises `SettingsError` for a site that can't be removed, because it is configured or isn't there."""
    names = {source.without_login().url for source in fixed}
    if known := [url for url in urls if url in names]:
        raise SettingsError(f"--remove: {', '.join(known)} is configured: take it out of DOCS_SITES or DOCS_SOURCES.")
    (await indexed(settings)).only([url for url in urls if url not in kept.added], "--remove")


def paused_line(kept: KeptSites) -> list[str]:
    """A line about the paused sites; none without any."""
    return [f"Paused in /admin, so neither read nor removed: {', '.join(kept.paused)}"] if kept.paused else []


async def kept_sites(settings: Settings) -> KeptSites:
    """The list of sites that is kept with the index of these settings."""
    from app.index.kept_sites import KeptSites

    async with opened_store(settings) as store:
        return await KeptSites.of(store)


async def keep_begun(settings: Settings, named: Sequence[str]) -> None:
    """Note the sites that a run begins with, without logins; none at its end."""
    from app.index.kept_sites import KeptSites, without_user

    begun = tuple(map(without_user, named))
    async with opened_store(settings) as store:
        if (kept := await KeptSites.of(store)).begun != begun:
            await replace(kept, begun=begun).write(store)


async def _forget(settings: Settings, urls: Sequence[str]) -> None:
    """Take sites whose pages have left the index off the list."""
    from app.index.kept_sites import KeptSites

    async with opened_store(settings) as store:
        kept = await KeptSites.of(store)
        for url in urls:
            kept = kept.without(url)
        await kept.write(store)


async def _list(sites: Sequence[Source], settings: Settings, *, as_json: bool) -> int:
    """Print what a run would fetch and leave out."""
    from ingestion.crawl.listing import preview

    with redirect_stdout(sys.stderr):
        found = await preview(sites, settings)
    skipped = [{"url": masked(one.url), "reason": masked(one.reason)} for one in (*found.failed, *found.skipped)]
    pages = [masked(entry.address) for entry in found.entries]
    if as_json:
        print(json_text({"pages": pages, "left_out": skipped, "notes": found.notes}))
    else:
        print(
            f"{len(pages)} pages would be fetched, {len(skipped)} addresses are left out.",
            *found.notes,
            *pages,
            sep="\n",
        )
        print(*(f"left out: {one['url']}: {one['reason']}" for one in skipped), sep="\n")
    return 0


async def index(settings: Settings, sites: Sequence[str | Source], options: RunOptions | None = None) -> Report:
    """Index the sites, show progress on standard error, and return the report."""
    from app.index import directory_of, open_store
    from app.index.embedded.pointer import FILE
    from app.index.kept_sites import KeptSites
    from app.models import open_embedder
    from ingestion.options import RunOptions
    from ingestion.progress import open_progress
    from ingestion.publish.recipe import live_recipe
    from ingestion.run import ingest as ingest_sites
    from ingestion.sources import as_sources
    from ingestion.workers import start_early

    options = options or RunOptions()
    if (directory := directory_of(settings)) and not (directory / FILE).exists():
        start_early()  # before LanceDB has threads
    store, opened = open_store(settings), open_embedder(settings)
    try:
        if await live_recipe(store) is None:  # a store that is away is an error before any site is read
            start_early()
        resuming = _resuming(opened, settings)
        progress = open_progress(sys.stderr, directory, options.origin.trigger)
        options = replace(options, paused=frozenset((await KeptSites.of(store)).paused))  # whoever starts the run
        report = await ingest_sites(
            sites, store=store, embedder=resuming, settings=settings, progress=progress, options=options
        )
        resuming.finish(report)
        if report.changed and not report.dry_run:
            from ingestion.brand import keep_brand

            await keep_brand(store, settings, as_sources(sites))
        return report
    finally:
        await store.close()
        await opened.close()


def _resuming(embedder: Embedder, settings: Settings) -> ResumingEmbedder:
    """The embedder that keeps its vectors in the directory of the index, or in `data` if that is elsewhere."""
    from app.index import directory_of
    from app.index.vector_cache import VectorCache
    from ingestion.split.embedding import ResumingEmbedder

    options = settings.tuning.embedding_max_chars, settings.tuning.embedding_extra_body, settings.embedding_args
    return ResumingEmbedder(embedder, VectorCache(directory_of(settings) or Path("data"), embedder.name, *options))


@dataclass(frozen=True, slots=True)
class Indexed:
    """The sources of the live index, and how many pages each collection has of each root.

    Of an index with a `damage`, at most the sources are known.
    """

    records: tuple[SourceRecord, ...] = ()
    pages: Mapping[tuple[str, str], int] = field(default_factory=dict)
    damage: str = ""
    embedder: str = ""

    def beside(self, sources: Iterable[Source], settings: Settings) -> Indexed:
        """Returns what the index holds beside these sources."""
        named = {(source.collection or settings.tuning.collection, source.without_login().url) for source in sources}
        places = (
            (record, {(record.collection, url) for url in (record.url, *record.roots)}) for record in self.records
        )
        return replace(self, records=tuple(record for record, those in places if named.isdisjoint(those)))

    def only(self, urls: Sequence[str], option: str = "--known") -> Indexed:
        """The sources with these addresses. Raises `SettingsError` for an address that none has."""
        known = dict.fromkeys(record.url for record in self.records)
        if unknown := [url for url in urls if url not in known]:
            raise SettingsError(
                f"{option}: {', '.join(unknown)} isn't in the index. It has: {', '.join(known) or 'none'}."
            )
        return replace(self, records=tuple(record for record in self.records if record.url in urls))

    def without(self, kept: KeptSites) -> Indexed:
        """The sources that aren't on the list of sites: that says how the added ones are read, and which are paused."""
        listed = {**kept.added, **kept.paused}
        return replace(self, records=tuple(record for record in self.records if record.url not in listed))

    def listed(self, records: Iterable[SourceRecord]) -> str:
        """Returns the addresses of the records, each with the number of its pages."""
        return ", ".join(map(self._with_pages, records))

    def _with_pages(self, record: SourceRecord) -> str:
        named = (record.options.get(key) for key in ("directory", "git"))
        where = str(next(filter(None, named), record.url))
        count = sum(self.pages.get((record.collection, root), 0) for root in record.roots)
        return where if self.damage else f"{where} ({count} {'page' if count == 1 else 'pages'})"


async def indexed(settings: Settings) -> Indexed:
    """Returns the contents of the index of these settings; nothing if there is none. Raises `StoreUnavailable`."""
    from ingestion.publish.recipe import recorded_of_damaged

    async with opened_store(settings) as store:
        try:
            live = await store.live()
            pages = await live.pages()
        except NoIndex:
            return Indexed()
        except StoreUnavailable:
            raise
        except StoreError as error:
            return Indexed(await recorded_of_damaged(store), damage=str(error))
    counts = Counter((page.collection, page.fetch.source) for page in pages)
    return Indexed(live.info.sources, counts, embedder=live.info.recipe.embedder)


def again(held: Indexed, settings: Settings) -> tuple[tuple[Source, ...], list[str]]:
    """The sources of the index to read again, and lines about them.

    Raises `IndexDamaged` if they are unknown, and `SettingsError` if a reader's class is gone.
    """
    from app.index import directory_of
    from ingestion.publish.recorded import sources_of, uses_this_machine

    if held.damage and not held.records:
        raise IndexDamaged(
            f"{held.damage} The sites that it held are unknown. Name them to build it again: "
            "docs-assistant ingest https://docs.example.org/sitemap.xml"
        )
    is_shared = directory_of(settings) is None
    read: list[SourceRecord] = []
    lines: list[str] = []
    for record in held.records:
        local = is_shared and uses_this_machine(record)
        if why := record.unreadable or (LOCAL if local else ""):
            lines.append(
                f"Not read again: {held.listed([record])}, because {why}. Its pages stay; to read it, name it."
            )
        else:
            read.append(record)
    if read:
        lines.insert(0, f"Reading the indexed sites again: {held.listed(read)}")
    return sources_of(read), lines


async def plan(
    settings: Settings, named: Sequence[str], own: str, *, replaces: bool
) -> tuple[tuple[Source, ...], list[str]]:
    """The sources that `run` reads, and lines about what becomes of others.

    Without `named` sites, they are those of the index; without an index, those of a run that was killed, else the `own`
    documentation, by its address.
    """
    from ingestion.sources import OwnDocumentation, added_sites, as_sources, configured

    held, kept = await indexed(settings), await kept_sites(settings)
    added = added_sites(kept)
    if not named and not added and not held.damage and all(record.demo for record in held.records):
        going_on = [f"Going on with the sites of the run that was killed: {', '.join(kept.begun)}"]
        return as_sources(kept.begun or [OwnDocumentation(url=own)]), going_on if kept.begun else []
    if not named:
        unlisted = held.without(kept)
        stays = [record for record in unlisted.records if not (added and record.demo)]
        recorded, lines = again(replace(unlisted, records=tuple(stays)), settings)
        return (*recorded, *added), lines
    sources = as_sources(named)
    if tuple(named) == tuple(configured(settings)):  # nobody names them now
        sources = tuple(source for source in sources if source.without_login().url not in kept.paused)
        names = {source.without_login().url for source in sources}
        sources += tuple(site for site in added if site.url not in names)
    others = held.beside(sources, settings)
    demo = [record for record in others.records if record.demo]
    gone = f"Removing from the index: {held.listed(demo)}, our own documentation, which was there for a first try."
    lines = [*([gone] if demo else []), *paused_line(kept)]
    records = tuple(one for one in others.records if not one.demo and one.url not in kept.paused)
    others = replace(others, records=records)
    if not others.records:
        return sources, lines
    if replaces:
        back = await _way_back(held, settings)
        return sources, [*lines, f"Removing from the index (--replace): {others.listed(others.records)}. {back}"]
    if held.damage:
        rest, more = again(others, settings)
        return (*rest, *sources), [*lines, *more]
    return sources, [
        *lines,
        f"Staying in the index: {others.listed(others.records)}. To keep only the sites that you name, use --replace (make run REPLACE=1).",
    ]


async def _way_back(held: Indexed, settings: Settings) -> str:
    """Says how removed pages come back: an embedder that is set now may not be that of their generation."""
    from app.models import open_embedder

    if settings.generations == 1:
        return NO_BACK
    if held.damage:
        return DAMAGED
    embedder = open_embedder(settings)
    try:
        used = embedder.name
    finally:
        await embedder.close()
    return BACK if used == held.embedder else OTHER_EMBEDDER.format(embedder=held.embedder)

"""Which sites a command reads, and what becomes of the others that the index holds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from app.cli.options import opened_store
from app.core.errors import IndexDamaged, NoIndex, SettingsError, StoreError, StoreUnavailable

if TYPE_CHECKING:
    from app.core.generation import SourceRecord
    from app.core.settings import Settings
    from ingestion.sources import Source

LOCAL = "an index on a server may not choose files, readers and keys of this machine"
BACK = "`docs-assistant rollback` brings them back."
NO_BACK = "DOCS_GENERATIONS=1 keeps no earlier state, so they can't be brought back."


@dataclass(frozen=True, slots=True)
class Indexed:
    """The sources of the live index, and how many pages each collection has of each root.

    Of an index with a `damage`, at most the sources are known.
    """

    records: tuple[SourceRecord, ...] = ()
    pages: Mapping[tuple[str, str], int] = field(default_factory=dict)
    damage: str = ""

    def beside(self, sources: Iterable[Source], settings: Settings) -> Indexed:
        """What the index holds beside these sources."""
        named = {(source.within(settings).collection, source.without_login().url) for source in sources}
        left = [one for one in self.records if named.isdisjoint((one.collection, url) for url in (one.url, *one.roots))]
        return replace(self, records=tuple(left))

    def only(self, urls: Sequence[str]) -> Indexed:
        """The sources with these addresses. Raises `SettingsError` for an address that none has."""
        known = dict.fromkeys(one.url for one in self.records)
        if unknown := [url for url in urls if url not in known]:
            raise SettingsError(
                f"--indexed: {', '.join(unknown)} isn't in the index. It has: {', '.join(known) or 'none'}."
            )
        return replace(self, records=tuple(one for one in self.records if one.url in urls))

    def listed(self, records: Iterable[SourceRecord]) -> str:
        """Their addresses, each with the number of its pages."""
        return ", ".join(self._with_pages(one) for one in records)

    def _with_pages(self, record: SourceRecord) -> str:
        named = (record.options.get(key) for key in ("directory", "git", "archive"))
        where = str(next(filter(None, named), record.url))
        count = sum(self.pages.get((record.collection, root), 0) for root in record.roots)
        return where if self.damage else f"{where} ({count} {'page' if count == 1 else 'pages'})"


async def indexed(settings: Settings) -> Indexed:
    """What the index of these settings holds; nothing if there is none. Raises `StoreUnavailable`."""
    from ingestion.recorded import recorded, recorded_of_damaged

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
    return Indexed(recorded(live.info, pages), Counter((page.collection, page.source) for page in pages))


def again(found: Indexed, settings: Settings) -> tuple[tuple[Source, ...], list[str]]:
    """The sources of the index to read again, and lines about them.

    Raises `IndexDamaged` if they are unknown, and `SettingsError` if a reader's class is gone.
    """
    from app.index import directory_of
    from ingestion.recorded import sources_of, uses_this_machine

    if found.damage and not found.records:
        raise IndexDamaged(
            f"{found.damage} The sites that it held are unknown. Name them to build it again: "
            "docs-assistant ingest https://docs.example.org/sitemap.xml"
        )
    is_shared = directory_of(settings) is None
    read: list[SourceRecord] = []
    lines: list[str] = []
    for one in found.records:
        local = is_shared and uses_this_machine(one)
        if why := one.unreadable or (LOCAL if local else ""):
            lines.append(f"Not read again: {found.listed([one])}, because {why}. Its pages stay; to read it, name it.")
        else:
            read.append(one)
    if read:
        lines.insert(0, f"Reading the indexed sites again: {found.listed(read)}")
    return sources_of(read), lines


async def plan(
    settings: Settings, named: Sequence[str], own: str, *, replaces: bool
) -> tuple[tuple[Source, ...], list[str]]:
    """The sources that `run` reads, and lines about what becomes of others.

    Without `named` sites, they are those of the index; without an index, the `own` documentation, by its address.
    """
    from ingestion.sources import OwnDocumentation, as_sources

    found = await indexed(settings)
    if not named and not found.damage and all(one.demo for one in found.records):
        return (OwnDocumentation(url=own),), []
    if not named:
        return again(found, settings)
    sources = as_sources(named)
    others = found.beside(sources, settings)
    demo = [one for one in others.records if one.demo]
    lines = (
        [f"Removing from the index: {found.listed(demo)}, our own documentation, which was there for a first try."]
        if demo
        else []
    )
    others = replace(others, records=tuple(one for one in others.records if not one.demo))
    if not others.records:
        return sources, lines
    if replaces:
        back = NO_BACK if settings.generations == 1 else BACK
        return sources, [*lines, f"Removing from the index (--replace): {others.listed(others.records)}. {back}"]
    if found.damage:
        rest, more = again(others, settings)
        return (*rest, *sources), [*lines, *more]
    return sources, [
        *lines,
        f"Staying in the index: {others.listed(others.records)}. To keep only the sites that you name, use --replace (make run REPLACE=1).",
    ]

"""The sites that a run over HTTP may read: those that are configured, and those recorded with the live index.

Nothing else is ever fetched, even with an admin key.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from app.api.service import Service
from app.core.errors import NoIndex, RequestError, quoted
from app.core.generation import SourceRecord
from app.core.masking import masked
from app.core.settings import Settings


@dataclass(frozen=True, slots=True)
class ChosenSites:
    """What a run reads: addresses as in DOCS_SITES, the file of sources, and addresses recorded with the index."""

    addresses: tuple[str, ...] = ()
    file: str = ""
    indexed: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them, with passwords masked."""
        return tuple(map(masked, (*self.addresses, *filter(None, (self.file,)), *self.indexed)))

    @property
    def environment(self) -> Mapping[str, str]:
        """The environment variables that pass the configured ones to the command."""
        return {"DOCS_SITES": " ".join(self.addresses), "DOCS_SOURCES": self.file}

    @property
    def options(self) -> list[str]:
        """The options of the command for the recorded ones."""
        return [f"--indexed={url}" for url in self.indexed]


async def chosen_sites(service: Service, wanted: Sequence[str] | None) -> ChosenSites:
    """The wanted sites; by default all configured ones, else all recorded ones. Raises `RequestError` for others."""
    settings = service.settings
    known = configured(settings)
    if wanted is None and known:
        return ChosenSites(settings.sites, settings.sources)
    names = {masked(site) for site in wanted or ()}
    indexed = () if wanted and names <= set(map(masked, known)) else await _recorded(service)
    if not known and not indexed:
        raise RequestError(
            "No site is configured to be indexed: set DOCS_SITES or DOCS_SOURCES. The index has no site to read again, either.",
            code="no_sites",
        )
    readable = [one.url for one in indexed if not one.unreadable]
    if wanted is None:
        return ChosenSites(indexed=tuple(readable))
    _check(wanted, (*known, *readable))
    chosen = {masked(site) for site in known} & names
    return ChosenSites(
        tuple(site for site in settings.sites if masked(site) in chosen),
        settings.sources if masked(settings.sources) in chosen else "",
        tuple(url for url in readable if url in names - chosen),
    )


def configured(settings: Settings) -> tuple[str, ...]:
    """The sites of DOCS_SITES and the file of DOCS_SOURCES."""
    return (*settings.sites, *filter(None, (settings.sources,)))


def beside(settings: Settings, records: Iterable[SourceRecord]) -> list[str]:
    """The addresses of the recorded sources that can be read again and aren't configured."""
    known = {_without_user(site) for site in settings.sites}
    return [one.url for one in records if not one.unreadable and known.isdisjoint((one.url, *one.roots))]


def _check(wanted: Sequence[str], known: Sequence[str]) -> None:
    shown = list(map(masked, known))
    for i, site in enumerate(wanted):
        if masked(site) not in shown:
            raise RequestError(
                f"sites[{i}]: {quoted(masked(site))} is neither configured nor in the index. Write it as DOCS_SITES, DOCS_SOURCES or "
                f"the index have it: {', '.join(shown)}.",
                param=f"sites[{i}]",
            )


async def _recorded(service: Service) -> tuple[SourceRecord, ...]:
    """The sources of the index that runs write to."""
    used = service.assistants.used()
    if "" not in used:
        return ()
    try:
        return (await used[""][0].live()).info.sources
    except NoIndex:
        return ()


def _without_user(site: str) -> str:
    """The address without user name and password, as records have it."""
    parts = urlsplit(site)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()

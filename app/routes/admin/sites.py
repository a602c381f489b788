"""GET and POST /v1/admin/sites: the sites of the index; adds, pauses and removes them, and shows what one would fetch."""

import asyncio
import json
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urljoin, urlsplit

from pydantic import AfterValidator, Field
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import TypedDict

from app.conversations.question_log import iso
from app.core.errors import NoIndex, RequestError, quoted
from app.core.generation import SourceRecord
from app.core.settings import Settings
from app.http.bodies import ExactModel, Name, Place, Places, unstored
from app.index.kept_sites import KeptSite, KeptSites, without_user
from app.index.protocols import Store
from app.index.run_history import RunHistory, readable_runs_of
from app.routes.admin.queries import chosen_index
from app.routes.answer_models import IngestRun
from app.routes.runs import Runs, chosen_sites, operator_of, recorded_sites, run_object
from app.routes.service import Service

Origin = Literal["settings", "file", "added", "index"]


def _site_address(url: str) -> str:
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        raise ValueError("write a web address without a login, as https://docs.example.org/sitemap.xml")
    return url


class SiteRequest(ExactModel):
    """A site to add, or to look at. Secrets, directories and readers are for the settings only."""

    url: Annotated[Place, AfterValidator(_site_address)] = Field(description="Address of a sitemap or a site.")
    collection: Name = Field("", description="Collection of its pages; empty for that of the settings.")
    language: Name = Field("", pattern="^([a-z]{2,3})?$", description="Language of pages that don't say theirs.")
    include: Places = Field([], description="Only pages whose path matches one of these patterns, as /guide/*.")
    exclude: Places = Field([], description="No pages whose path matches one of these patterns.")
    follow: bool = Field(default=False, description="Find the pages by their links instead of a sitemap.")

    @property
    def options(self) -> dict[str, Any]:
        """The fields of a source that are set."""
        return self.model_dump(exclude_defaults=True)


class AddRequest(SiteRequest):
    """A site to add; with `force`, also one that can't be read now."""

    force: bool = Field(default=False, description="Add it although a run couldn't read it now.")

    @property
    def options(self) -> dict[str, Any]:
        """The fields of a source that are set."""
        return self.model_dump(exclude_defaults=True, exclude={"force"})


class RemoveRequest(ExactModel):
    """A site to remove."""

    url: Place = Field(description="Address as in the list.")


class PauseRequest(RemoveRequest):
    """A site to pause, or with `paused: false` to go on with."""

    paused: bool = True


class SiteBody(TypedDict):
    """A site of the index, or one that the next run adds."""

    url: str
    place: Annotated[str, Field(description="Where its pages are read from, if that isn't its address.")]
    origin: Annotated[Origin, Field(description="DOCS_SITES, DOCS_SOURCES, added here, or recorded with the index.")]
    options: Annotated[Mapping[str, Any], Field(description="Its settings that aren't the default, without secrets.")]
    added_at: str
    added_by: str
    paused_at: str
    paused_by: str
    pages: Annotated[int | None, Field(description="Pages in the index; null if it was never read.")]
    failing: Annotated[int, Field(description="Pages that the last run couldn't read, whose earlier text is used.")]
    read_at: Annotated[str, Field(description="When a run last read all of it; empty if that isn't known.")]
    unreadable: Annotated[
        str, Field(description="Why a run can't read it again from the record of the index; else empty.")
    ]
    errors: Annotated[list[str], Field(description="Of the last run, as far as it keeps them.")]


class SiteList(TypedDict):
    """The sites of the index without a name, to which runs write."""

    object: Literal["list"]
    data: list[SiteBody]


class SitePreview(TypedDict):
    """What a run would fetch of a site; no page was fetched for it."""

    object: Literal["site.preview"]
    pages: list[str]
    left_out: Annotated[
        list[Mapping[str, str]], Field(description="Addresses that aren't fetched, each with the reason.")
    ]
    notes: list[str]


class SiteRemoved(TypedDict):
    """A site that leaves the index; `run` is the one that removes its pages, null if it had none."""

    object: Literal["site.removed"]
    url: str
    run: IngestRun | None


@dataclass(frozen=True)
class Sites:
    """The handlers of the routes."""

    service: Service
    runs: Runs
    _changing: asyncio.Lock = field(default_factory=asyncio.Lock)

    def _store(self) -> Store:
        return chosen_index(self.service, "").store  # to which runs write

    async def list_sites(self) -> Response:
        """All sites with their pages and errors."""
        store = self._store()
        records, kept = await recorded_sites(self.service)
        history = await readable_runs_of(store)
        try:
            fetches = [page.fetch for page in await (await store.live()).pages()]
        except NoIndex:
            fetches = []
        pages, failing = (
            Counter(one.source for one in fetches),
            Counter(one.source for one in fetches if one.stale_since),
        )
        data = list[SiteBody]()
        for url, origin, options, record in _known(self.service.settings, records, kept):
            roots = record.roots if record else ()
            read = max((history.sources[root].read for root in roots if root in history.sources), default=0.0)
            added, paused = kept.added.get(url), kept.paused.get(url)
            place = next((str(options[key]) for key in ("directory", "git", "openapi") if options.get(key)), "")
            data.append({
                "url": url, "place": place, "origin": origin, "options": options,
                "added_at": added.at if added else "", "added_by": added.by if added else "",
                "paused_at": paused.at if paused else "", "paused_by": paused.by if paused else "",
                "pages": sum(pages[root] for root in roots) if record else None,
                "failing": sum(failing[root] for root in roots), "read_at": iso(read),
                "unreadable": record.unreadable if record and origin == "index" else "",
                "errors": _errors(history, (url, *roots)),
            })  # fmt: skip
        return unstored(SiteList(object="list", data=data))

    async def add(self, request: Request) -> Response:
        """The list after it; the next run reads the site. One that was added before gets these options. A site that
        can't be read now is refused with the reason, unless the request has `force`.
        """
        by = operator_of(self.service, request)
        wanted = await self.service.read(request, AddRequest)
        if wanted.url in _configured(self.service.settings):
            raise RequestError(
                f"url: {quoted(wanted.url)} is in the settings already.", param="url", code="site_exists"
            )
        if not wanted.force and self.runs.can_start:
            await self._check(wanted)
        async with self._changing:
            kept = await KeptSites.of(self._store())
            site = KeptSite(iso(time.time()), by, wanted.options)
            await replace(kept, added={**kept.added, wanted.url: site}).write(self._store())
        return await self.list_sites()

    async def preview(self, request: Request) -> Response:
        """What a run would fetch of a site that isn't added yet, or of a known one, which is named by its address alone."""
        wanted = await self.service.read(request, SiteRequest)
        records, kept = await recorded_sites(self.service)
        if wanted.options.keys() == {"url"} and wanted.url in kept.added:
            wanted = SiteRequest(**kept.added[wanted.url].options)
        known = {*_configured(self.service.settings), *(one.url for one in records)} - {*kept.added, *kept.paused}
        if wanted.options.keys() == {"url"} and wanted.url in known:
            (site,) = await chosen_sites(self.service, [wanted.url])
            found = await self.runs.listed([f"--known={site}"])
        else:
            found = await self._listed(wanted)
        return unstored({"object": "site.preview", **found})

    async def _listed(self, wanted: SiteRequest) -> Mapping[str, Any]:
        options = {**wanted.options, "max_pages": MOST_FOLLOWED}
        return await self.runs.listed([f"--added={json.dumps(options)}"])

    async def _check(self, wanted: AddRequest) -> None:
        """Raises `RequestError` with the reason why a run would read no page of the site."""
        try:
            found = await self._listed(wanted)
        except RequestError as error:
            reason = str(error)
        else:
            if found["pages"]:
                return
            reason = next((f"{one['url']}: {one['reason']}" for one in found["left_out"]), "It has no page.")
        raise RequestError(
            f"The site wasn't added, because a run would read no page of it. {reason} To add it all the same, send `force`.",
            param="url",
            code="site_unreadable",
        )

    async def pause(self, request: Request) -> Response:
        """The list after it. A paused site is neither read nor removed by runs."""
        by = operator_of(self.service, request)
        wanted = await self.service.read(request, PauseRequest)
        async with self._changing:
            kept = await self._kept_with(wanted.url)
            paused = {url: one for url, one in kept.paused.items() if url != wanted.url}
            paused |= {wanted.url: KeptSite(iso(time.time()), by)} if wanted.paused else {}
            await replace(kept, paused=paused).write(self._store())
        return await self.list_sites()

    async def remove(self, request: Request) -> Response:
        """The run that removes its pages, which takes it off the list at its end; without pages, it is off at once."""
        by = operator_of(self.service, request)
        url = (await self.service.read(request, RemoveRequest)).url
        if url in _configured(self.service.settings):
            raise RequestError(
                f"url: {quoted(url)} is in the settings: take it out of DOCS_SITES or DOCS_SOURCES. To keep it there, pause it.",
                param="url",
                code="site_exists",
            )
        async with self._changing:
            kept = await self._kept_with(url)
            records, _ = await recorded_sites(self.service)
            run = None
            if any(one.url == url for one in records):
                run = run_object(self.runs.start([url], by, [f"--remove={url}"]))
            else:
                await kept.without(url).write(self._store())
        return unstored(SiteRemoved(object="site.removed", url=url, run=run), 202 if run else 200)

    async def _kept_with(self, url: str) -> KeptSites:
        """The list. Raises `RequestError` if no site has this address."""
        records, kept = await recorded_sites(self.service)
        if url not in {one for one, *_ in _known(self.service.settings, records, kept)}:
            raise RequestError(f"url: no site has the address {quoted(url)}.", param="url", code="site_not_found")
        return kept


MOST_FOLLOWED = 200
"""Pages that a preview follows links to, where a site has no sitemap."""


def _known(
    settings: Settings, records: tuple[SourceRecord, ...], kept: KeptSites
) -> Iterator[tuple[str, Origin, Mapping[str, Any], SourceRecord | None]]:
    """All sites: address, origin, options, and the record of the index. Those of the settings come first."""
    by_url = {url: one for one in records for url in (*one.roots, one.url)}
    seen = set[str]()
    for url, origin in _configured(settings).items():
        record = by_url.get(url)
        seen.update((url, record.url) if record else (url,))
        yield url, origin, record.options if record else {}, record
    for url, site in kept.added.items():
        if url not in seen:
            seen.add(url)
            yield url, "added", site.options, by_url.get(url)
    for one in records:
        if one.url not in seen:
            seen.add(one.url)
            yield one.url, "index", one.options, one


def _configured(settings: Settings) -> dict[str, Origin]:
    """The addresses of DOCS_SITES and of the file of DOCS_SOURCES, if it can be read: runs say what is wrong with it."""
    found: dict[str, Origin] = {without_user(site): "settings" for site in settings.sites}
    try:
        tables = tomllib.loads(Path(settings.sources).read_text("utf-8-sig"))["source"] if settings.sources else ()
        return found | {without_user(str(table["url"])): "file" for table in tables}
    except (OSError, ValueError, LookupError, TypeError):
        return found


def _errors(history: RunHistory, urls: tuple[str, ...]) -> list[str]:
    """The errors of the last run that begin with an address of the site."""
    begins = tuple({urljoin(url, ".") for url in urls} | set(urls))
    return [error for run in history.last[:1] for error in run.errors if error.startswith(begins)]

"""GET /v1/admin/index and generations, POST /v1/admin/rollback: the state of the indexes, and the way back."""

import asyncio
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import version
from typing import Annotated

from fastapi import Query
from starlette.requests import Request
from starlette.responses import Response

from app.assistants.file import NamedIndex
from app.assistants.health import IndexState, look_at_servers, part_states, roll_back
from app.conversations.question_log import iso
from app.core.errors import AssistantError, IndexMismatch, NoIndex, RequestError, StoreBusy
from app.core.generation import GenerationInfo, SourceRecord
from app.core.types import Chunk, Page
from app.http.bodies import filled, unstored
from app.index import directory_of
from app.index.kept_sites import KeptSites
from app.index.run_history import EndedRun, RunHistory, run_reading, runs_of
from app.routes.admin import answer_models as bodies
from app.routes.admin.problems import Inspected, problems
from app.routes.admin.queries import IndexQuery, PageAge, PageState, chosen_index
from app.routes.request_models import RollbackRequest
from app.routes.runs import Run, Runs, beside, configured, recorded_sites, run_object
from app.routes.service import Service

AGES: tuple[tuple[PageAge, timedelta], ...] = (
    ("week", timedelta(days=7)),
    ("month", timedelta(days=31)),
    ("quarter", timedelta(days=92)),
    ("year", timedelta(days=366)),
)
FIRST_LINES = 5


def page_row(page: Page, now: datetime) -> bodies.PageRow:
    """The facts about a page."""
    state, age, chunks = state_of(page), age_of(page, now), len(page.derived.chunk_ids)
    return filled(bodies.PageRow, page, page.fetch, state=state, age=age, chunks=chunks)


def state_of(page: Page) -> PageState:
    """Returns the state of the page: whether it could be read, and whether it is searched."""
    if page.fetch.stale_since:
        return "failing"
    if page.derived.same_as:
        return "duplicate"
    return "ok" if page.derived.chunk_ids else "empty"


def age_of(page: Page, now: datetime) -> PageAge:
    """Returns the age of the page since it was changed, else published, as it says itself."""
    try:
        then = datetime.fromisoformat(page.modified or page.published)
    except ValueError:
        return "unknown"
    age = now - (then if then.tzinfo else then.replace(tzinfo=UTC))
    return next((name for name, most in AGES if age <= most), "older")


def chunk_bodies(chunks: Sequence[Chunk], markdown: str) -> list[bodies.ChunkBody]:
    """The chunks of a page in their order."""
    found, after, known = list[bodies.ChunkBody](), 0, frozenset[str]()
    for position, chunk in enumerate(chunks):
        lines = chunk.text.split("\n")
        start = -1 if chunk.translated_from else _start([line for line in lines if line not in known], markdown, after)
        after, known = max(after, start + 1), frozenset(lines)
        found.append(filled(bodies.ChunkBody, chunk, position=position, start=None if start < 0 else start))
    return found


def _start(lines: Sequence[str], markdown: str, after: int) -> int:
    """Returns the start of the first of the first lines in the Markdown from `after` on; -1 if none is there.

    A chunk has no ids of headings, so whole texts differ. The lines are without those of the chunk before: a chunk repeats the
    head of a table that it goes on with.
    """
    written = (line for line in lines[:FIRST_LINES] if line.strip())
    return next((at for line in written if (at := f"\n{markdown}".find(f"\n{line}", after)) >= 0), -1)


@dataclass(frozen=True)
class IndexStates:
    """The handlers of the routes."""

    service: Service
    runs: Runs

    async def state(self) -> Response:
        """All indexes with their sources, runs and problems."""
        assistants = self.service.assistants
        states, _ = await asyncio.gather(assistants.index_states(), look_at_servers(assistants.breakers))
        used = assistants.used()
        inspected = await asyncio.gather(*(_inspected(used[name], state) for name, state in states.items()))
        # runs that are started here write to the index without a name
        inspected = [one if one.name else replace(one, run=self.runs.last) for one in inspected]
        parts = {**part_states(assistants.breakers), **part_states(self.service.breakers, kinds=())}
        found = problems(inspected, parts, assistants, self.service.settings)
        severe = {problem["severity"] for problem in found}
        body = bodies.AdminIndexBody(
            object="admin.index",
            state="broken" if "error" in severe else "attention" if "warning" in severe else "ok",
            problems=found,
            version=version("docs-assistant"),
            model=assistants.model.name if assistants.model else None,
            parts=parts,
            sites=await self._sites(),
            indexes=[_index(one) for one in inspected],
        )
        return unstored(body)

    async def _sites(self) -> bodies.SitesBody:
        """The sites that runs may read; they write to the index without a name."""
        settings, records, kept = self.service.settings, tuple[SourceRecord, ...](), KeptSites()
        with suppress(AssistantError):  # which is among the problems
            records, kept = await recorded_sites(self.service)
        indexed = [url for url in dict.fromkeys((*beside(settings, records), *kept.added)) if url not in kept.paused]
        return {"configured": configured(settings, kept), "indexed": indexed}

    async def generations(self, query: Annotated[IndexQuery, Query()]) -> Response:
        """The kept generations, newest first."""
        index = chosen_index(self.service, query.index)
        live = (await index.store.live()).info.id
        data = [generation_body(info, live=info.id == live) for info in await index.store.generations()]
        return unstored(bodies.GenerationList(object="list", index=index.name, data=data))

    async def list_runs(self, query: Annotated[IndexQuery, Query()]) -> Response:
        """The last runs of an index, and the one under way. Of those of this service, killed ones are listed, too."""
        index = chosen_index(self.service, query.index)
        own = () if index.name else self.runs.all()  # they write to the index without a name
        current = next((run for run in own if not run.finished), None)
        reading = None if current else run_reading(directory_of(index.settings))
        known = {run.id for run in own}
        kept = (await runs_of(index.store)).last
        ended = [(run.began + run.seconds, _ended(run, known)) for run in kept]
        recorded = {run.origin.id for run in kept}
        ended += [(run.ended, _lost(run)) for run in own if run.finished and run.id not in recorded]
        body: bodies.RunList = {
            "object": "list",
            "index": index.name,
            "current": run_object(current) if current else None,
            "reading": filled(bodies.ReadingRun, **reading, began_at=iso(reading["began"])) if reading else None,
            "data": [body for _, body in sorted(ended, key=lambda one: one[0], reverse=True)],
        }
        return unstored(body)

    async def rollback(self, request: Request) -> Response:
        """Make the previous generation live again."""
        wanted = await self.service.read(request, RollbackRequest)
        index = chosen_index(self.service, wanted.index)
        kept = await index.store.generations()
        earlier = kept[1].id if len(kept) > 1 else None
        if earlier is not None and wanted.generation != earlier:
            raise RequestError(
                f"generation: the generation before the live one is {earlier}, not {wanted.generation}. Nothing was changed.",
                param="generation",
                code="rollback_refused",
            )
        try:
            info = await roll_back(index.store, index.embedder)
        except (NoIndex, IndexMismatch) as error:
            raise RequestError(str(error), code="rollback_refused") from error
        except StoreBusy as error:
            raise RequestError(f"A run is writing to the index: {error}", code="run_under_way") from error
        live = generation_body(info, live=True)
        return unstored(bodies.RollbackBody(object="rollback", index=index.name, live=live, dropped=kept[0].id))


def _ended(run: EndedRun, known: Collection[str]) -> bodies.EndedRunBody:
    origin, id_ = run.origin, run.origin.id if run.origin.id in known else ""
    return filled(bodies.EndedRunBody, run, id=id_, trigger=origin.trigger, by=origin.by, began_at=iso(run.began))


def _lost(run: Run) -> bodies.EndedRunBody:
    """A run of this service that left no record: it was killed, or couldn't be started."""
    began_at = run.started_at or run.queued_at
    seconds = run.ended - datetime.fromisoformat(began_at).timestamp()
    counts = run.report.get("counts", {}) if run.report else {}
    return {
        "id": run.id, "trigger": "http", "by": run.by, "began_at": began_at, "seconds": max(seconds, 0.0),
        "result": "failed", "counts": counts, "generation": None, "errors": [run.error],
        "failed_sources": [],
    }  # fmt: skip


async def _inspected(index: NamedIndex, state: IndexState) -> Inspected:
    pages: Sequence[Page] = ()
    runs = RunHistory()
    try:
        runs = await runs_of(index.store)
        pages = await (await index.store.live()).pages() if state.info else ()
    except AssistantError as error:
        state = replace(state, store_problem=state.store_problem or str(error))
    told = None if state.info else await asyncio.to_thread(run_reading, directory_of(index.settings))
    return Inspected(index.name, index.embedder, state, pages, runs, first_run=told)


def _index(one: Inspected) -> bodies.IndexBody:
    info = one.state.info
    return {
        "name": one.name,
        "ok": one.state.ok,
        "embedder": one.state.embedder,
        "generation": generation_body(info, live=True) if info else None,
        "pages_by_language": _counts(page.language for page in one.pages),
        "pages_by_collection": _counts(page.collection for page in one.pages),
        "pages_by_source": _counts(page.fetch.source for page in one.pages),
        "pages_by_state": _counts(state_of(page) for page in one.pages),
        "runs": {
            "counts": one.runs.counts,
            "ended": {result: iso(at) for result, at in one.runs.ended.items()},
            "last": one.last_result,
            "seconds": one.runs.seconds,
        },
    }


def _counts(values: Iterable[str]) -> dict[str, int]:
    return dict(Counter(values).most_common())


def generation_body(info: GenerationInfo, *, live: bool) -> bodies.GenerationBody:
    """A generation, ready for JSON."""
    sources = [filled(bodies.SourceBody, one) for one in info.sources]
    age = None if info.age is None else round(info.age)
    return filled(bodies.GenerationBody, info, live=live, age_s=age, sources=sources)

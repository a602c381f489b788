"""The results of the runs that wrote to an index, kept with it: runs are other processes than the service."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, Literal

from app.core.errors import IndexDamaged
from app.core.types import Page
from app.index.protocols import Store

RunResult = Literal["published", "partial", "unpublished", "failed"]
RESULTS: tuple[RunResult, ...] = ("published", "partial", "unpublished", "failed")


@dataclass(frozen=True, slots=True)
class SourceRuns:
    """What runs learned about a sitemap, directory or reader. `read` is when one last read all of it, in Unix seconds.

    `proofs` are pages whose text changed together with their lastmod, since a text last changed without it; that happened in
    `lies` runs.
    """

    read: float = 0.0
    proofs: int = 0
    lies: int = 0


@dataclass(frozen=True, slots=True)
class RunHistory:
    """How many runs ended with each result, the time of the last one of each in Unix seconds, and the last run's duration.

    `sources` are those of the index, by the address that `Page.source` has.
    `partial` means published, but pages or sources failed; `unpublished` that the run left the index as it was, because
    too much was missing or another run was writing; `failed` that it ended with any other error.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    sources: Mapping[str, SourceRuns] = field(default_factory=dict)

    def with_run(
        self, result: RunResult, seconds: float, sources: Mapping[str, SourceRuns] | None = None
    ) -> RunHistory:
        """A copy with a run that has ended now, and that learned this about the sources of the index."""
        counts = {**self.counts, result: self.counts.get(result, 0) + 1}
        ended = {**self.ended, result: time.time()}
        known = self.sources if sources is None else sources
        return RunHistory(counts, ended, round(seconds, 3), known)

    def last_ok(self, page: Page) -> str:
        """When a run last found the page as the index has it, in ISO 8601; empty if that isn't known."""
        read = self.sources.get(page.source, SourceRuns()).read
        if page.stale_since or not read:
            return page.last_ok
        return max(page.last_ok, datetime.fromtimestamp(read, UTC).isoformat(timespec="seconds"))

    def as_json(self) -> dict[str, Any]:
        """The values for JSON."""
        return asdict(self)


def parse(values: Any, place: str) -> RunHistory:
    """The history with these values of `as_json`. Raises `IndexDamaged` that names the place."""
    try:
        return RunHistory(
            {result: int(values["counts"][result]) for result in RESULTS if result in values["counts"]},
            {result: float(values["ended"][result]) for result in RESULTS if result in values["ended"]},
            float(values["seconds"]),
            {root: SourceRuns(**known) for root, known in values.get("sources", {}).items()},
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(
            f"{place} isn't a history of runs ({error!r}). Delete it: only figures depend on it."
        ) from error


async def runs_of(store: Store) -> RunHistory:
    """The runs of this store so far; empty for a store of a project that doesn't keep them."""
    read = getattr(store, "runs", None)
    return await read() if read else RunHistory()


async def readable_runs_of(store: Store) -> RunHistory:
    """The runs of this store so far; empty also if they can't be read because of a damage."""
    try:
        return await runs_of(store)
    except IndexDamaged:
        return RunHistory()


async def as_last_read(store: Store, pages: Iterable[Page]) -> tuple[Page, ...]:
    """The pages with the time of the last run that found them as they are: their records aren't written for that."""
    runs = await readable_runs_of(store)
    return tuple(replace(page, last_ok=runs.last_ok(page)) for page in pages)


async def add_run(
    store: Store, result: RunResult, seconds: float, sources: Mapping[str, SourceRuns] | None = None
) -> None:
    """Keep the result of a run that has ended now, and what it learned. A store of a project may leave that out."""
    if write := getattr(store, "write_runs", None):
        await write((await readable_runs_of(store)).with_run(result, seconds, sources))

"""The results of the runs that wrote to an index, kept with it: runs are other processes than the service."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from app.core.errors import IndexDamaged
from app.index.protocols import Store

RunResult = Literal["published", "partial", "unpublished", "failed"]
RESULTS: tuple[RunResult, ...] = ("published", "partial", "unpublished", "failed")


@dataclass(frozen=True, slots=True)
class RunHistory:
    """How many runs ended with each result, the time of the last one of each in Unix seconds, and the last run's duration.

    `partial` means published, but pages or sources failed; `unpublished` that the run left the index as it was, because
    too much was missing or another run was writing; `failed` that it ended with any other error.
    """

    counts: Mapping[str, int] = field(default_factory=dict)
    ended: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0

    def with_run(self, result: RunResult, seconds: float) -> RunHistory:
        """A copy with a run that has ended now."""
        counts = {**self.counts, result: self.counts.get(result, 0) + 1}
        return replace(self, counts=counts, ended={**self.ended, result: time.time()}, seconds=round(seconds, 3))

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
        )
    except (LookupError, TypeError, ValueError, AttributeError) as error:
        raise IndexDamaged(
            f"{place} isn't a history of runs ({error!r}). Delete it: only figures depend on it."
        ) from error


async def runs_of(store: Store) -> RunHistory:
    """The runs of this store so far; empty for a store of a project that doesn't keep them."""
    read = getattr(store, "runs", None)
    return await read() if read else RunHistory()


async def add_run(store: Store, result: RunResult, seconds: float) -> None:
    """Keep the result of a run that has ended now. A store of a project may leave that out."""
    if write := getattr(store, "write_runs", None):
        try:
            known = await runs_of(store)
        except IndexDamaged:
            known = RunHistory()
        await write(known.with_run(result, seconds))

"""The state of the parts of the service: indices from a look at them, the others from the calls of questions."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Annotated, Any, Literal

from pydantic import Field

from app.core.breaker import IDLE, Breaker, Part, Probe
from app.core.errors import (
    AssistantError,
    IndexDamaged,
    IndexMismatch,
    ModelTimeout,
    ModelUnavailable,
    NoIndex,
)
from app.core.gate import Joined, StillRunning
from app.core.generation import GenerationInfo
from app.index import Generation, Store
from app.index.run_history import Checkup, damage_message, runs_of
from app.models import Embedder

PARTS: tuple[Part, ...] = ("model", "embedder", "reranker", "store")
STORE_WAIT = 2.0
"""Seconds to wait for a store; if it answers later, that is seen the next time."""


@dataclass(frozen=True, slots=True)
class IndexState:
    """The state of an index; `store_problem` and `problem` are empty if it can be searched.

    `lost` is what makes answers worse and keeps no question from being answered: a damage, or an embedder that can't be opened.
    """

    embedder: str
    info: GenerationInfo | None = None
    store_problem: str = ""
    problem: str = ""
    lost: str = ""

    @property
    def ok(self) -> bool:
        """True if questions can be answered from it."""
        return not (self.store_problem or self.problem)

    def summary(self) -> Mapping[str, Any]:
        """The state for operators, ready for JSON."""
        if problem := self.store_problem or self.problem:
            return {"ok": False, "problem": problem}
        assert self.info is not None
        known = {name: getattr(self.info, name) for name in ("pages", "chunks", "built_at")}
        return {"ok": True, "generation": self.info.id, **known} | ({"problem": self.lost} if self.lost else {})


class IndexCheck:
    """Tells the state of an index that is used with this embedder; `max_age` is in hours, 0 for no limit."""

    def __init__(self, name: str, store: Store, embedder: Embedder, max_age: float) -> None:
        self._name = name
        self._store = store
        self._embedder = embedder
        self._max_age = max_age
        self._checkup = Checkup(name)
        self._opening: Joined[tuple[Generation, str]] = Joined()

    async def state(self) -> IndexState:
        """The current state; waits for a store only briefly."""
        name, embedder = self._name, self._embedder
        try:
            live, too_old = await self._opening.get(self._open, STORE_WAIT)
        except StillRunning:
            return IndexState(embedder.name, store_problem=f"The store did not answer within {STORE_WAIT:g} s.")
        except NoIndex as error:
            return IndexState(embedder.name, problem=empty_index_message(name, error))
        except IndexDamaged as error:
            return IndexState(embedder.name, store_problem=damage_message(error, name))
        except AssistantError as error:
            return IndexState(embedder.name, store_problem=str(error))
        found = await self._checkup.of(live)
        lost = found.lost or embedder_mismatch(live.info, embedder)
        return IndexState(embedder.name, live.info, found.problem, too_old, lost)

    async def _open(self) -> tuple[Generation, str]:
        """The live generation, and a message if it is too old."""
        live = await self._store.live()
        try:
            return live, await self._age_problem(live.info)
        except IndexDamaged as error:  # of the history of runs: the pages can be read
            return live, str(error)

    async def _age_problem(self, info: GenerationInfo) -> str:
        limit = self._max_age * 3600
        if not limit or (age := info.age or 0.0) <= limit:
            return ""
        ended = (await runs_of(self._store)).ended  # a run that finds no change publishes nothing
        age = min(age, time.time() - max(ended.get("published", 0.0), ended.get("partial", 0.0)))
        if age <= limit:
            return ""
        option = f" --index {self._name}" if self._name else ""
        return (
            f"The last run that read the sites was {age / 3600:.1f} hours ago, and DOCS_MAX_INDEX_AGE is {self._max_age:g}:"
            f" run `docs-assistant ingest{option}`, and see why the last runs failed."
        )


@dataclass(frozen=True, slots=True)
class Failure:
    """A failure at an ISO 8601 time."""

    at: str
    error: str


@dataclass(frozen=True, slots=True)
class PartState:
    """The state of a part as its calls show it, and a probe when it wasn't called for a minute. Times are ISO 8601 in UTC."""

    name: str
    state: Annotated[
        Literal["ok", "failing", "unknown"],
        Field(description="`unknown` if it was never called, or is reachable again since its last call failed."),
    ]
    failing_since: str | None
    last_success: str | None
    last_failure: Failure | None
    failures: Annotated[int, Field(description="Number of failed calls in a row.")]
    latency_ms: Annotated[
        float | None, Field(description="Of the last successful call; of a stream, the time to its first text.")
    ]
    waiting_s: Annotated[float | None, Field(description="How long the oldest call without an answer is waiting.")]
    last_probe_failure: Annotated[Failure | None, Field(description="Null if the last probe found it reachable.")]
    others: Annotated[tuple[PartState, ...], Field(description="More parts of this kind.")] = ()


@dataclass(frozen=True)
class Health:
    """Ability to answer questions. `index` is that of the first assistant; `details` has others under `indices`.

    `parts` has None for a part that isn't configured.
    """

    ok: bool
    store: str
    index: GenerationInfo | None
    model: str
    embedder: str
    details: Mapping[str, Any] = field(default_factory=dict)
    parts: Mapping[str, PartState | None] = field(default_factory=dict)

    @property
    def status(self) -> Literal["ok", "degraded", "unavailable"]:
        """`degraded` if a part fails and questions are answered nevertheless, such as extractively."""
        if not self.ok:
            return "unavailable"
        fails = any(part and part.state == "failing" for part in self.parts.values())
        return "degraded" if fails or "index" in self.details else "ok"


def empty_index_message(index: str, error: NoIndex) -> str:
    """The message for an empty index: for a named index the command that fills it, else the message of `error`."""
    return f"Nothing has been indexed yet: run `docs-assistant ingest --index {index}` first." if index else str(error)


def embedder_mismatch(info: GenerationInfo, embedder: Embedder) -> str:
    """A message if the index was built with an embedder that can't be opened here, so that words alone find pages; else empty."""
    try:
        embedder.of(info.recipe.embedder)
    except ModelUnavailable as error:
        return str(error)
    return ""


async def roll_back(store: Store, embedder: Embedder) -> GenerationInfo:
    """Make the previous generation live again, and return it.

    Raises `NoIndex` if none is kept, and `IndexMismatch` if its embedder can't be opened: words alone would find its pages.
    """
    earlier = (await store.generations())[1:2]
    if earlier and embedder_mismatch(earlier[0], embedder):
        raise IndexMismatch(
            f"Generation {earlier[0].id} was built with the embedder {earlier[0].recipe.embedder}, but {embedder.name} is "
            "set, and words alone would find its pages. Set that embedder again first. Nothing was changed."
        )
    return await store.rollback()


async def look_at_servers(breakers: Iterable[Breaker]) -> None:
    """Probe the servers of breakers without recent calls; waits for the results only briefly."""
    by_probe: dict[Probe, list[Breaker]] = {}
    for breaker in breakers:
        if breaker.probe:
            by_probe.setdefault(breaker.probe, []).append(breaker)
    await asyncio.gather(*(_look(probe, group) for probe, group in by_probe.items()))


async def _look(probe: Probe, breakers: Sequence[Breaker]) -> None:
    idle_since = time.monotonic() - IDLE
    idle = [breaker for breaker in breakers if breaker.record.last_call < idle_since]
    heard = max(breaker.record.last_success or -math.inf for breaker in breakers)
    if not idle:
        return
    if heard >= idle_since:
        probe.answered(heard)  # to a call of another kind
    elif len(idle) == len(breakers):  # else a call has just failed, which says more
        await probe.look()
    for breaker in idle:
        if probe.error is None and probe.asked_at > breaker.record.last_call:
            breaker.reachable()


def part_states(breakers: Iterable[Breaker], kinds: Iterable[Part] = PARTS) -> Mapping[str, PartState | None]:
    """The state of each kind of part, or None if there is none; of several, the worst one, which names the others.

    One whose last call failed is worse than one that nobody has called, which says nothing beside one that works.
    """

    def rank(state: PartState) -> tuple[bool, ...]:
        return state.state != "failing", not state.failures, state.state == "unknown", state.last_success is None

    worst_of: dict[str, PartState | None] = dict.fromkeys(kinds)
    by_kind: dict[str, list[PartState]] = {}
    breakers = tuple(breakers)
    working = {id(breaker.probe) for breaker in breakers if breaker.record.last_success is not None}
    for breaker in breakers:
        by_kind.setdefault(breaker.part, []).append(_part_state(breaker, answered=id(breaker.probe) in working))
    for kind, states in by_kind.items():
        worst, *others = sorted(states, key=rank)
        worst_of[kind] = replace(worst, others=tuple(others))
    return worst_of


def _part_state(breaker: Breaker, *, answered: bool) -> PartState:
    """The state of a part, whose server has `answered` any call."""
    record, probe, now = breaker.record, breaker.probe, breaker.clock()
    state, since = _judged(breaker, answered=answered)
    oldest = next(iter(breaker.waiting.values()), None)
    return PartState(
        name=breaker.name,
        state=state,
        failing_since=_time(since, now),
        last_success=_time(record.last_success, now),
        last_failure=_failure(record.last_failure, record.error, now),
        failures=record.failures,
        latency_ms=None if record.last_success is None else round(record.latency * 1000, 1),
        waiting_s=None if oldest is None else round(now - oldest, 1),
        last_probe_failure=_failure(probe.asked_at, str(probe.error), now) if probe and probe.error else None,
    )


def _judged(breaker: Breaker, *, answered: bool) -> tuple[Literal["ok", "failing", "unknown"], float | None]:
    """The state, and since when it is failing. The latest fact decides: a call, a call that waits too long, or a probe."""
    record, probe, stuck = breaker.record, breaker.probe, breaker.stuck_since
    if breaker.state or stuck is not None:
        return "failing", record.failing_since or stuck
    if probe and probe.asked_at > record.last_call:
        # a key may be good for answers, but not for the list of models
        down = isinstance(probe.error, ModelUnavailable | ModelTimeout)
        if down or (probe.error and not answered):
            return "failing", record.failing_since or probe.failing_since
        return ("unknown" if record.failures else "ok"), None  # reachable, but its last call failed
    if record.failures:
        return "failing", record.failing_since
    return ("unknown" if record.last_success is None else "ok"), None


def _time(at: float | None, now: float) -> str | None:
    """The ISO 8601 time of this time of the monotonic clock."""
    return None if at is None else (datetime.now(UTC) - timedelta(seconds=now - at)).isoformat(timespec="seconds")


def _failure(at: float | None, error: str, now: float) -> Failure | None:
    shown = _time(at, now)
    return Failure(shown, error) if shown else None

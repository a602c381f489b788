"""The state of the service at a scrape: indexes with their runs, circuit breakers, and answers in progress."""

from __future__ import annotations

import asyncio
import logging
import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.registry import Collector

from app.core.breaker import Breaker
from app.core.errors import AssistantError
from app.core.gate import Gate
from app.core.generation import GenerationInfo
from app.index.protocols import Store
from app.index.run_history import RESULTS, RunHistory, runs_of

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.watch")

SCRAPE_WAIT = 1.0
"""Seconds that a scrape waits for the stores; what is known later is in the next one."""
CONFIGURED = "default"  # the label of the index that DOCS_STORE names

Families = Iterator[GaugeMetricFamily | CounterMetricFamily]


@dataclass(slots=True)
class IndexFacts:
    """What is known of one index; `pages` are by language."""

    ok: bool = False
    info: GenerationInfo | None = None
    pages: Mapping[str, int] = field(default_factory=dict)
    runs: RunHistory = field(default_factory=RunHistory)


class Facts(Collector):
    """Collects the state of these assistants, of the gate and of the breakers. `look` must be awaited before each scrape."""

    def __init__(self, assistants: Assistants, gate: Gate, breakers: Sequence[Breaker]) -> None:
        self._assistants = assistants
        self._breakers = breakers
        self._gate = gate
        self._indexes: dict[str, IndexFacts] = {}
        self._looking: asyncio.Task[None] | None = None

    async def look(self) -> None:
        """Look at the indexes, for at most `SCRAPE_WAIT` seconds; an index that isn't seen by then isn't ok."""
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        await asyncio.wait({self._looking}, timeout=SCRAPE_WAIT)
        failed = self._looking.exception() if self._looking.done() else None
        if failed:
            log.error("looking at the indexes failed", exc_info=failed)
        if failed or not self._looking.done():
            for facts in self._indexes.values():
                facts.ok = False

    async def _look(self) -> None:
        stores = {name: store for name, (store, _) in self._assistants.used().items()}
        for name in stores:
            self._indexes.setdefault(name, IndexFacts())
        states = await self._assistants.index_states()
        for name, state in states.items():
            facts = self._indexes[name]
            facts.ok = state.ok
            if not state.store_problem:
                await _read(facts, state.info, stores[name])

    def collect(self) -> Families:
        """The metrics."""
        yield from self._of_indexes()
        yield from self._of_runs()
        open_ = GaugeMetricFamily(
            "docs_assistant_breaker_open", "1 while calls are skipped after failures.", labels=("part", "name")
        )
        states: dict[tuple[str, str], int] = {}
        for one in self._breakers:
            states[one.part, one.name] = max(states.get((one.part, one.name), 0), int(bool(one.state)))
        for labels, value in states.items():
            open_.add_metric(labels, value)
        yield open_
        yield GaugeMetricFamily(
            "docs_assistant_answers_in_progress", "Answers and searches in progress.", self._gate.open
        )
        yield GaugeMetricFamily("docs_assistant_queue_length", "Requests that wait for a place.", self._gate.waiting)

    def _of_indexes(self) -> Families:
        ok = GaugeMetricFamily("docs_assistant_index_ok", "1 if the index can be searched.", labels=("index",))
        built = GaugeMetricFamily(
            "docs_assistant_index_built_timestamp_seconds", "When the index changed last.", labels=("index",)
        )
        chunks = GaugeMetricFamily("docs_assistant_index_chunks", "Chunks in the index.", labels=("index",))
        pages = GaugeMetricFamily("docs_assistant_index_pages", "Pages in the index.", labels=("index", "language"))
        for name, facts in self._indexes.items():
            index = name or CONFIGURED
            ok.add_metric((index,), facts.ok)
            if facts.info:
                built.add_metric((index,), math.nan if (at := facts.info.built) is None else at)
                chunks.add_metric((index,), facts.info.chunks)
            for language, count in facts.pages.items():
                pages.add_metric((index, language), count)
        yield from (ok, built, chunks, pages)

    def _of_runs(self) -> Families:
        runs = CounterMetricFamily("docs_assistant_ingest_runs", "Runs that have ended.", labels=("index", "result"))
        last = GaugeMetricFamily(
            "docs_assistant_ingest_last_run_timestamp_seconds",
            "When the last run with this result ended.",
            labels=("index", "result"),
        )
        seconds = GaugeMetricFamily(
            "docs_assistant_ingest_last_run_seconds", "Duration of the last run.", labels=("index",)
        )
        for name, facts in self._indexes.items():
            index = name or CONFIGURED
            for result in RESULTS:
                runs.add_metric((index, result), facts.runs.counts.get(result, 0))
            for known, ended in facts.runs.ended.items():
                last.add_metric((index, known), ended)
            if facts.runs.ended:
                seconds.add_metric((index,), facts.runs.seconds)
        yield from (runs, last, seconds)


async def _read(facts: IndexFacts, info: GenerationInfo | None, store: Store) -> None:
    """Read the runs, and the pages of a generation that wasn't read yet."""
    try:
        facts.runs = await runs_of(store)
        if info and info != facts.info:
            pages = await (await store.live()).pages()
            facts.pages = Counter(page.language for page in pages)
            facts.info = info
    except AssistantError:  # the breaker logs it, and the state is that of the next look
        facts.ok = False

"""GET /metrics: figures for Prometheus, counted as calls end, and the state of indexes, breakers and answers at a scrape."""

from __future__ import annotations

import asyncio
import collections
import logging
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from typing import TYPE_CHECKING, Generic, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.metrics import MetricWrapperBase
from prometheus_client.registry import Collector
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from app.api.middleware.proxy_headers import route_path
from app.api.middleware.requestlog import RequestInfo
from app.api.service import Service
from app.core.breaker import Breaker, Part
from app.core.errors import AssistantError, Overloaded, RequestError
from app.core.gate import Gate
from app.core.generation import GenerationInfo
from app.core.turn import AnswerRecord
from app.index.protocols import Store
from app.index.run_history import RESULTS, RunHistory

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.metrics")

SCRAPE_WAIT = 1.0
"""Seconds that a scrape waits for the stores; what is known later is in the next one."""
CONFIGURED = "default"  # the label of the index that DOCS_STORE names

Families = Iterator[GaugeMetricFamily | CounterMetricFamily]


@dataclass(slots=True)
class IndexFacts:
    """Facts about one index; `pages` are by language."""

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
        facts.runs = await store.runs()
        if info and info != facts.info:
            pages = await (await store.live()).pages()
            facts.pages = collections.Counter(page.language for page in pages)
            facts.info = info
    except AssistantError:  # the breaker logs it, and the state is that of the next look
        facts.ok = False


OTHER = "other"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAITED = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60, 120, 300)
TENTHS = tuple(n / 10 for n in range(1, 11))

Metric = TypeVar("Metric", bound=MetricWrapperBase)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series with the time of creation for each series would double their number


class Children(dict[tuple[str, ...], Metric], Generic[Metric]):
    """The metrics for label values, which are made once: `labels()` of the library costs more than counting does."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, values: tuple[str, ...]) -> Metric:
        child = self[values] = self._metric.labels(*values)
        return child


class Metrics:
    """Counters and histograms of one service. Their methods neither wait nor raise.

    Other languages than the configured `languages` count as "other".
    """

    def __init__(self, languages: Collection[str]) -> None:
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        GCCollector(registry=self.registry)
        self._languages = frozenset(languages)
        build = Info("docs_assistant_build", "The version of this service.", registry=self.registry)
        build.info({"version": version("docs-assistant")})
        self._requests = self._counter("requests", "HTTP requests.", "route", "method", "status")
        self._request_seconds = self._histogram("request_seconds", "Duration of requests.", WAITED, "route")
        self._rejected = self._counter("rejected", "Requests that were rejected before any work.", "reason")
        self._answers = self._counter(
            "answers", "Answers by what became of the question.", "assistant", "language", "outcome"
        )
        self._first_text = self._histogram(
            "first_text_seconds", "Time to the first text of an answer.", WAITED, "assistant"
        )
        self._answer_seconds = self._histogram(
            "answer_seconds", "Time to the end of a complete answer.", WAITED, "assistant"
        )
        self._evidence = Histogram(
            "docs_assistant_evidence",
            "Share of the question that the best passage contains.",
            buckets=TENTHS,
            registry=self.registry,
        )
        self._step_seconds = self._histogram("step_seconds", "Duration of a step of an answer.", QUICK, "step")
        self._step_failures = self._counter("step_failures", "Steps of answers that failed.", "step")
        self._tokens = self._counter("tokens", "Tokens as the model's server counts them.", "kind", "step")
        self._call_seconds = self._histogram(
            "call_seconds",
            "Duration of a call; of a stream, the time to its first text.",
            QUICK,
            "part",
            "name",
            "operation",
        )
        self._not_kept = Counter(
            "docs_assistant_answers_not_kept",
            "Answers that the database of conversations didn't take.",
            registry=self.registry,
        )
        self._feedback = self._counter("feedback", "Ratings of answers.", "assistant", "rating")
        self._cache = self._counter("answer_cache", "Questions that a stored answer could answer.", "result")
        self._call_failures = self._counter("call_failures", "Calls that failed.", "part", "name", "error")

    def request(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a request that has ended; `route` is one of this program, or empty."""
        route = route or OTHER
        self._requests[route, method if method in METHODS else OTHER, str(status)].inc()
        self._request_seconds[route,].observe(seconds)

    def rejected(self, reason: str) -> None:
        """Count a rejected request; `reason` is a code of this program."""
        self._rejected[reason,].inc()

    def answer(self, record: AnswerRecord) -> None:
        """Count an answer, or a task, that has ended."""
        for call in record.calls.ended:
            self._tokens["prompt", call.step].inc(call.usage.prompt_tokens)
            self._tokens["completion", call.step].inc(call.usage.completion_tokens)
        self._steps(record)
        if record.cache:
            self._cache[record.cache,].inc()
        if record.outcome and not record.task:
            self._outcome(record)

    def _steps(self, record: AnswerRecord) -> None:
        for ran, ms in record.steps:
            self._step_seconds[ran.step,].observe(ms / 1000)
            if ran.error:
                self._step_failures[ran.step,].inc()
        if failed := record.failed_step:
            self._step_failures[failed,].inc()

    def _outcome(self, record: AnswerRecord) -> None:
        language = record.language or (record.turn.language if record.turn else "")
        self._answers[record.assistant, language if language in self._languages else OTHER, record.outcome].inc()
        if record.first_text is not None:
            self._first_text[record.assistant,].observe(record.first_text - record.began)
        if record.done and record.ended is not None:
            self._answer_seconds[record.assistant,].observe(record.ended - record.began)
        if record.evidence is not None:
            self._evidence.observe(record.evidence)

    def not_kept(self, count: int) -> None:
        """Count answers that should have been kept."""
        self._not_kept.inc(count)

    def feedback(self, assistant: str, rating: str) -> None:
        """Count a rating, up or down, of an answer of this assistant."""
        self._feedback[assistant, rating].inc()

    def call(self, part: Part, name: str, operation: str, seconds: float, error: Exception | None) -> None:
        """Count a call to another server, as `app.core.breaker.OnCall`."""
        self._call_seconds[part, name, operation].observe(seconds)
        if error is not None:
            self._call_failures[part, name, type(error).__name__ if isinstance(error, AssistantError) else OTHER].inc()

    def _counter(self, name: str, text: str, *labels: str) -> Children[Counter]:
        return Children(Counter(f"docs_assistant_{name}", text, labels, registry=self.registry))

    def _histogram(self, name: str, text: str, buckets: tuple[float, ...], *labels: str) -> Children[Histogram]:
        return Children(Histogram(f"docs_assistant_{name}", text, labels, buckets=buckets, registry=self.registry))


@dataclass(frozen=True)
class MetricsPage:
    """The handler of the route. It requires an admin key where one is configured, else an API key where one is."""

    service: Service
    metrics: Metrics
    facts: Facts

    async def __call__(self, request: Request) -> Response:
        """The metrics as text, or as OpenMetrics if the client prefers that."""
        if self.service.keys.admins:
            self.service.check_admin(request, "Metrics aren't shown")
        else:
            self.service.access(request)
        await self.facts.look()
        try:
            encode, content_type = choose_encoder(request.headers.get("accept", ""))
        except TypeError:  # the library's error for a version that is no number
            encode, content_type = choose_encoder("")
        return Response(
            encode(self.metrics.registry), headers={"cache-control": "no-store", "content-type": content_type}
        )


class RequestMetrics:
    """Counts each request that has ended, and its answer."""

    def __init__(self, metrics: Metrics, routes: Iterable[BaseRoute]) -> None:
        self._metrics = metrics
        self._paths = frozenset(map(route_label, routes))

    def __call__(self, scope: Scope, info: RequestInfo, seconds: float) -> None:
        """Count this request."""
        path = route_path(scope)  # middleware may have refused it before a route was chosen
        label = path if path in self._paths else route_label(scope.get("route"))
        self._metrics.request(label, scope["method"], info.status, seconds)
        if info.answer:
            self._metrics.answer(info.answer)
        if reason := _rejection(info.error):
            self._metrics.rejected(reason)


def route_label(route: BaseRoute | None) -> str:
    """The path of the route with its parameters in braces; empty for none."""
    return str(getattr(route, "path_format", ""))


def _rejection(error: Exception | None) -> str:
    """The reason if the request was rejected; empty if it wasn't."""
    match error:
        case Overloaded():
            return "overloaded"
        case RequestError():
            return error.code or "invalid"
        case HTTPException(status_code=503):
            return "stopping"
    return ""

"""GET /metrics: figures for Prometheus, counted as calls end, and the state of indexes, breakers and answers at a scrape.

GET /health, /health/live and /health/ready: whether the service answers questions, lives, and may get requests.
"""

from __future__ import annotations

import collections
import logging
import math
import time
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib.metadata import version
from typing import TYPE_CHECKING, Generic, TypeVar

from fastapi import APIRouter
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
from starlette.responses import PlainTextResponse, Response
from starlette.routing import BaseRoute
from starlette.types import Scope

from app.assistants.health import IndexState as LiveState
from app.assistants.health import look_at_servers, part_states
from app.core.breaker import Breaker, Part
from app.core.errors import AssistantError, Overloaded, RequestError
from app.core.gate import Gate, Joined, StillRunning
from app.core.generation import GenerationInfo
from app.core.hooks import hookimpl
from app.core.turn import AnswerRecord
from app.http.bodies import filled, unstored
from app.http.door import RequestInfo, route_path
from app.index.protocols import Store
from app.index.run_history import RESULTS, RunHistory, runs_of
from app.routes.answer_models import HealthBody, IndexState, LiveBody, ReadyBody
from app.routes.description import ERRORS, json_of
from app.routes.routers import Row, router_of, unlisted_router
from app.routes.service import Service
from app.routes.warm_up import WarmUp

if TYPE_CHECKING:
    from app.assistants.assistant import Assistants

log = logging.getLogger("app.metrics")

SCRAPE_WAIT = 1.0
"""Seconds that a scrape waits for the stores; what is known later is in the next one."""
CONFIGURED = "default"  # the label of the index that DOCS_STORE names

MetricFamily = GaugeMetricFamily | CounterMetricFamily
Values = Iterable[tuple[Sequence[str], float]]


@dataclass(frozen=True, slots=True)
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
        self._indexes: Mapping[str, IndexFacts] = {}
        self._looking: Joined[None] = Joined()

    async def look(self) -> None:
        """Look at the indexes, for at most `SCRAPE_WAIT` seconds; an index that isn't seen by then isn't ok."""
        try:
            await self._looking.get(self._look, SCRAPE_WAIT)
        except StillRunning:
            self._indexes = self._unseen()

    async def _look(self) -> None:
        seen = unseen = self._unseen()
        try:
            states, used = await self._assistants.index_states(), self._assistants.used()
            seen = {name: await _seen(known, states[name], used[name].store) for name, known in unseen.items()}
        except Exception:
            log.exception("looking at the indexes failed")
        self._indexes = seen

    def _unseen(self) -> Mapping[str, IndexFacts]:
        return {name: replace(self._indexes.get(name, IndexFacts()), ok=False) for name in self._assistants.used()}

    def collect(self) -> Iterator[MetricFamily]:
        """The metrics."""
        states: dict[tuple[str, ...], float] = {}
        for one in self._breakers:
            states[one.part, one.name] = max(states.get((one.part, one.name), 0), bool(one.state))
        yield _gauge("breaker_open", "1 while calls are skipped after failures.", ("part", "name"), states.items())
        yield _gauge("answers_in_progress", "Answers and searches in progress.", (), [((), self._gate.open)])
        yield _gauge("queue_length", "Requests that wait for a place.", (), [((), self._gate.waiting)])
        facts = {name or CONFIGURED: facts for name, facts in self._indexes.items()}
        yield from _of_indexes(facts)
        yield from _of_runs({index: one.runs for index, one in facts.items()})


def _of_indexes(facts: Mapping[str, IndexFacts]) -> Iterator[MetricFamily]:
    infos = {index: one.info for index, one in facts.items() if one.info}
    built = [((index,), math.nan if info.built is None else info.built) for index, info in infos.items()]
    chunks = [((index,), info.chunks) for index, info in infos.items()]
    pages = [((index, code), count) for index, one in facts.items() for code, count in one.pages.items()]
    yield _gauge(
        "index_ok", "1 if the index can be searched.", ("index",), [((name,), one.ok) for name, one in facts.items()]
    )
    yield _gauge("index_built_timestamp_seconds", "When the index changed last.", ("index",), built)
    yield _gauge("index_chunks", "Chunks in the index.", ("index",), chunks)
    yield _gauge("index_pages", "Pages in the index.", ("index", "language"), pages)


def _of_runs(histories: Mapping[str, RunHistory]) -> Iterator[MetricFamily]:
    labels = ("index", "result")
    counts = [((index, one), runs.counts.get(one, 0)) for index, runs in histories.items() for one in RESULTS]
    ended = [((index, one), at) for index, runs in histories.items() for one, at in runs.ended.items()]
    seconds = [((index,), runs.seconds) for index, runs in histories.items() if runs.ended]
    yield _filled(CounterMetricFamily("docs_assistant_ingest_runs", "Runs that have ended.", labels=labels), counts)
    yield _gauge("ingest_last_run_timestamp_seconds", "When the last run with this result ended.", labels, ended)
    yield _gauge("ingest_last_run_seconds", "Duration of the last run.", ("index",), seconds)
    failed = [((index,), len(runs.failed_sources)) for index, runs in histories.items() if runs.ended]
    yield _gauge("ingest_failed_sources", "Sites that the last published run couldn't read.", ("index",), failed)


def _gauge(name: str, text: str, labels: Sequence[str], values: Values) -> MetricFamily:
    return _filled(GaugeMetricFamily(f"docs_assistant_{name}", text, labels=labels), values)


def _filled(family: MetricFamily, values: Values) -> MetricFamily:
    for labels, value in values:
        family.add_metric(labels, value)
    return family


async def _seen(known: IndexFacts, state: LiveState, store: Store) -> IndexFacts:
    """What is known with the state, the runs, and the pages of a generation that wasn't read yet."""
    if state.store_problem:
        return known
    try:
        seen = replace(known, ok=state.ok, runs=await runs_of(store))
        if state.info and state.info != known.info:
            pages = collections.Counter(page.language for page in await (await store.live()).pages())
            seen = replace(seen, info=state.info, pages=pages)
    except AssistantError:  # the breaker logs it, and the state is that of the next look
        return known
    return seen


OTHER = "other"
METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})
QUICK = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
WAITED = (0.05, 0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 30, 60, 120, 300)
TENTHS = tuple(n / 10 for n in range(1, 11))

# name, text, labels
COUNTERS = (
    ("requests", "HTTP requests.", ("route", "method", "status")),
    ("rejected", "Requests that were rejected before any work.", ("reason",)),
    ("answers", "Answers by what became of the question.", ("assistant", "language", "outcome")),
    ("step_failures", "Steps of answers that failed.", ("step",)),
    ("tokens", "Tokens as the model's server counts them.", ("kind", "step")),
    ("answers_not_kept", "Answers that the database of conversations didn't take.", ()),
    ("feedback", "Ratings of answers.", ("assistant", "rating")),
    ("answer_cache", "Questions that a stored answer could answer.", ("result",)),
    ("call_failures", "Calls that failed.", ("part", "name", "error")),
)
# name, text, buckets, labels
HISTOGRAMS = (
    ("request_seconds", "Duration of requests.", WAITED, ("route",)),
    ("first_text_seconds", "Time to the first text of an answer.", WAITED, ("assistant",)),
    ("answer_seconds", "Time to the end of a complete answer.", WAITED, ("assistant",)),
    ("evidence", "Share of the question that the best passage contains.", TENTHS, ()),
    ("step_seconds", "Duration of a step of an answer.", QUICK, ("step",)),
    ("call_seconds", "Duration of a call; of a stream, the time to its first text.", QUICK, ("part", "name", "operation")),
)  # fmt: skip

Metric = TypeVar("Metric", bound=MetricWrapperBase)

disable_created_metrics()  # type: ignore[no-untyped-call]  # a series with the time of creation for each series would double their number


class Children(dict[tuple[str, ...], Metric], Generic[Metric]):
    """The metrics for label values, which are made once: `labels()` of the library costs more than counting does."""

    def __init__(self, metric: Metric) -> None:
        super().__init__()
        self._metric = metric

    def __missing__(self, values: tuple[str, ...]) -> Metric:
        child = self[values] = self._metric.labels(*values) if values else self._metric
        return child


class Metrics:
    """Counters and histograms of one service. Their methods neither wait nor raise.

    Other languages than the configured `languages` count as "other", and so do paths that aren't those of `routes`.
    """

    def __init__(self, languages: Collection[str]) -> None:
        self.registry = registry = CollectorRegistry()
        self.routes: Collection[str] = ()
        ProcessCollector(registry=registry)
        GCCollector(registry=registry)
        self._languages = frozenset(languages)
        build = Info("docs_assistant_build", "The version of this service.", registry=registry)
        build.info({"version": version("docs-assistant")})
        self._count = {
            name: Children(Counter(f"docs_assistant_{name}", text, labels, registry=registry))
            for name, text, labels in COUNTERS
        }
        self._observe = {
            name: Children(Histogram(f"docs_assistant_{name}", text, labels, buckets=buckets, registry=registry))
            for name, text, buckets, labels in HISTOGRAMS
        }

    def request(self, scope: Scope, info: RequestInfo, seconds: float) -> None:
        """Count a request that has ended."""
        path, method = route_path(scope), scope["method"]  # the door may have refused it before a route was chosen
        route = (path if path in self.routes else route_label(scope.get("route"))) or OTHER
        self._count["requests"][route, method if method in METHODS else OTHER, str(info.status)].inc()
        self._observe["request_seconds"][route,].observe(seconds)
        if reason := _rejection(info.error):
            self._count["rejected"][reason,].inc()

    @hookimpl
    def answered(self, record: AnswerRecord) -> None:
        """Count an answer, or a task, that has ended."""
        for call in record.calls.ended:
            self._count["tokens"]["prompt", call.step].inc(call.usage.prompt_tokens)
            self._count["tokens"]["completion", call.step].inc(call.usage.completion_tokens)
        for ran, ms in record.steps:
            self._observe["step_seconds"][ran.step,].observe(ms / 1000)
            if ran.error:
                self._count["step_failures"][ran.step,].inc()
        if failed := record.failed_step:
            self._count["step_failures"][failed,].inc()
        if record.cache:
            self._count["answer_cache"][record.cache,].inc()
        if record.outcome and not record.task:
            self._outcome(record)

    def _outcome(self, record: AnswerRecord) -> None:
        language = record.language or (record.turn.asked.language if record.turn else "")
        language = language if language in self._languages else OTHER
        self._count["answers"][record.assistant, language, record.outcome].inc()
        if record.first_text is not None:
            self._observe["first_text_seconds"][record.assistant,].observe(record.first_text - record.began)
        if record.done and record.ended is not None:
            self._observe["answer_seconds"][record.assistant,].observe(record.ended - record.began)
        if record.evidence is not None:
            self._observe["evidence"][()].observe(record.evidence)

    def not_kept(self, count: int) -> None:
        """Count answers that should have been kept."""
        self._count["answers_not_kept"][()].inc(count)

    def feedback(self, assistant: str, rating: str) -> None:
        """Count a rating, up or down, of an answer of this assistant."""
        self._count["feedback"][assistant, rating].inc()

    def call(self, part: Part, name: str, operation: str, seconds: float, error: Exception | None) -> None:
        """Count a call to another server, as `app.core.breaker.OnCall`."""
        self._observe["call_seconds"][part, name, operation].observe(seconds)
        if error is not None:
            kind = type(error).__name__ if isinstance(error, AssistantError) else OTHER
            self._count["call_failures"][part, name, kind].inc()


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


@dataclass(frozen=True)
class HealthCheck:
    """The handlers of the routes. Without a valid API key, a body contains the status only."""

    service: Service

    async def live(self, request: Request) -> Response:  # noqa: ARG002  # required by the signature of a handler
        """Status 200: the process answers, so a restart would help nobody."""
        return unstored({"status": "ok"})

    async def ready(self, request: Request) -> Response:
        """Status 200 if questions can be answered from the index of the first assistant, else 503; 503 too while a start reads it."""
        request.app.state.checked = (
            time.monotonic()
        )  # a stop then waits for the next checks, see `docs_assistant.cli.server`
        state = await self.service.assistants.ready()
        warm_up: WarmUp | None = getattr(request.app.state, "warm_up", None)  # None without a start
        warming = "warming up: the index is being read" if warm_up and not warm_up.begun else ""
        ok = state.ok and not warming
        body: ReadyBody = {"status": "ok" if ok else "unavailable"}
        if self._shows_details(request):
            body["problem"] = state.store_problem or state.problem or warming
        return unstored(body, 200 if ok else 503)

    async def __call__(self, request: Request) -> Response:
        """The state of all parts. Status 200 if the service can answer questions, even without a part, else 503."""
        health, own = await self.service.assistants.health(), self.service.breakers
        await look_at_servers(own)  # which only the API uses, and no answer needs
        health = replace(health, parts={**health.parts, **part_states(own, kinds=())})
        body: HealthBody = {"status": health.status}
        if self._shows_details(request):
            body |= {
                "store": health.store,
                "index": _index(health.index) if health.index else None,
                "model": health.model,
                "embedder": health.embedder,
                "parts": health.parts,
                "details": health.details,
            }
        return unstored(body, 200 if health.ok else 503)

    def _shows_details(self, request: Request) -> bool:
        try:
            self.service.access(request)
        except RequestError:
            return False
        return True


def _index(info: GenerationInfo) -> IndexState:
    age = None if info.age is None else int(info.age)
    return filled(IndexState, info, generation=info.id, age_seconds=age, embedder=info.recipe.embedder)


def routers(service: Service, metrics: Metrics) -> Sequence[APIRouter]:
    """The routes of health and metrics; the metrics read the state of the service from now on."""
    breakers = (*service.assistants.breakers, *service.breakers)
    facts = Facts(service.assistants, service.limits.gate, breakers)
    metrics.registry.register(facts)
    for breaker in breakers:
        breaker.observers.append(metrics.call)
    page = MetricsPage(service, metrics, facts)
    reads = {
        "access": {"security": [{"adminKey": []}, {"key": []}, {}]},
        "description": "Counters, histograms and gauges for Prometheus. Needs an admin key where one is configured, else an API key.",
        "response_class": PlainTextResponse,
    }
    shown = router_of("Operation", [("metrics", "GET", "/metrics", page, "Read the metrics", None, ERRORS, reads)])
    return *_of_health(HealthCheck(service)), shown


def _of_health(health: HealthCheck) -> tuple[APIRouter, APIRouter]:
    nothing = "It can't: nothing is indexed yet, or the store can't be reached."
    unready = "It may not, or the index is older than DOCS_MAX_INDEX_AGE."
    restarts = "For a supervisor that restarts the service: a missing index or a failing model doesn't matter."
    balances = "For a load balancer: a failing model doesn't matter, because answers are extractive then."
    rows: Sequence[Row] = (
        ("health", "GET", "/health", health, "Check the health of the service", HealthBody,
         {503: {"description": nothing, "content": json_of(HealthBody)}}, {"access": {}}),
        ("health_live", "GET", "/health/live", health.live, "Check that the process answers", LiveBody, {},
         {"access": {}, "description": restarts}),
        ("health_ready", "GET", "/health/ready", health.ready, "Check that the service may get questions", ReadyBody,
         {503: {"description": unready, "content": json_of(ReadyBody)}}, {"access": {}, "description": balances}),
    )  # fmt: skip
    return router_of("Operation", rows), unlisted_router({path: handler for _, _, path, handler, *_ in rows}, "HEAD")

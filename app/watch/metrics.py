"""The metrics of the service for Prometheus: counters and histograms that are filled as requests end.

Label values are bounded sets: names of configured parts, routes and errors of this program, never texts of users.
"""

from __future__ import annotations

from collections.abc import Collection
from importlib.metadata import version
from typing import Generic, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    GCCollector,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.metrics import MetricWrapperBase

from app.core.breaker import Part
from app.core.errors import AssistantError
from app.core.record import AnswerRecord

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

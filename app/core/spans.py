"""Spans of OpenTelemetry. Until `start`, tracing is off: spans do nothing, and nothing of it is imported.

Names and attributes follow the semantic conventions for GenAI, databases and errors; our own begin with `docs_assistant`.
Steps and answers are named by `app.pipeline.runner`, calls of models and stores by `Call` of `app.core.breaker`.
"""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from contextlib import aclosing
from importlib.metadata import version
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer, TracerProvider

Event = TypeVar("Event")
Facts = Mapping[str, Any]
Kind = Literal["INTERNAL", "CLIENT"]


class NoSpan:
    """The span while tracing is off. It is false, so that what only a span needs can be left out."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        pass

    def note(self, facts: Facts) -> None:
        """Add attributes, except for those that are None."""

    def first(self, name: str) -> None:
        """Add an attribute of this name with the seconds since the beginning, and an event; only the first time."""

    def failed(self, error: BaseException) -> None:
        """Mark the span as failed."""

    def within(
        self,
        events: AsyncGenerator[Event, None],
        see: Callable[[NoSpan, Event], None],  # noqa: ARG002  # that of a span does
    ) -> AsyncGenerator[Event, None]:
        """The events. The span is current while one is made; `see` gets each."""
        return events


class Span(NoSpan):
    """An open span, a context manager that ends it. Spans that begin inside are its children if it is `current`.

    A span may only be current in a coroutine: an async generator shares the context of whoever reads it, and may be
    closed in another one. Such a generator uses `within`.
    """

    __slots__ = ("_began", "_current", "_named", "_span", "_token")

    def __init__(self, span: Any, *, current: bool) -> None:
        self._span = span
        self._current = current
        self._began = time.perf_counter()
        self._named: set[str] = set()
        self._token: Any = None

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        if self._current:
            self._token = self._attached()
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if self._token is not None:
            from opentelemetry.context import detach

            detach(self._token)
        if error is not None:
            self.failed(error)
        self._span.end()

    def _attached(self) -> Any:
        from opentelemetry.context import attach
        from opentelemetry.trace import set_span_in_context

        return attach(set_span_in_context(self._span))

    def note(self, facts: Facts) -> None:
        """Add attributes, except for those that are None."""
        self._span.set_attributes(_known(facts))

    def first(self, name: str) -> None:
        """Add an attribute of this name with the seconds since the beginning, and an event; only the first time."""
        if name not in self._named:
            self._named.add(name)
            self._span.set_attribute(name, time.perf_counter() - self._began)
            self._span.add_event(name.rpartition(".")[2])

    def failed(self, error: BaseException) -> None:
        """Mark the span as failed. The message of the error stays out, since it may repeat a question."""
        from opentelemetry.trace import StatusCode

        name = "cancelled" if type(error).__name__ in {"CancelledError", "GeneratorExit"} else type(error).__name__
        self._span.set_attribute("error.type", name)
        self._span.set_status(StatusCode.ERROR, name)

    async def within(
        self, events: AsyncGenerator[Event, None], see: Callable[[NoSpan, Event], None]
    ) -> AsyncGenerator[Event, None]:
        """The events. The span is current while one is made; `see` gets each."""
        from opentelemetry.context import detach

        async with aclosing(events):
            while True:
                token = self._attached()
                try:
                    event = await anext(events)
                except StopAsyncIteration:
                    return
                finally:
                    detach(token)
                see(self, event)
                yield event


OFF = NoSpan()
_provider: TracerProvider | None = None
_tracer: Tracer | None = None
_contents = False


def start(provider: TracerProvider | None, *, contents: bool = False) -> None:
    """Make spans with this provider, or none again. With `contents`, they have the texts of questions and answers."""
    global _provider, _tracer, _contents  # noqa: PLW0603  # one process, one tracer
    _provider, _contents = provider, contents
    _tracer = provider.get_tracer("docs-assistant", version("docs-assistant")) if provider else None


def provider() -> TracerProvider | None:
    """The provider that spans are made with; None while tracing is off."""
    return _provider


def span(name: str, facts: Facts | None = None, kind: Kind = "INTERNAL", *, current: bool = True) -> NoSpan:
    """A new span; its parent is the current one. See `Span` for `current`."""
    if _tracer is None:
        return OFF
    from opentelemetry.trace import SpanKind

    begun = _tracer.start_span(name, kind=SpanKind[kind], attributes=_known(facts or {}))
    return Span(begun, current=current)


def call(part: str, name: str, operation: str, facts: Facts) -> NoSpan:
    """The span of a call to a model or a store, whose `facts` are known to its guard. A stream isn't current.

    Calls that belong to no request have none: health checks would fill the collector.
    """
    if _tracer is None:
        return OFF
    from opentelemetry.trace import get_current_span

    if not get_current_span().get_span_context().is_valid:
        return OFF
    if part == "store":
        own = {"db.operation.name": operation}
        named = f"{operation} {facts.get('db.collection.name', '')}".rstrip()
    else:
        does = {"model": "chat", "embedder": "embeddings"}.get(part, operation)
        own = {"gen_ai.operation.name": does, "gen_ai.request.model": name}
        named = f"{does} {facts.get('gen_ai.request.model', name)}"
    return span(named, {**own, **facts}, "CLIENT", current=operation != "stream")


def with_contents() -> bool:
    """True if spans have the texts of questions and answers."""
    return _contents


def outgoing(headers: MutableMapping[str, str], url: str) -> None:
    """Note the server on the current span, and pass the trace on to it: adds `traceparent`, but never `baggage`."""
    if _tracer is None:
        return
    from opentelemetry.trace import get_current_span
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

    get_current_span().set_attributes(server_of(url))
    TraceContextTextMapPropagator().inject(headers)


def incoming(request_id: str, query: bytes) -> None:
    """Note the id of a request on its span, which FastAPI began, and blot out its query, which may have a question."""
    if _tracer is None:
        return
    from opentelemetry.trace import get_current_span

    current = get_current_span()
    current.set_attribute("docs_assistant.request.id", request_id)
    if query:
        current.set_attribute("url.query", "REDACTED")


def server_of(url: str) -> dict[str, str | int]:
    """The attributes of the server at this address."""
    parts = urlsplit(url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme, 0)
    return {"server.address": parts.hostname or "", "server.port": port}


def _known(facts: Facts) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if value is not None}

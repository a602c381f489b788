"""Sends traces to an OpenTelemetry collector, if OTEL_EXPORTER_OTLP_ENDPOINT is set and the extra `otel` is installed."""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from app.core import spans
from app.core.log_message import masked

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import TracerProvider

log = logging.getLogger("docs_assistant.cli.tracing")

CONTENTS = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
HTTP = "http/protobuf"
FLUSH_SECONDS = 3.0
"""Time to send the last spans before the program ends. The library itself would wait 30 s for a collector that is away."""
CHATTY = ("opentelemetry.exporter", "opentelemetry.sdk._shared_internal")
"""Loggers that write several lines for each batch that can't be sent."""

_stopped = threading.Event()
_stopped.set()


def start() -> None:
    """Make and send spans from now on, if the environment asks for it. A reason why that is impossible is logged."""
    if not (endpoint := _setting("ENDPOINT")) or _is_off():
        return
    if (protocol := _setting("PROTOCOL") or HTTP) != HTTP:
        log.warning(
            "no traces are sent: the protocol %s isn't supported, set OTEL_EXPORTER_OTLP_PROTOCOL=%s", protocol, HTTP
        )
        return
    if not endpoint.startswith(("http://", "https://")):
        log.warning("no traces are sent: the endpoint %s must begin with http:// or https://", masked(endpoint))
        return
    try:
        provider = _provider(masked(endpoint))
    except ImportError:
        log.warning("no traces are sent to %s: run pip install '.[otel]' in a checkout", masked(endpoint))
        return
    contents = os.environ.get(CONTENTS, "").lower() in {"true", "span_only", "span_and_event"}
    spans.start(provider, contents=contents)
    _stopped.clear()
    log.info("traces are sent to %s", masked(endpoint))


def stop() -> None:
    """Send the spans that are left; waits for `FLUSH_SECONDS` at most. May be called twice."""
    provider: Any = spans.provider()
    if _stopped.is_set() or provider is None:
        return
    _stopped.set()
    spans.start(None)
    stopping = threading.Thread(target=provider.shutdown, daemon=True)
    stopping.start()
    stopping.join(FLUSH_SECONDS)


@contextmanager
def tracing() -> Iterator[None]:
    """Context of `start` and `stop`."""
    start()
    try:
        yield
    finally:
        stop()


def _setting(name: str) -> str:
    """The standard variable for traces, else that for all signals."""
    return os.environ.get(f"OTEL_EXPORTER_OTLP_TRACES_{name}") or os.environ.get(f"OTEL_EXPORTER_OTLP_{name}", "")


def _is_off() -> bool:
    exporter = os.environ.get("OTEL_TRACES_EXPORTER", "otlp")
    return os.environ.get("OTEL_SDK_DISABLED", "").lower() == "true" or exporter != "otlp"


def _provider(endpoint: str) -> TracerProvider:
    """Raises `ImportError` without the extra `otel`."""
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import OTELResourceDetector, Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExportResult

    reason = _Reason()
    for name in CHATTY:
        logger = logging.getLogger(name)
        logger.addHandler(reason)
        logger.propagate = False

    class Exporter(OTLPSpanExporter):
        """Logs one line when spans can't be sent, and one when they can again."""

        _fails = False

        def export(self, *batch: Any) -> SpanExportResult:
            reason.text = ""
            result = super().export(*batch)
            fails = result is not SpanExportResult.SUCCESS
            if fails and not self._fails:
                log.warning("traces can't be sent to %s and are lost until that works: %s", endpoint, reason.text)
            elif self._fails and not fails:
                log.warning("traces are sent again to %s", endpoint)
            self._fails = fails
            return result

    own = Resource.create({"service.name": "docs-assistant", "service.version": version("docs-assistant")})
    provider = TracerProvider(resource=own.merge(OTELResourceDetector().detect()), shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(Exporter()))
    return provider


class _Reason(logging.Handler):
    """Keeps the first line that the library logs of a failure; the later ones say less."""

    text = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.text = self.text or record.getMessage()

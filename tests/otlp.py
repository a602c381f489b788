"""An OTLP/HTTP receiver on a real port: decodes what exporters send, as a collector does."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.trace.v1 import trace_pb2

from tests.serving import serving


@dataclass
class Received:
    """A span as it came over the wire; `ms` is its duration."""

    name: str
    kind: str
    trace: str
    id: str
    parent: str
    status: str
    ms: float
    facts: dict[str, Any]
    events: list[str]
    resource: dict[str, Any]


@dataclass
class Receiver:
    """`status` is what it answers; `spans` are those that it took."""

    url: str = ""
    status: int = 200
    requests: int = 0
    spans: list[Received] = field(default_factory=list)

    def named(self, name: str) -> list[Received]:
        return [one for one in self.spans if one.name == name]

    def children(self, parent: Received) -> list[Received]:
        return [one for one in self.spans if one.trace == parent.trace and one.parent == parent.id]


@contextmanager
def receiver() -> Iterator[Receiver]:
    """A running receiver."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            assert self.path == "/v1/traces"
            assert self.headers["content-type"] == "application/x-protobuf"
            found.requests += 1
            if found.status == 200:
                found.spans += _decoded(gzip.decompress(body) if self.headers["content-encoding"] == "gzip" else body)
            self.send_response(found.status)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with serving(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as found.url:
        yield found


def _decoded(body: bytes) -> Iterator[Received]:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        own = {one.key: _value(one.value) for one in resource.resource.attributes}
        for scope in resource.scope_spans:
            for span in scope.spans:
                yield Received(
                    span.name,
                    trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
                    span.trace_id.hex(),
                    span.span_id.hex(),
                    span.parent_span_id.hex(),
                    trace_pb2.Status.StatusCode.Name(span.status.code).removeprefix("STATUS_CODE_"),
                    (span.end_time_unix_nano - span.start_time_unix_nano) / 1e6,
                    {one.key: _value(one.value) for one in span.attributes},
                    [event.name for event in span.events],
                    own,
                )


def _value(value: AnyValue) -> Any:
    kind = value.WhichOneof("value")
    found = getattr(value, kind)
    return [_value(one) for one in found.values] if kind == "array_value" else found

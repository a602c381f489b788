"""Traces of a whole service, sent by the real exporter to an OTLP/HTTP receiver."""

import asyncio
import json
import logging
import sys
import time
from contextlib import asynccontextmanager

import httpx
import pytest

from app.core import spans
from docs_assistant.cli import tracing
from tests.app.http.test_hangups import serving
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of, until
from tests.fake_llm import Reply
from tests.otlp import receiver

ROUTE = f"POST {CHAT}"
QUESTION = "How do I create a persistent volume for quokka?"
CAPTURE = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"


@asynccontextmanager
async def traced(tmp_path, monkeypatch, collector, **options):
    """A service whose spans the collector has got at the end of the context."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
    monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "60000")  # the end sends all
    tracing.start()
    try:
        async with indexed(tmp_path, **options) as found:
            yield found
    finally:
        await asyncio.to_thread(tracing.stop)


async def test_a_trace_has_the_request_its_steps_and_the_calls_to_models_and_store(tmp_path, monkeypatch):
    """In the words of the conventions, and the trace of the caller goes on to the model's server; no text of anybody."""
    theirs = "0af7651916cd43dd8448eb211c80319c"
    with receiver() as collector:
        async with traced(tmp_path, monkeypatch, collector) as found, client_of(found.app) as client:
            headers = {
                "traceparent": f"00-{theirs}-b7ad6b7169203331-01",
                "x-request-id": "req-1",
                "baggage": "key=secret",
            }
            found.llm.reply = lambda _: Reply("Use a wombat claim [1].")
            response = await client.post(f"{CHAT}?q=quokka", json=chat(QUESTION, stream=True), headers=headers)
            assert "wombat" in response.text
            sent = found.llm.headers[-1]
            await client.get("/health")
    (server,) = collector.named(ROUTE)
    assert {one.trace for one in collector.spans} == {theirs}
    assert (server.kind, server.parent, server.status) == ("SERVER", "b7ad6b7169203331", "UNSET")
    assert server.resource["service.name"] == "docs-assistant"
    assert server.resource["service.version"]
    assert server.facts["http.response.status_code"] == 200
    assert server.facts["docs_assistant.request.id"] == response.headers["x-request-id"] == "req-1"
    inside = [one.name for one in collector.children(server)]
    assert {"detect", "retrieve", "relevance", "synthesize", "cite", "answer"} <= set(inside)
    (retrieve,) = collector.named("retrieve")
    assert retrieve.facts["docs_assistant.hits"] >= 1
    assert retrieve.facts["docs_assistant.generation"] == 1
    (evidence,) = collector.named("relevance")
    assert evidence.facts["docs_assistant.refused"] is False
    assert 0 < evidence.facts["docs_assistant.evidence"] <= 1
    (search,) = collector.named("search index")
    facts = (search.facts["db.system.name"], search.facts["db.operation.name"])
    assert (search.kind, facts) == ("CLIENT", ("lancedb", "search"))
    (answer,) = collector.named("answer")
    assert answer.events == ["time_to_first_text"]
    assert (answer.facts["docs_assistant.extractive"], answer.facts["docs_assistant.refused"]) == (False, False)
    (call,) = collector.children(answer)
    address, port = found.llm.url.removeprefix("http://").removesuffix("/v1").split(":")
    assert (call.name, call.kind, call.status, call.events) == ("chat m", "CLIENT", "UNSET", ["time_to_first_chunk"])
    assert call.facts.pop("gen_ai.response.time_to_first_chunk") > 0
    assert call.facts.pop("gen_ai.request.max_tokens") > 0
    assert call.facts == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "gen_ai.request.model": "m",
        "gen_ai.request.stream": True,
        "gen_ai.request.temperature": 0.1,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 5,
        "server.address": address,
        "server.port": int(port),
    }
    helper = collector.children(collector.named("keywords")[0])[0]
    assert isinstance(helper.facts["gen_ai.request.temperature"], float), "a double, also for 0"
    (embeddings,) = collector.named("embeddings e")
    assert embeddings.facts["gen_ai.operation.name"] == "embeddings"
    assert sent["traceparent"] == f"00-{theirs}-{call.id}-01"
    assert "baggage" not in sent
    assert not any(word in repr(collector.spans) for word in ("quokka", "wombat", "nfs-csi", "secret"))


async def test_parallel_answers_have_separate_trees(tmp_path, monkeypatch):
    """Streams that take turns in one event loop, read over sockets."""
    with receiver() as collector:
        async with traced(tmp_path, monkeypatch, collector) as found, client_of(found.app) as client:
            found.llm.reply = lambda _: Reply("It is this way [1].", piece_delay=0.01)
            asked = (chat(f"{QUESTION} {n}", stream=True) for n in range(8))
            await asyncio.gather(*(client.post(CHAT, json=body) for body in asked))
    servers = collector.named(ROUTE)
    assert len({one.trace for one in servers}) == 8
    shapes = set()
    for server in servers:
        own = [one for one in collector.spans if one.trace == server.trace]
        by_id = {one.id: one for one in own}
        assert all(one is server or one.parent in by_id for one in own)
        pairs = ((one.name, by_id[one.parent].name) for one in own if one is not server)
        shapes.add(tuple(sorted(pair for pair in pairs if pair[1] != "curated")))  # who reads the list does so for all
    assert len(shapes) == 1, "every request does the same"


async def test_failures_and_cancellation_end_spans_with_a_status(tmp_path, monkeypatch):
    with receiver() as collector:
        async with traced(tmp_path, monkeypatch, collector, on_model_failure="error") as found:  # noqa: SIM117
            async with (
                serving(found.app) as (port, _),
                httpx.AsyncClient(base_url=f"http://localhost:{port}") as client,
            ):
                found.llm.reply = lambda body: Reply(status=500 if body.get("stream") else 200)
                assert (await client.post(CHAT, json=chat(QUESTION))).status_code >= 500
                found.llm.reply = lambda body: Reply("one two " * 1000, piece_delay=0.01 if body.get("stream") else 0)
                async with client.stream("POST", CHAT, json=chat(QUESTION, stream=True)) as stream:
                    await anext(stream.aiter_bytes())
                await until(lambda: found.llm.cancelled)
    chats = [one for one in collector.named("chat m") if one.facts.get("gen_ai.request.stream")]
    failed, cancelled = sorted(chats, key=lambda one: one.facts["error.type"])
    assert (failed.status, failed.facts["error.type"]) == ("ERROR", "ModelUnavailable")
    assert (cancelled.status, cancelled.facts["error.type"]) == ("ERROR", "cancelled")
    assert cancelled.events == ["time_to_first_chunk"]
    assert {one.status for one in [*collector.named(ROUTE), *collector.named("answer")]} == {"ERROR"}


async def test_texts_are_in_spans_only_if_the_variable_of_the_conventions_asks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv(CAPTURE, "SPAN_ONLY")
    with receiver() as collector:
        async with traced(tmp_path, monkeypatch, collector) as found, client_of(found.app) as client:
            found.llm.reply = lambda body: Reply("Use a wombat claim [1].") if body.get("stream") else Reply(status=500)
            await client.post(CHAT, json=chat(QUESTION, stream=True))
    (call,) = [one for one in collector.named("chat m") if one.facts.get("gen_ai.request.stream")]
    *_, question = json.loads(call.facts["gen_ai.input.messages"])
    assert question == {"role": "user", "parts": [{"type": "text", "content": QUESTION}]}
    (answer,) = json.loads(call.facts["gen_ai.output.messages"])
    assert (answer["role"], answer["finish_reason"]) == ("assistant", "stop")
    assert "wombat" in answer["parts"][0]["content"]


async def test_a_dead_collector_costs_one_line_and_no_answer(tmp_path, monkeypatch):
    """And the end of the program waits a bounded time for it."""
    log = Lines()
    monkeypatch.setattr(logging.getLogger(), "handlers", [log])
    monkeypatch.setattr(tracing, "FLUSH_SECONDS", 0.2)
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "0.7")  # less than the first pause before another try, 0.8 s
    with receiver() as collector:
        collector.status = 503
        async with traced(tmp_path, monkeypatch, collector) as found, client_of(found.app) as client:
            provider = spans.provider()
            for _ in range(3):
                assert (await client.post(CHAT, json=chat(QUESTION))).status_code == 200
                await asyncio.to_thread(provider.force_flush)
            collector.status = 200
            for _ in range(30):  # a busy machine can take longer than the exporter's .1 s to be answered
                await client.post(CHAT, json=chat(QUESTION))
                await asyncio.to_thread(provider.force_flush)
                if any("sent again" in line for line in log.lines):
                    break
            collector.status = 503
            began = time.monotonic()
        assert time.monotonic() - began < 30
    assert [line for line in log.lines if "trace" in line or "span" in line] == [
        (
            f"traces can't be sent to {collector.url} and are lost until that works:"
            " Failed to export spans batch due to timeout, max retries or shutdown."
        ),
        f"traces are sent again to {collector.url}",
    ]
    assert len(collector.named(ROUTE)) == 1


@pytest.mark.parametrize(
    ("environment", "line"),
    [
        ({}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_SDK_DISABLED": "true"}, ""),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_TRACES_EXPORTER": "none"}, ""),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://me:key@127.0.0.1:1", "app.without": "otel"},
            "pip install '.[otel]' in a checkout",
        ),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "collector:4318"}, "must begin with http"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"}, "http/protobuf"),
    ],
)
def test_without_a_usable_collector_tracing_is_off_and_says_why(monkeypatch, caplog, environment, line):
    for name, value in environment.items():
        if name == "app.without":
            monkeypatch.setitem(sys.modules, "opentelemetry.exporter.otlp.proto.http.trace_exporter", None)
        else:
            monkeypatch.setenv(name, value)
    tracing.start()
    assert spans.provider() is None
    assert not spans.span("a")
    assert line in caplog.text
    assert "key" not in caplog.text
    assert len(caplog.records) == (1 if line else 0)


class Lines(logging.Handler):
    """What the log of the service has."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.lines = []

    def emit(self, record):
        self.lines.append(record.getMessage())

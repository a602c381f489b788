"""GET /metrics: what happened is in the figures, over the real routes, with a real index and a scripted model server."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.app.routes.indexed import helped, indexed
from tests.app.routes.scripted import CHAT, JSON, client_of
from tests.app.routes.test_records import QUESTION, REFUSAL, ask, leave
from tests.fake_llm import Reply

FIXED = {
    "requests": "route,method,status",
    "request_seconds": "route",
    "rejected": "reason",
    "answers": "assistant,language,outcome",
    "first_text_seconds": "assistant",
    "answer_seconds": "assistant",
    "evidence": "",
    "step_seconds": "step",
    "step_failures": "step",
    "call_seconds": "part,name,operation",
    "call_failures": "part,name,error",
    "tokens": "kind,step",
    "breaker_open": "part,name",
    "index_ok": "index",
    "index_built_timestamp_seconds": "index",
    "index_pages": "index,language",
    "index_chunks": "index",
    "ingest_runs": "index,result",
    "answers_in_progress": "",
    "queue_length": "",
    "build_info": "version",
}


async def get(app, path="/metrics", **headers):
    async with client_of(app, headers=JSON | headers) as client:
        return await client.get(path)


async def scraped(app, **headers):
    """The samples by name and labels without our prefix, such as `answers_total{outcome=written}`."""
    response = await get(app, **headers)
    assert response.status_code == 200, response.text
    return list(text_string_to_metric_families(response.text))


def value(families, name, **labels):
    """The sum of the samples with these labels."""
    name = f"docs_assistant_{name}"
    samples = (sample for family in families for sample in family.samples)
    return sum(s.value for s in samples if s.name == name and labels.items() <= s.labels.items())


async def test_what_happened_is_in_the_figures(tmp_path):
    async with indexed(tmp_path, assistants=helped(tmp_path)) as service:
        replies = (Reply("Use a PersistentVolumeClaim [1]."), Reply(REFUSAL), Reply(status=503))
        for reply in replies:
            service.llm.reply = lambda _, reply=reply: reply
            await ask(service.app, QUESTION)
        service.llm.reply = lambda body: Reply("word " * 5000, piece_delay=0.05 if body.get("stream") else 0)
        service.llm.sent = 0
        await leave(service.app, lambda: service.llm.sent > 5)
        await ask(service.app, "Hello!")
        await ask(service.app, QUESTION, model="gpt-4o")
        await get(service.app, "/secret/" + "x" * 50)
        found = await scraped(service.app)

        for outcome in ("written", "refused", "extractive", "cancelled", "smalltalk"):
            told = {"outcome": outcome, "assistant": "docs-assistant", "language": "en"}
            assert value(found, "answers_total", **told) == 1, outcome
        for name in ("first_text_seconds_count", "answer_seconds_count", "evidence_count"):
            assert value(found, name) == 4, name
        assert value(found, "evidence_bucket", le="1.0") == 4
        assert value(found, "step_seconds_count", step="synthesize") == 4
        assert value(found, "step_failures_total", step="keywords") >= 1
        assert value(found, "tokens_total", kind="prompt", step="synthesize") == 22
        assert value(found, "call_seconds_count", part="embedder", operation="embed_queries") == 4
        assert value(found, "call_failures_total", part="model", error="ModelUnavailable") >= 1
        assert value(found, "requests_total", route=CHAT, method="POST", status="200") == 4
        assert value(found, "requests_total", route=CHAT, status="404") == 1
        assert value(found, "requests_total", route="other", status="404") == 1
        assert value(found, "rejected_total", reason="model_not_found") == 1
        assert value(found, "index_ok", index="default") == 1
        assert value(found, "index_pages", index="default", language="en") == 2
        assert value(found, "index_chunks", index="default") == 2
        assert value(found, "answers_in_progress") == 0
        names = {family.name for family in found}
        assert {f"docs_assistant_{name}" for name in FIXED} <= names
        assert {"process_cpu_seconds", "python_gc_collections"} <= names
        for family in found:
            labels = {frozenset(s.labels) - {"le"} for s in family.samples}
            wanted = FIXED.get(family.name.removeprefix("docs_assistant_"))
            assert wanted is None or labels <= {frozenset(filter(None, wanted.split(",")))}, family.name


async def test_the_number_of_series_is_bounded_whatever_clients_send(tmp_path):
    async with indexed(tmp_path, with_model=False) as service:
        sizes = []
        for round_ in range(3):
            for n in range(4):
                name = f"{round_}-{n}"
                await ask(service.app, QUESTION, model=name)
                await ask(service.app, f"What is {name}?", user=name, language="en")
                for path in (f"/{name}", f"/docs/{name}", f"/v1/models/{name}", f"/v1/ingest/{name}"):
                    await get(service.app, path, **{"user-agent": name, "x-request-id": name})
            sizes.append(sum(len(family.samples) for family in await scraped(service.app)))
        assert sizes[1] == sizes[2]  # the first has no scrape before it


async def test_a_store_that_is_gone_is_not_ok_and_the_scrape_still_answers(tmp_path):
    async with indexed(tmp_path) as service:
        assert value(await scraped(service.app), "index_ok") == 1
        shutil.rmtree(tmp_path / "index")
        found = await scraped(service.app)
        assert value(found, "index_ok", index="default") == 0
        assert "docs_assistant_index_ok" in {family.name for family in found}
        assert value(found, "index_pages") == 2  # as last seen


async def test_who_may_read_them_and_in_which_form(tmp_path):
    key, admin = "reader-key-1234567890", "admin-key-1234567890"
    async with indexed(tmp_path, with_model=False, api_keys=key) as service:
        assert (await get(service.app)).status_code == 401
        assert (await get(service.app, authorization=f"Bearer {key}")).status_code == 200
    async with indexed(tmp_path / "2", with_model=False, api_keys=key, admin_keys=admin) as service:
        assert (await get(service.app, authorization=f"Bearer {key}")).status_code == 401
        assert (await get(service.app, authorization=f"Bearer {admin}")).status_code == 200
    async with indexed(tmp_path / "3", with_model=False) as service:
        for accept, kind in (
            ("*/*", "text/plain; version=0.0.4"),
            ("application/openmetrics-text;version=1.0.0,text/plain;q=0.5", "application/openmetrics-text"),
            ("application/openmetrics-text;version=odd", "text/plain; version=0.0.4"),
        ):
            response = await get(service.app, accept=accept)
            assert response.headers["content-type"].startswith(kind)
            assert response.text.endswith("# EOF\n") == (kind != "text/plain; version=0.0.4")


@pytest.mark.slow
async def test_promtool_finds_no_fault(tmp_path):
    tool = shutil.which("promtool") or str(Path(sys.executable).with_name("promtool"))
    if not Path(tool).exists():
        pytest.skip("needs promtool of Prometheus")
    async with indexed(tmp_path) as service:
        await ask(service.app, QUESTION)
        text = (await get(service.app)).content
    checked = subprocess.run([tool, "check", "metrics"], check=False, input=text, capture_output=True)
    assert (checked.returncode, checked.stdout, checked.stderr) == (0, b"", b"")

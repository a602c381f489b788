"""What the service says of its parts while they work, fail, hang and recover: over its real routes, store and HTTP calls."""

import asyncio
import json
import re
import time
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from app.assistants import health as watching
from app.assistants.assembly import opened
from app.core import breaker as breaking
from app.core.settings import Settings
from app.core.types import Chunk
from app.index import open_store
from app.index.run_history import EndedRun, RunOrigin, add_run
from app.models import open_embedder
from app.routes.answer_models import HealthBody
from app.routes.server import create_app
from tests.app.published import publish
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.end_to_end.program import free_port
from tests.fake_llm import Reply
from tests.fakes import WORDS_SETTING

TEXT = "To resize a volume, first detach the volume from its server."
QUESTION = "How do I resize a volume?"


@pytest.fixture
async def settings(llm, tmp_path):
    """Of an index with one page; the language model and the embedder are the scripted server."""
    values = {"store": str(tmp_path / "data"), "embedding_url": llm.url, "embedding_model": "eight"}
    values |= {"llm_url": llm.url, "llm_model": "m", "llm_timeout": 60.0, "helper_timeout": 60.0}
    settings = Settings.load(None, **values)
    store, embedder = open_store(settings), open_embedder(settings)
    await publish(store, embedder, Chunk("c", "docs", "https://example.org/volumes", 0, TEXT, "en", "Volumes"))
    await embedder.close()
    await store.close()
    return settings


@asynccontextmanager
async def service(settings, **changes):
    async with (
        opened(settings.model_copy(update=changes)) as assistants,
        client_of(create_app(assistants, settings)) as client,
    ):
        yield client


async def health(client):
    began = time.monotonic()
    response = await client.get("/health")
    assert time.monotonic() - began < 60  # a model that hangs does so for ten minutes
    TypeAdapter(HealthBody).validate_json(response.content)
    ready, live = await client.get("/health/ready"), await client.get("/health/live")
    return response.json() | {"statuses": (response.status_code, ready.status_code, live.status_code)}


async def ask(client, question=QUESTION):
    response = await client.post(CHAT, json=chat(question))
    assert response.status_code == 200, response.text
    return "extractive" if response.json().get("extractive") else "written"


async def test_a_part_fails_and_works_again_as_its_calls_do(llm, settings, monkeypatch):
    """Without a model, answers are extractive, and the service stays ready."""
    monkeypatch.setattr(breaking, "PAUSE", 0.0)  # each call tries the server
    async with service(settings) as client:
        assert await ask(client) == "written"
        told = await health(client)
        assert (told["status"], told["statuses"], told["parts"]["reranker"]) == ("ok", (200, 200, 200), None)
        for kind in ("model", "embedder", "store"):
            part = told["parts"][kind]
            assert (part["state"], part["failures"], part["last_failure"]) == ("ok", 0, None), kind
            assert part["last_success"]
            assert part["latency_ms"] >= 0
        failures = {
            "answered 500": Reply("boom", status=500),
            "answered 429": Reply("slow down", status=429, headers={"Retry-After": "60"}),
            "answered 401": Reply("wrong key", status=401),
        }
        for said, reply in failures.items():
            llm.reply = lambda _, reply=reply: reply
            assert await ask(client) == "extractive", said
            told = await health(client)
            model = told["parts"]["model"]
            assert (told["status"], told["statuses"], model["state"]) == ("degraded", (200, 200, 200), "failing"), said
            assert said in model["last_failure"]["error"]
            assert model["failures"] >= 1
            assert model["failing_since"] <= model["last_failure"]["at"]
            llm.reply = lambda _: Reply()
            assert await ask(client) == "written", said
            told = await health(client)
            assert (told["status"], told["parts"]["model"]["state"]) == ("ok", "ok"), said
            assert said in told["parts"]["model"]["last_failure"]["error"]
        llm.embedding_status = 500  # the search uses words only
        await ask(client, "detach a volume")
        told = await health(client)
        assert (told["status"], told["parts"]["embedder"]["state"]) == ("degraded", "failing")
        assert "no embeddings today" in json.dumps(told["parts"]["embedder"])
    async with service(settings, llm_timeout=1.5, helper_timeout=0.1) as client:
        llm.reply = lambda _: Reply(delay=600)
        assert await ask(client) == "extractive"
        model = (await health(client))["parts"]["model"]
        assert model["state"] == "failing"
        assert re.search(r"did not answer within 0\.1 s|said nothing new for 1\.5 s", model["last_failure"]["error"])


async def test_a_model_that_hangs_is_failing_before_any_call_ends_and_after_its_reader_left(llm, settings, monkeypatch):
    monkeypatch.setattr(breaking, "PATIENCE", 0.2)
    async with service(settings, llm_timeout=600.0, helper_timeout=600.0) as client:
        assert await ask(client) == "written"
        llm.reply = lambda _: Reply(delay=600)
        asked = asyncio.create_task(ask(client))
        async with asyncio.timeout(60):
            while (told := await health(client))["status"] == "ok":
                await asyncio.sleep(0.05)
        model = told["parts"]["model"]
        assert (told["status"], model["state"], model["failures"]) == ("degraded", "failing", 0)
        assert model["waiting_s"] >= 0.2
        asked.cancel()
        await asyncio.gather(asked, return_exceptions=True)
        model = (await health(client))["parts"]["model"]
        assert (model["state"], model["waiting_s"], model["failures"] > 0) == ("failing", None, True)
        assert "its reader left" in model["last_failure"]["error"]
        llm.reply = lambda _: Reply()
        assert await ask(client) == "written"
        assert (await health(client))["status"] == "ok"


async def test_a_server_that_nobody_called_is_asked_for_its_models_now_and_then(llm, settings, monkeypatch):
    """Never for an answer, which may cost money."""
    async with service(settings, llm_url=f"http://127.0.0.1:{free_port()}/v1") as client:  # nobody listens there
        told = await health(client)
        state = told["parts"]["model"]["state"]
        assert (told["status"], told["statuses"], state) == ("degraded", (200, 200, 200), "failing")
        assert "can't be reached" in told["parts"]["model"]["last_probe_failure"]["error"]
        assert (told["parts"]["embedder"]["state"], llm.listed) == ("ok", 1)
        await health(client)
        assert llm.listed == 1  # not again within 30 s
    for status, state in {404: "ok", 403: "failing", 503: "failing"}.items():
        llm.models_status = status
        async with service(settings, embedding_url="", embedding_model=WORDS_SETTING) as client:
            parts = (await health(client))["parts"]
            assert parts["model"]["state"] == state, status
            assert parts["embedder"]["state"] == "unknown"  # it has no server
    assert llm.calls == []
    llm.models_status = 200
    monkeypatch.setattr(watching, "IDLE", 0.0)
    monkeypatch.setattr(breaking, "INTERVAL", 0.0)
    monkeypatch.setattr(breaking, "PAUSE", 0.0)
    async with service(settings) as client:
        llm.reply = lambda _: Reply(status=500)
        for _ in range(breaking.FAILURES):
            assert await ask(client) == "extractive"
        told = await health(client)  # reachable, but nobody knows whether it answers
        assert (told["status"], told["parts"]["model"]["state"]) == ("ok", "unknown")
        assert "failing" not in told["details"]
        assert told["parts"]["model"]["failures"] >= breaking.FAILURES
        assert await ask(client) == "extractive"
        llm.models_status = 401
        llm.reply = lambda _: Reply()
        assert await ask(client) == "written"
        assert (await health(client))["parts"]["model"]["state"] == "ok"  # its key is good for answers


async def test_an_index_is_too_old_when_no_run_read_its_pages(settings):
    """A run that finds no change publishes nothing, but it is a run."""
    pointer = Path(settings.store) / "index.json"
    built_at = json.loads(pointer.read_text())["generations"][0]["info"]["built_at"]
    pointer.write_text(pointer.read_text().replace(built_at, "2026-01-02T03:04:05+00:00"))
    async with service(settings, max_index_age=24.0) as client:
        told = await health(client)
        assert (told["status"], told["statuses"]) == ("unavailable", (503, 503, 200))
        problem = (await client.get("/health/ready")).json()["problem"]
        assert told["details"]["index"] == problem
        assert "hours ago, and DOCS_MAX_INDEX_AGE is 24: run `docs-assistant ingest`" in problem
        store = open_store(settings)
        for result, status in {"failed": 503, "unpublished": 503, "partial": 200, "published": 200}.items():
            await add_run(store, EndedRun(RunOrigin(), 0.0, 1.0, result))
            assert (await client.get("/health/ready")).status_code == status, result
        await store.close()
    async with service(settings) as client:
        assert (await health(client))["status"] == "ok"

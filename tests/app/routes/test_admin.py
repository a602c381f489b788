"""/v1/admin: what operators see and do, on a real index, for admin keys only."""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from app.assistants.assembly import build, opened
from app.core.generation import GenerationInfo
from app.core.log_message import LogMessage
from app.core.settings import Settings
from app.core.types import Chunk, Page
from app.index import open_store
from app.index.run_history import EndedRun, RunOrigin, add_run
from app.routes.admin import answer_models as answers
from app.routes.admin.problems import MOST
from app.routes.server import create_app
from tests.app.routes.scripted import CHAT, JSON, chat, client_of, refused, serving
from tests.docs_assistant.cli.stored_index import SITE, Index, page_with
from tests.fakes import WORDS

ADMIN, READER = ({"authorization": f"Bearer {name}-key-of-tests"} for name in ("the-admin", "reader"))
CHUNK = ("chunks/x", "chunks/x/neighbours")
ROUTES = (*CHUNK, "index", "generations", "pages", "page?url=x", "gaps", "settings", "errors")


@asynccontextmanager
async def asked(
    index: Index, ingest_command: Sequence[str] = ("false",), **options: object
) -> AsyncIterator[httpx.AsyncClient]:
    """A client of the service on this index, with an admin key."""
    keys = {"admin_keys": "the-admin-key-of-tests", "api_keys": "reader-key-of-tests"}
    settings = Settings.load(None, **{"store": index.address, **keys, **options})
    async with opened(settings) as assistants:
        app = create_app(assistants, settings, ingest_command=ingest_command)
        async with client_of(app, headers=JSON | ADMIN) as client:
            yield client


async def publish(index: Index, *pages: tuple[Page, Sequence[Chunk]]) -> GenerationInfo:
    """One more generation, of these pages only."""
    return await asyncio.to_thread(index.publish, *pages)


async def read(client: httpx.AsyncClient, path: str, body: Any = None) -> Any:
    """The JSON at this address, which must have the form that is described."""
    response = await client.get(f"/v1/admin/{path}")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    if body:
        TypeAdapter(body).validate_json(response.content, extra="forbid")
    return response.json()


async def test_an_empty_index_is_a_problem_with_what_to_do(index):
    async with asked(index) as client:
        state = await read(client, "index", answers.AdminIndexBody)
        assert state["state"] == "broken"
        assert state["problems"][0]["code"] == "no_index"
        assert "docs-assistant ingest" in state["problems"][0]["to_do"]
        assert refused(await client.get("/v1/admin/pages")) == (503, "no_index")


async def test_the_state_names_what_is_wrong(index):
    """Pages that fail, languages without pages, no model, another embedder: each with its severity."""
    await publish(
        index, page_with("/a", "Alpha", language="en"), page_with("/b", "Beta", stale_since="2026-01-01T00:00:00+00:00")
    )
    async with asked(index, languages="cs en") as client:
        state = await read(client, "index", answers.AdminIndexBody)
        found = {one["code"]: one["severity"] for one in state["problems"]}
        assert found == {"pages_failing": "warning", "no_pages_in_language": "info", "no_model": "info"}
        assert state["state"] == "attention"
        (one,) = state["indexes"]
        assert one["pages_by_state"] == {"failing": 1, "ok": 1}
        assert one["generation"]["recipe"]["embedder"] == WORDS
    async with asked(index, embedding_url="http://127.0.0.1:9/v1", embedding_model="other") as client:
        state = await read(client, "index")
        assert (state["state"], state["problems"][0]["code"]) == ("attention", "embedder")


@pytest.mark.parametrize("index", ["embedded"], indirect=True)
async def test_a_run_that_failed_or_was_killed_is_a_problem_until_another_one_publishes(index):
    """The history in the index lacks a run that was killed; one that somebody stopped is no problem."""
    await publish(index, page_with("/a", "Alpha", language="en"))
    store = open_store(Settings.load(None, store=index.address))
    killed = ("sh", "-c", "echo Pages: 5 >&2; kill -9 $$")
    reasons = {("false",): "ended with code 1", killed: "was killed by signal 9", ("sleep", "60"): ""}
    for command, reason in reasons.items():
        async with asked(index, command, sites=SITE, languages="en") as client:
            run = (await client.post("/v1/ingest")).json()["id"]
            if not reason:
                assert (await client.post(f"/v1/ingest/{run}/cancel")).status_code == 202
            while (await client.get(f"/v1/ingest/{run}")).json()["state"] != "failed":
                await asyncio.sleep(0.02)
            state = await read(client, "index", answers.AdminIndexBody)
            found = [one for one in state["problems"] if one["code"] == "run_failed"]
            assert [reason in one["message"] for one in found] == [True] * bool(reason)
            assert (state["state"] == "attention") == bool(reason)
            listed = await read(client, "runs", answers.RunList)
            assert (listed["data"][0]["id"], listed["data"][0]["result"], listed["current"]) == (run, "failed", None)
            assert (reason or "Cancelled by") in listed["data"][0]["errors"][0]
            if reason:
                assert "start a run again" in found[0]["to_do"]
            await add_run(store, EndedRun(RunOrigin("nightly"), time.time() - 1, 1.0, "published", {"new": 1}))
            state = await read(client, "index")
            assert "run_failed" not in [one["code"] for one in state["problems"]]
            newest = (await read(client, "runs"))["data"][0]
            assert (newest["trigger"], newest["result"], newest["counts"]) == ("nightly", "published", {"new": 1})
    await store.close()


async def test_pages_are_filtered_counted_sorted_and_paged(index):
    """Counts of a filter leave out that filter, so that one can change it; `next` leads to the end."""
    await publish(
        index,
        page_with("/a", "Alpha", title="Zebra", source="s1"),
        page_with("/b", "Beta", title="Apple", language="cs", source="s1", modified=""),
        page_with("/c", "Gamma", title="Čáp", language="cs", source="s2", stale_since="2026-01-01T00:00:00+00:00"),
    )
    async with asked(index) as client:

        async def titles(query: str) -> list[str]:
            return [page["title"] for page in (await read(client, f"pages?{query}", answers.PageList))["data"]]

        assert await titles("sort=title") == ["Apple", "Zebra", "Čáp"]
        assert await titles("sort=-chunks&language=cs") == ["Apple", "Čáp"]
        one = {"q=cap": "Čáp", "q=/B": "Apple", "state=failing": "Čáp", "age=unknown": "Apple"}
        for query, title in (one | {"source=s1&language=en": "Zebra"}).items():
            assert await titles(query) == [title]
        counts = (await read(client, "pages?source=s1&language=cs"))["counts"]
        assert counts["language"] == {"en": 1, "cs": 1}
        assert counts["source"] == {"s1": 1, "s2": 1}
        seen, address = [], "v1/admin/pages?limit=2&sort=url"
        while address:
            part = (await client.get(f"/{address}")).json()
            seen += [page["url"] for page in part["data"]]
            address = part["next"]
        assert seen == [f"{SITE}/{name}" for name in "abc"]
        for query, param in (("state=lost", "state"), ("limit=0", "limit"), ("lang=cs", "lang"), ("index=x", "index")):
            error = (await client.get(f"/v1/admin/pages?{query}")).json()["error"]
            assert error["param"] == param


async def test_a_page_a_chunk_and_its_neighbours(index):
    """A page has its Markdown and where its chunks begin in it; from a chunk one comes to those that are near."""
    await publish(
        index, page_with("/a", "Volumes are large.", "Limits are small."), page_with("/b", "Volumes are large.")
    )
    async with asked(index) as client:
        page = await read(client, f"page?url={SITE}/a%23part", answers.PageBody)
        assert [chunk["text"] for chunk in page["chunks"]] == ["Volumes are large.", "Limits are small."]
        for chunk in page["chunks"]:
            assert page["markdown"][chunk["start"] :].startswith(chunk["text"])
        id_ = page["chunks"][0]["id"]
        chunk = await read(client, f"chunks/{id_}", answers.OneChunkBody)
        assert chunk["chunk"] == page["chunks"][0]
        assert chunk["chunks_of_page"] == [one["id"] for one in page["chunks"]]
        assert "volum" in " ".join(chunk["tokens"])
        assert chunk["embedded_text"].endswith("Volumes are large.")
        near = await read(client, f"chunks/{id_}/neighbours", answers.NeighbourList)
        duplicates = [(one["url"], one["near_duplicate"]) for one in near["data"]]
        assert duplicates == [(f"{SITE}/b", True), (f"{SITE}/a", False)]
        assert near["data"][0]["cosine"] == pytest.approx(1, abs=1e-3)
        assert len((await read(client, f"chunks/{id_}/neighbours?limit=1"))["data"]) == 1
        for path, code in (("page?url=https://x", "page_not_found"), ("chunks/x", "chunk_not_found")):
            assert refused(await client.get(f"/v1/admin/{path}")) == (404, code)


async def test_a_rollback_is_served_at_once_and_happens_once(index):
    """The request names the generation that comes back, so a request that is sent twice changes nothing more."""
    first = await publish(index, page_with("/a", "Old words about volumes."))
    second = await publish(index, page_with("/b", "New words about volumes."))
    question = {"query": "words about volumes"}

    async with asked(index) as client:

        async def answered() -> set[str]:
            found = await client.post("/v1/search", json=question, headers=READER)
            return {one["url"] for one in found.json()["data"]}

        assert await answered() == {f"{SITE}/b"}
        kept = await read(client, "generations", answers.GenerationList)
        assert [(one["id"], one["live"]) for one in kept["data"]] == [(second.id, True), (first.id, False)]
        wrong = await client.post("/v1/admin/rollback", json={"generation": second.id})
        assert refused(wrong) == (409, "rollback_refused")
        response = await client.post("/v1/admin/rollback", json={"generation": first.id})
        TypeAdapter(answers.RollbackBody).validate_json(response.content, extra="forbid")
        assert (response.json()["live"]["id"], response.json()["dropped"]) == (first.id, second.id)
        assert await answered() == {f"{SITE}/a"}
        again = await client.post("/v1/admin/rollback", json={"generation": first.id})
        assert refused(again) == (409, "rollback_refused")
        assert await answered() == {f"{SITE}/a"}


async def test_settings_say_where_they_come_from_and_no_secrets(tmp_path: Path, monkeypatch):
    """Environment, .env, file, command line, default; keys and passwords never."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCS_TOP_K", "7")
    Path(".env").write_text("DOCS_ADMIN_KEYS=the-admin-key-of-tests\nDOCS_LLM_KEY=s3cret\n", encoding="utf-8")
    Path("docs-assistant.toml").write_text(
        '[llm]\nurl = "http://me:s3cret@127.0.0.1:9/v1"\nextra_body = {api_key = "s3cret"}\nmodel = "m"\n',
        encoding="utf-8",
    )
    settings, origins = Settings.load_with_origins(port=8111)
    async with (
        opened(settings) as assistants,
        client_of(create_app(assistants, settings, origins=origins), headers=ADMIN) as client,
    ):
        text = (await client.get("/v1/admin/settings")).text
        body = await read(client, "settings", answers.SettingList)
    assert "s3cret" not in text
    assert "the-admin" not in text
    found = {one["name"]: (one["value"], one["from"]) for one in body["data"]}
    assert found["DOCS_TOP_K"] == (7, "environment")
    assert found["DOCS_LLM_KEY"] == ("(set)", ".env: DOCS_LLM_KEY")
    assert found["DOCS_LLM_MODEL"] == ("m", "docs-assistant.toml: llm.model")
    assert found["DOCS_PORT"] == (8111, "command line")
    assert found["DOCS_TUNING__PER_PAGE"][1] == "default"
    assert all(one["description"] for one in body["data"])
    assert next(one["key"] for one in body["data"] if one["name"] == "DOCS_TOP_K") == "retrieval.top_k"


def test_errors_are_counted_and_hold_no_question(tmp_path: Path):
    """With the id of the request; the last hundred; of unexpected errors only kind and place."""
    model = {"llm_url": "http://127.0.0.1:9/v1", "llm_model": "m"}
    settings = Settings.load(None, store=str(tmp_path / "index"), admin_keys="the-admin-key-of-tests", **model)
    Index(str(tmp_path / "index")).publish(page_with("/a", "Volumes are large and can be created."))
    log = logging.getLogger("app.test")
    body = chat("How are large volumes with pa55 created?")
    with serving(create_app(build(settings), settings)) as base, httpx.Client(base_url=base, headers=ADMIN) as client:
        assert client.post(CHAT, json=body, headers={"x-request-id": "mine"}).status_code == 200
        for n in range(3):
            log.warning(LogMessage("slow", took=n))
        try:
            raise ValueError("pa55")
        except ValueError:
            log.exception(LogMessage("failed", id="r1", error="ValueError", message="pa55"))
        response = client.get("/v1/admin/errors")
        TypeAdapter(answers.ErrorList).validate_json(response.content, extra="forbid")
        failed, slow, *others = response.json()["data"]
        assert "pa55" not in response.text
        assert (slow["message"], slow["count"]) == ("slow took=2", 3)
        assert (failed["request_id"], failed["level"]) == ("r1", "error")
        assert failed["exception"].startswith("ValueError in routes/test_admin.py:")
        assert [one["request_id"] for one in others if "language model" in one["message"]] == ["mine"]
        for n in range(MOST + 20):
            log.warning("other %s", "x" * n)
        assert len(client.get("/v1/admin/errors").json()["data"]) == MOST

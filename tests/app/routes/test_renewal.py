"""The exam that a service takes by itself when another model is behind its address: when, how often, and what readers get then."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.assistants.exam import Renewal, keep, kept, take
from app.core.settings import Settings
from app.models import open_model
from app.routes.server import create_app
from tests.app.assistants.test_exam import DETECTOR, INVENTED, PROMPTS, obeying, result
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import FakeLLM, Reply, fake_llm

QUESTION = "How much memory does a notebook get?"


def settings_for(llm: FakeLLM, folder: Path, **more: Any) -> Settings:
    models = {"llm_url": llm.url, "llm_model": "m", "embedding_url": llm.url, "embedding_model": "e"}
    return Settings.load(None, store=str(folder / "index"), helper_timeout=60.0, **models, **more)


async def examined(settings: Settings) -> None:
    """An operator takes the exam of the model that is there."""
    model = open_model(settings, patient=True)
    assert model
    try:
        keep(await take(model, settings, PROMPTS, DETECTOR), settings)
    finally:
        await model.close()


@asynccontextmanager
async def started(settings: Settings) -> AsyncIterator[Any]:
    """A client of the service, while it runs in the background what a start runs."""
    async with opened(settings) as assistants:
        app = create_app(assistants, settings)
        async with app.router.lifespan_context(app), client_of(app) as client, asyncio.timeout(60):
            yield client


async def exam_in_health(client: Any) -> str:
    return str((await client.get("/health")).json()["details"].get("exam", ""))


async def until_examined(client: Any) -> str:
    """What `/health` says of the exam, once it says something."""
    while not (said := await exam_in_health(client)):
        await asyncio.sleep(0.01)
    return said


async def asked_at_start(settings: Settings, llm: FakeLLM) -> int:
    """How often the model is asked by what a start does in the background."""
    asked = len(llm.calls)
    async with opened(settings) as assistants, asyncio.timeout(60):
        await Renewal(assistants, settings, lambda _: None).run()
    return len(llm.calls) - asked


async def test_a_renamed_model_is_examined_once_and_its_result_heeded_without_a_restart(tmp_path: Path) -> None:
    """Readers are answered meanwhile; afterwards they get quotations, as this model invents. The next start asks nothing."""
    own = Settings.load(None, store=str(tmp_path / "index"))
    keep(result("old", grades={"en": "full"}, form="full", left_out=()), own)
    options = {"llm_timeout": 60.0, "helper_timeout": 60.0, "admin_open": True}
    async with indexed(tmp_path, **options) as service, asyncio.timeout(60):
        service.llm.reply = lambda _: Reply("Each notebook gets at most 4 GB of memory [1].")
        async with client_of(service.app) as client:
            assert not (await client.post(CHAT, json=chat(QUESTION))).json().get("extractive")
            service.llm.reply = lambda _: Reply(INVENTED["en"])
            async with service.app.router.lifespan_context(service.app):
                assert (await client.post(CHAT, json=chat(QUESTION))).status_code == 200
                assert "quotations only" in await until_examined(client)
                assert (await client.post(CHAT, json=chat(QUESTION))).json()["extractive"]
                problems = (await client.get("/v1/admin/index")).json()["problems"]
        assert set(kept(own)) == {"old", "m"}
        assert "quotations only" in next(one["message"] for one in problems if one["code"] == "exam")
        async with started(settings_for(service.llm, tmp_path)) as client:
            assert "quotations only" in await exam_in_health(client)
        assert await asked_at_start(settings_for(service.llm, tmp_path), service.llm) == 0


async def test_another_model_behind_the_same_name_is_examined_again(tmp_path: Path) -> None:
    """The list of the second server has another size. One that says that the model is as old as the request says nothing by that."""
    async with fake_llm() as first, fake_llm() as second:
        for llm, size in ((first, 7), (second, 70)):
            llm.models, llm.reply = ["m"], obeying()
            llm.entry = lambda _, size=size: {"created": int(time.time()), "meta": {"n_params": size}}
        second.reply = lambda _: Reply(INVENTED["en"])
        await examined(settings_for(first, tmp_path))
        assert kept(settings_for(first, tmp_path))["m"].fingerprint == "id=m n_params=7"
        assert await asked_at_start(settings_for(first, tmp_path), first) == 0
        async with started(settings_for(first, tmp_path)) as client:
            assert "full prompt" in await exam_in_health(client)
        async with started(settings_for(second, tmp_path)) as client:
            while "quotations only" not in await exam_in_health(client):
                await asyncio.sleep(0.01)
        assert kept(settings_for(first, tmp_path))["m"].fingerprint == "id=m n_params=70"


@pytest.mark.parametrize(("examined_before", "more"), [(False, {}), (True, {"heed_exam": False})])
async def test_no_exam_is_taken_that_nobody_wants(
    llm: FakeLLM, tmp_path: Path, examined_before: bool, more: dict[str, Any]
) -> None:
    """The first one is the operator's to take, and a setting switches the others off."""
    if examined_before:
        keep(result("old"), settings_for(llm, tmp_path))
    assert await asked_at_start(settings_for(llm, tmp_path, **more), llm) == 0
    if examined_before:
        assert await asked_at_start(settings_for(llm, tmp_path), llm) > 30


async def test_an_exam_that_fails_leaves_all_as_it_was_and_is_logged(
    llm: FakeLLM, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A model that breaks off in the middle has not been examined: its failures are no bad answers."""
    obeys = obeying()
    llm.reply = lambda body: obeys(body) if len(llm.calls) < 6 else Reply("overloaded", status=500)
    keep(result("old"), settings_for(llm, tmp_path))
    async with started(settings_for(llm, tmp_path)) as client:
        while "exam not taken" not in caplog.text:
            await asyncio.sleep(0.01)
        assert not await exam_in_health(client)
    assert set(kept(settings_for(llm, tmp_path))) == {"old"}
    (line,) = [record.getMessage() for record in caplog.records if "exam not taken" in record.getMessage()]
    assert "model=m" in line
    assert "overloaded" in line

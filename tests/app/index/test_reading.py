"""What readers are told while the first run reads the pages."""

from __future__ import annotations

import io
import os
import time
from pathlib import Path

import pytest

from app.assistants.assembly import opened
from app.core.errors import NoIndex, StillReading
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.index.run_history import FILE, STILL_READING, reading, run_reading, tell_reading
from app.routes.server import create_app
from ingestion import progress
from ingestion.progress import open_progress
from tests.app.routes.scripted import client_of


@pytest.mark.parametrize(
    ("question", "told"),
    [
        ("How do I set a quota for the project?", "being read: 30 of 120 pages, about 3 min left"),
        ("Jak nastavím kvótu projektu?", "30 z 120 stránek, zbývá asi 3 min"),
    ],
)
async def test_a_question_is_told_how_far_the_first_run_is_in_its_language(question: str, told: str, tmp_path: Path):
    request = Request((Message("user", question),))
    async with opened(Settings.load(None, store=str(tmp_path))) as assistants:
        tell_reading(tmp_path, 30, 120, 3, began=time.time())
        with pytest.raises(StillReading, match=told):
            await anext(assistants.get("").answer(request))
        old = (tmp_path / FILE).stat().st_mtime - STILL_READING - 1
        os.utime(tmp_path / FILE, (old, old))
        with pytest.raises(NoIndex, match="docs-assistant ingest"):
            await anext(assistants.get("").answer(request))


async def test_page_search_and_admin_say_the_same(tmp_path: Path):
    """A page that begins, a search, and the overview of the operator."""
    said = "30 of 120 pages, about 3 min left"
    settings = Settings.load(None, store=str(tmp_path), admin_keys="the-admin-key-of-tests")
    bearer = {"authorization": "Bearer the-admin-key-of-tests"}
    async with opened(settings) as assistants, client_of(create_app(assistants, settings), headers=bearer) as client:
        assert (await client.get("/v1/interface")).json()["reading"] == {}
        tell_reading(tmp_path, 30, 120, 3, began=time.time())
        begun = (await client.get("/v1/interface")).json()
        assert begun["index"] is None
        assert said in begun["reading"]["en"]
        searched = await client.post("/v1/search", json={"query": "How do I set a quota?"})
        assert (searched.status_code, searched.json()["error"]["code"]) == (503, "still_reading")
        assert said in searched.json()["error"]["message"]
        state = (await client.get("/v1/admin/index")).json()
        told = next(one for one in state["problems"] if one["code"] == "still_reading")
        assert "30 of 120 pages; about 3 min" in told["message"]
        assert "no_index" not in {one["code"] for one in state["problems"]}


def test_a_run_tells_its_pages_until_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(progress, "TOLD_EVERY", 0)
    shown = open_progress(io.StringIO(), tmp_path, "nightly")
    shown.stage("Reading sitemaps", 0)
    assert reading(tmp_path) is None
    shown.stage("Pages", 4)
    shown.advance(1, "a")
    assert reading(tmp_path) == {"done": 1, "total": 4, "minutes": 1}
    assert run_reading(tmp_path)["trigger"] == "nightly"
    (tmp_path / FILE).write_text("[")
    assert reading(tmp_path) is None
    shown.close()
    assert not (tmp_path / FILE).exists()

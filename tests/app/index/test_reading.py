"""What readers are told while the first run reads the pages."""

from __future__ import annotations

import io
import os
from pathlib import Path

import pytest

from app.assistants.assembly import opened
from app.core.errors import NoIndex, StillReading
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.index.run_history import FILE, STILL_READING, reading, run_reading, tell_reading
from ingestion import progress
from ingestion.progress import open_progress


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
        tell_reading(tmp_path, 30, 120, 60.0)
        with pytest.raises(StillReading, match=told):
            await anext(assistants.get("").answer(request))
        old = (tmp_path / FILE).stat().st_mtime - STILL_READING - 1
        os.utime(tmp_path / FILE, (old, old))
        with pytest.raises(NoIndex, match="docs-assistant ingest"):
            await anext(assistants.get("").answer(request))


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

"""Steps read of a turn what they declare, and write no more: the proof of their order and the trace rest on that."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import AsyncIterator
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Turn
from app.core.types import Chunk
from app.index import Store, open_store
from app.models.openai import OpenAIModel
from app.pipeline.registry import GIVEN, Tools
from app.pipeline.registry import steps as known
from app.pipeline.runner import run
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS
from tests.app.published import publish
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.plugins

PROMPTS = load_prompts(("cs", "en"))
UNUSED = {"unsure", "referred", "period", "recency", "sections"}
"""What `query_for` reads and these steps make nothing of: for a ranking, which comes later, or for other words."""
SEARCHING = {"probe", "first_search", "multi_query", "hyde"}
TALK = (Message("user", "How do I get storage?"), Message("assistant", "Ask [1]."), Message("user", "For how long?"))
FOUND = ("hits", "legs", "vector", "refined", "keywords")
HELPERS = {"refine", "keywords"}
BEFORE = [name for name in known() if name not in HELPERS]


class Watched(Turn):
    """A turn that remembers which of its fields a step read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        if sys._getframe(1).f_globals["__name__"] != "dataclasses":  # a copy of a turn reads none of it
            Watched.read.add(name)
        return super().__getattribute__(name)


class Scores:
    """A reranker to which all passages are alike."""

    name = "scores"

    async def rerank(self, question: str, passages: list[str]) -> list[float]:
        return [0.25 for _ in passages]


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    """An index of four pages in two parts of a site."""
    opened = open_store(SETTINGS.model_copy(update={"store": str(tmp_path)}))
    chunks = (
        Chunk(path, "docs", f"https://example.org/{path}", 0, f"How long {path} lasts. " * 100, "en", path)
        for path in ("storage/claims", "storage/limits", "gpu/limits", "gpu/nodes")
    )
    await publish(opened, FakeEmbedder(), *chunks)
    yield opened
    await opened.close()


@pytest.mark.parametrize("name", known())
@pytest.mark.parametrize("given", ["all", "little", "no model"])
async def test_a_step_reads_and_writes_what_it_declares(
    store: Store, llm: FakeLLM, model: OpenAIModel, name: str, given: str
) -> None:
    """Behind all that can stand before it, where that found nothing, and where nobody writes an answer."""
    answers = {"question": "How long does storage last?", "en": ["storage"], "cs": ["úložiště"]}
    llm.reply = lambda _: Reply(f"{json.dumps(answers)}\nen: storage\n[1] It lasts." if name != "helpful" else "1")
    tools = Tools(
        SETTINGS.model_copy(update={"helper_calls": 20}),
        PROMPTS, LanguageDetector(PROMPTS.languages, "en"), model, FakeEmbedder(), Scores(),  # type: ignore[arg-type]
    )  # fmt: skip
    before = BEFORE[: BEFORE.index(name)] if name in BEFORE else ["detect", "period"]
    plan = tuple((known()[step].make(tools),) for step in before)
    turn = await run(plan, Turn(Request(TALK), await store.live()))
    empty, without = Turn(Request(())), FOUND if given == "little" else ()
    fields_ = {f.name: getattr(empty if f.name in without else turn, f.name) for f in fields(turn)}
    away = given == "no model" and not known()[name].step.helper_calls
    step = known()[name].make(replace(tools, model=None) if away else tools)
    Watched.read.clear()
    with contextlib.suppress(ModelError):
        changes = await step(Watched(**fields_))
        if "events" in changes:
            assert [event async for event in changes["events"]]
        assert set(changes) <= set(step.writes)
    assert Watched.read <= {*step.reads, *step.uses, *GIVEN, "calls", "citing"} | (
        UNUSED if name in SEARCHING else set()
    )

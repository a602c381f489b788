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
from app.models import Model
from app.pipeline.registry import GIVEN, Tools
from app.pipeline.registry import steps as known
from app.pipeline.runner import run
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS
from tests.app.published import publish
from tests.fake_llm import FakeLLM, Reply
from tests.fake_reranker import reranker
from tests.fakes import FakeEmbedder

pytestmark = pytest.mark.plugins

PROMPTS = load_prompts(("cs", "en"))
UNUSED = {"dates", "sections"}
"""What `query_for` reads and these steps make nothing of: for a ranking, which comes later, or for other words."""
SEARCHING = {"probe", "first_search", "multi_query", "hyde"}
TALK = (Message("user", "How do I get storage?"), Message("assistant", "Ask [1]."), Message("user", "For how long?"))
FOUND = ("hits", "search", "probe", "refined", "keywords")
HELPERS = {"refine", "keywords"}
BEFORE = [name for name in known() if name not in HELPERS]


class Watched(Turn):
    """A turn that remembers which of its fields a step read."""

    read: ClassVar[set[str]] = set()

    def __getattribute__(self, name: str) -> Any:
        copies = sys._getframe(1).f_globals["__name__"] == "dataclasses"  # a copy of a turn reads none of it
        if name in Turn.__dataclass_fields__ and not copies:
            Watched.read.add(name)
        return super().__getattribute__(name)


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


def tools_with(model: Model, **more: Any) -> Tools:
    return Tools(
        SETTINGS.model_copy(update={"helper_calls": 20}),
        PROMPTS, LanguageDetector(PROMPTS.languages, "en"), model, FakeEmbedder(),  # type: ignore[arg-type]
        reranker(lambda _, passages: [0.25 for _ in passages]), **more,
    )  # fmt: skip


@pytest.mark.parametrize("quoted", ["en", "cs"])
async def test_no_step_asks_the_model_in_a_language_that_is_only_quoted(
    store: Store, llm: FakeLLM, model: Model, quoted: str
) -> None:
    """Its exam says that readers are better off without it there; helper steps would only make them wait."""
    llm.reply = lambda _: Reply("en: storage\n[1] It lasts.")
    tools = tools_with(model, quoted=frozenset({quoted}))
    turn = await run(tuple((box.make(tools),) for box in known().values()), Turn(Request(TALK), await store.live()))
    assert turn.events
    assert [event async for event in turn.events]
    asked = set(turn.calls.begun)
    assert not llm.calls if quoted == "en" else asked >= {"refine", "keywords", "analyze", "helpful", "synthesize"}, (
        asked
    )


@pytest.mark.parametrize("given", ["all", "little", "no model"])
async def test_a_step_reads_and_writes_what_it_declares(store: Store, llm: FakeLLM, model: Model, given: str) -> None:
    """Behind all that can stand before it, where that found nothing, and where nobody writes an answer."""
    answers = {"question": "How long does storage last?", "en": ["storage"], "cs": ["úložiště"]}
    tools = tools_with(model)
    made = {name: box.make(tools) for name, box in known().items()}
    for name, box in known().items():
        said = "1" if name == "helpful" else f"{json.dumps(answers)}\nen: storage\n[1] It lasts."
        llm.reply = lambda _, said=said: Reply(said)
        before = BEFORE[: BEFORE.index(name)] if name in BEFORE else ["detect", "period"]
        plan = tuple((made[step],) for step in before)
        turn = await run(plan, Turn(Request(TALK), await store.live()))
        empty, without = Turn(Request(())), FOUND if given == "little" else ()
        fields_ = {f.name: getattr(empty if f.name in without else turn, f.name) for f in fields(turn)}
        away = given == "no model" and not box.step.helper_calls
        step = box.make(replace(tools, model=None)) if away else made[name]
        Watched.read.clear()
        with contextlib.suppress(ModelError):
            changes = await step(Watched(**fields_))
            if "events" in changes:
                assert [event async for event in changes["events"]], name
            assert set(changes) <= set(step.writes), name
        declared = {*step.reads, *step.uses, *GIVEN, "calls", "citing"}
        assert Watched.read <= declared | (UNUSED if name in SEARCHING else set()), name

"""A brief question behind another one is searched alone first; the subject before it is carried over where that alone finds something."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Turn
from app.core.types import Chunk, Vector
from app.index.embedded.store import EmbeddedStore
from app.models import Model
from app.pipeline.registry import Tools, make_plan
from app.pipeline.runner import run
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS
from tests.app.published import publish
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
DETECTOR = LanguageDetector(PROMPTS.languages, "en")
WORDS_ALONE = SETTINGS.model_copy(update={"vector_weight": {"*": 0.0}})  # the vectors of the tests know letters only
PAGES = {
    "readers": "A screen reader reads this page aloud to people.",
    "braille": "Braille displays show a single line of it.",
    "notebooks": "Notebooks in the cloud cost four crowns.",
    **{f"move-{n}": f"To move box {n} will cost time." for n in range(12)},
}
STEPS = ["detect", "carry_over", "first_search", ["refine", "keywords"], "retrieve", "relevance", "synthesize", "cite"]


class Counting(FakeEmbedder):
    """Remembers the questions."""

    def __init__(self) -> None:
        super().__init__()
        self.questions: list[str] = []

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self.questions += texts
        return await super().embed_queries(texts)


EMBEDDER = Counting()
Ask = Callable[..., Awaitable[Turn]]


@pytest.fixture
async def ask(tmp_path: Path) -> AsyncIterator[Ask]:
    """Asks questions one after the other by the default steps, up to the judgement of what was found."""
    store, site = EmbeddedStore(tmp_path / "index"), "https://docs.example.org/"
    chunks = (Chunk(name, "docs", site + name, 0, text, "en", name) for name, text in PAGES.items())
    await publish(store, FakeEmbedder(), *chunks)

    async def asked(*questions: str, model: Model | None = None) -> Turn:
        EMBEDDER.questions.clear()
        plan = make_plan(STEPS, Tools(WORDS_ALONE, PROMPTS, DETECTOR, model, EMBEDDER))  # type: ignore[arg-type]
        until = next(i for i, group in enumerate(plan) if group[0].name == "synthesize")
        request = Request(tuple(Message("user", question) for question in questions))
        return await run(plan[:until], Turn(request, await store.live()))

    yield asked
    await store.close()


def found(turn: Turn) -> list[str]:
    return [hit.chunk.id for hit in turn.hits]


async def test_a_brief_question_finds_what_it_finds_alone(ask: Ask) -> None:
    """Whatever was asked before, and it is searched once."""
    for question in ("braille", "notebooks", "screen reader?"):
        alone = await ask(question)
        second = await ask("What is a screen reader for?", question)
        assert found(second) == found(alone) != []
        assert second.asked.referred == ""
        assert EMBEDDER.questions == [question]


async def test_a_question_that_finds_nothing_alone_takes_the_subject_along(ask: Ask) -> None:
    """What something costs stands on many pages in passing, and on that of the subject; the steps after it search once for both."""
    before = "How do I get notebooks?"
    assert found(await ask("cost?")) == []
    second = await ask(before, "cost?")
    assert (second.asked.referred, found(second)[0]) == (before, "notebooks")
    assert EMBEDDER.questions == ["cost?", f"{before} cost?", "cost?"]


async def test_the_old_subject_is_no_answer_to_a_word_that_no_page_has(ask: Ask) -> None:
    """Together, the earlier question alone would find its page again."""
    second = await ask("How do I get notebooks in the cloud?", "teleportation")
    assert (second.asked.referred, found(second)) == ("", [])


async def test_only_brief_questions_behind_others_are_searched_before(ask: Ask) -> None:
    """A question that points back has its subject already; a long one says it; the first one has none before it."""
    for questions in (
        ("cost?",),
        ("Notebooks?", "and its cost?"),
        ("Notebooks?", "Where do people move box seven cheaply?"),
    ):
        turn = await ask(*questions)
        assert {record.step: record.changes for record in turn.trace}["carry_over"] == {}
        assert len(EMBEDDER.questions) == len({turn.asked.in_context, turn.asked.text})


async def test_a_model_does_not_see_the_subject_before_a_brief_question(ask: Ask, llm: FakeLLM, model: Model) -> None:
    """It rewrites and completes the question alone; a rewrite that brings the old subject all the same isn't used."""
    llm.reply = lambda _: Reply("How do I use braille with notebooks?")
    turn = await ask("How do I get notebooks?", "braille", model=model)
    sent = [call["messages"][-1]["content"] for call in llm.calls]
    assert sent
    assert set(sent) == {"braille"}
    assert turn.refined is None

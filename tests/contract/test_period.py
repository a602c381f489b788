"""From a question's words to the ranking: its period is found, and the pages of that time are lifted on a real store."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace

import pytest

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Message, Request, Turn
from app.core.types import Chunk
from app.index.protocols import Store
from app.models.openai import Endpoint, OpenAIModel
from app.pipeline.runner import run
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import Retrieve
from plugins.steps.period import PERIOD_BOOST, RECENCY_LOSS, AskedPeriod, open_rules
from tests.contract.pages import DIMENSION, RECIPE, SITE, chunks_of, put_chunks, vector
from tests.fake_llm import Reply, fake_llm

PROMPTS = load_prompts(("cs", "en"))
RULES = open_rules(PROMPTS)
SETTINGS = Settings.load(None, top_k=10, helper_timeout=60.0)
TODAY = dt.date(2025, 3, 14)
LIMITS = "Harbor memory limits"
PAGES: dict[str, tuple[str, dict[str, str]]] = {
    "undated": (f"{LIMITS}.", {}),
    "2023": (f"{LIMITS} of projects.", {"modified": "2023-04-01"}),
    "2024": (f"{LIMITS} of projects and users.", {"published": "2024-04-01"}),
    "2025": (f"{LIMITS} of projects and users and robots.", {"published": "2022-01-01", "modified": "2025-02-01"}),
    "other": ("Something else about Harbor.", {"modified": "2025-02-20"}),
}
NAMES = {text: name for name, (text, _) in PAGES.items()}


class Words:
    """The vectors that the store was filled with."""

    name = RECIPE.embedder
    dimension = DIMENSION

    async def embed_queries(self, texts):
        return [vector(text) for text in texts]


@pytest.fixture
async def dated(store: Store) -> Store:
    async with await store.draft(RECIPE) as draft:
        for name, (text, dates) in PAGES.items():
            chunk: Chunk = chunks_of(f"{SITE}/{name}", text, title="")[0]
            await put_chunks(draft, (replace(chunk, **dates),))
        await draft.publish()
    return store


async def ranked(
    store: Store, question: str, model: OpenAIModel | None = None, *, step: bool = True, **values
) -> tuple[Turn, dict[str, float]]:
    """The turn at the end, and by page what its hits were boosted with, best first."""
    settings = SETTINGS.model_copy(update=values)
    steps = (
        *((AskedPeriod(model, PROMPTS, settings, RULES, lambda: TODAY),) if step else ()),
        Retrieve(Words(), PROMPTS, settings),
        Relevance(PROMPTS, settings),
    )
    asked = Turn(Request((Message("user", question),)), await store.live(), question, "en")
    turn = await run(tuple((step,) for step in steps), asked)
    return turn, {NAMES[hit.chunk.text]: hit.boost for hit in turn.hits}


async def test_without_the_step_words_alone_decide(dated: Store) -> None:
    """What the other tests change: the shortest text is the best, and nothing is boosted."""
    _, hits = await ranked(dated, LIMITS, step=False)
    assert next(iter(hits)) == "undated"
    assert set(hits.values()) == {1.0}


@pytest.mark.parametrize(
    ("period", "lifted"),
    [
        ("since January 2025", {"2025"}),
        ("since April 2024", {"2024", "2025"}),
        ("before May 2024", {"2023", "2024"}),
        ("changed in 2024", {"2024"}),
        ("since 14 March 2025", set()),
    ],
)
async def test_pages_of_the_asked_time_are_lifted_and_none_is_dropped(
    dated: Store, period: str, lifted: set[str]
) -> None:
    """Fifteen times, first; a page that never changed is of the day it came out; what words alone would keep is kept."""
    _, without = await ranked(dated, LIMITS, step=False)
    _, hits = await ranked(dated, f"{LIMITS} {period}", min_evidence=0.0)
    assert {name for name, boost in hits.items() if boost == PERIOD_BOOST} - {"other"} == lifted
    assert set(list(hits)[: len(lifted)]) == lifted
    assert set(hits) >= set(without)
    assert hits["undated"] == 1.0


async def test_without_a_time_newer_pages_count_more(dated: Store) -> None:
    """Divided by 1 + half of the age in years; a page without a date as the middle one of the others."""
    _, hits = await ranked(dated, LIMITS)
    ages = {name: (TODAY - dt.date.fromisoformat(day)).days / 365.25 for name, day in
            {"2023": "2023-04-01", "2024": "2024-04-01", "2025": "2025-02-01"}.items()}  # fmt: skip
    for name, age in ages.items():
        assert hits[name] == pytest.approx(1 / (1 + RECENCY_LOSS * age))
    assert hits["2023"] < hits["undated"] < hits["2025"]


async def test_a_time_that_only_the_model_understands_does_the_same(dated: Store) -> None:
    async with fake_llm() as llm:
        llm.reply = lambda _: Reply('{"operator": "gte", "date": "2024-12-01", "question": "Harbor memory limits"}')
        model = OpenAIModel(Endpoint(llm.url, timeout=60), "m")
        turn, hits = await ranked(dated, f"{LIMITS} since mid-2024", model)
        await model.close()
    assert turn.topic == LIMITS
    assert next(iter(hits)) == "2025"
    assert hits["2025"] == PERIOD_BOOST
    assert {"undated", "2023", "2024"} <= set(hits)

"""What is kept of reranked passages: the thresholds with their boundaries, and what the model says where they are unsure."""

from dataclasses import replace

import pytest

from app.core.errors import ModelRateLimited
from app.core.prompts import load_prompts
from app.models import Model
from plugins.steps.choices import Helpful, by_score
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))


def scored(*scores: float | None) -> tuple:
    return tuple(replace(hit(n), rerank=score) for n, score in enumerate(scores, start=1))


@pytest.mark.parametrize(
    ("scores", "kept"),
    [
        ((0.9, 0.2, 0.2), 3),
        ((0.9, 0.2, 0.19), 3),
        ((0.9, 0.2, 0.1999, 0.1), 4),
        ((0.9, 0.2, 0.2, 0.19), 3),
        ((0.3, 0.1, 0.0999), 2),
        ((0.3, 0.05), 1),
    ],
)
def test_good_passages_are_kept_and_fair_ones_where_few_are_good(scores: tuple[float, ...], kept: int) -> None:
    """0.20 where three or more reach it, else 0.10, both included."""
    assert len(by_score(scored(*scores))) == kept


@pytest.mark.parametrize(("best", "calls"), [(0.3, 0), (0.2999, 1)])
async def test_the_model_is_asked_only_below_the_threshold(llm: FakeLLM, model: Model, best: float, calls: int) -> None:
    llm.reply = lambda _: Reply("2")
    hits = scored(best, 0.25, 0.01)
    changes = await Helpful(model, PROMPTS, SETTINGS)(turn(hits=hits))
    assert len(llm.calls) == calls
    assert changes == {"hits": (hits[1],) if calls else hits[:2]}


async def test_nothing_helpful_leaves_related_pages_and_without_a_model_the_scores_decide(
    llm: FakeLLM, model: Model
) -> None:
    """Where the reranker was away there is nothing to judge by."""
    assert await Helpful(model, PROMPTS, SETTINGS)(turn(hits=scored(None, None))) == {}
    assert llm.calls == []
    llm.reply = lambda _: Reply("None.")
    hits = scored(0.1, 0.1)
    assert await Helpful(model, PROMPTS, SETTINGS)(turn(hits=hits)) == {"hits": (), "related": hits}
    hits = scored(0.15, 0.05)
    assert await Helpful(None, PROMPTS, SETTINGS)(turn(hits=hits)) == {"hits": hits[:1]}


async def test_passages_that_the_model_did_not_see_are_kept_by_their_scores(llm: FakeLLM, model: Model) -> None:
    """It can't judge what there was no room for."""
    llm.reply = lambda _: Reply("2")
    long = tuple(replace(one, chunk=replace(one.chunk, text="Text. " * 900)) for one in scored(0.29, 0.2, 0.1, 0.0999))
    changes = await Helpful(model, PROMPTS, SETTINGS)(turn(hits=long))
    assert "[3]" not in llm.calls[0]["messages"][0]["content"]
    assert [h.chunk.id for h in changes["hits"]] == ["c2", "c3"]


@pytest.mark.parametrize(("refusals", "error"), [(1, None), (2, ModelRateLimited)])
async def test_a_refusal_is_one_call_with_its_repetition(
    llm: FakeLLM, model: Model, refusals: int, error: type[Exception] | None
) -> None:
    """A question's last helper call may be refused and made again; twice refused, the step is left out."""
    llm.reply = lambda _: Reply("1", status=429 if len(llm.calls) <= refusals else 200, headers={"Retry-After": "0"})
    settings, asked = SETTINGS.model_copy(update={"helper_calls": 1}), turn(hits=scored(0.2, 0.1))
    if error:
        with pytest.raises(error):
            await Helpful(model, PROMPTS, settings)(asked)
    else:
        assert [h.chunk.id for h in (await Helpful(model, PROMPTS, settings)(asked))["hits"]] == ["c1"]
    assert len(llm.calls) == 2
    assert asked.calls.begun == {"helpful": Helpful.helper_calls}
    assert [call.step for call in asked.calls.ended] == ["helpful"]

"""assistants.toml is proved at start-up: names, order, writers."""

import pytest

from app.core.errors import SettingsError
from app.core.language import LanguageDetector
from app.core.models.openai import Endpoint, OpenAIEmbedder, OpenAIModel
from app.core.prompts import load_prompts
from app.pipeline.registry import Tools, make_plan, upto
from tests.app.pipeline.turns import SETTINGS

PROMPTS = load_prompts(("cs", "en"))
ENDPOINT = Endpoint("http://127.0.0.1:9/v1", timeout=1)
STEPS = ["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "synthesize", "cite"]


def tools(*, model: bool = True) -> Tools:
    chosen = OpenAIModel(ENDPOINT, "m") if model else None
    return Tools(SETTINGS, PROMPTS, LanguageDetector(PROMPTS.languages, "en"), chosen, OpenAIEmbedder(ENDPOINT, "e"))


def names(plan: tuple) -> list[list[str]]:
    return [[step.name for step in group] for group in plan]


def test_the_shipped_order_makes_a_plan() -> None:
    """Groups stay together, in order."""
    assert names(make_plan(STEPS, tools())) == [
        ["detect"],
        ["refine", "keywords", "probe"],
        ["retrieve"],
        ["relevance"],
        ["synthesize"],
        ["cite"],
    ]


def test_steps_that_need_a_model_are_left_out_without_one() -> None:
    """The extractive service asks nobody."""
    assert names(make_plan(STEPS, tools(model=False))) == [
        ["detect"],
        ["probe"],
        ["retrieve"],
        ["relevance"],
        ["synthesize"],
        ["cite"],
    ]


def test_helpers_can_be_left_out() -> None:
    """The shortest pipeline is enough for an answer."""
    plan = make_plan(["detect", "retrieve", "synthesize", "cite"], tools())
    assert names(upto(plan, "search")) == [["detect"], ["retrieve"]]


@pytest.mark.parametrize(
    ("steps", "says"),
    [
        (["detect", "rerankk"], "Unknown step 'rerankk'.*detect, "),
        (["detect", "cite", "retrieve", "synthesize"], "cite needs hits, events.*put retrieve before it"),
        (["retrieve", "detect", "synthesize"], "retrieve needs question.*put detect before it"),
        (["detect", "retrieve", "keywords", "synthesize"], "retrieve uses keywords, so it must come after keywords"),
        (["detect", ["probe", "retrieve"], "synthesize"], "probe, retrieve write legs at the same time"),
        (["detect", "retrieve"], "synthesize is missing"),
        (["detect", ["keywords", "retrieve"], "synthesize"], "retrieve uses keywords, so it must come after"),
    ],
)
def test_an_order_that_cannot_work_says_what_to_move(steps: list, says: str) -> None:
    """The message names the step, what it lacks and where that comes from."""
    with pytest.raises(SettingsError, match=says):
        make_plan(steps, tools())

"""assistants.toml is validated at start-up: names, order, writers."""

import re
from dataclasses import replace

import pytest

from app.core.errors import SettingsError
from app.core.prompts import load_prompts
from app.models.guarded import Embedder, Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.models.openai_embedder import OpenAIEmbedder
from app.pipeline.registry import Tools, helper_call_warning, make_plan, search_of, upto, validate_order
from app.pipeline.registry import steps as known_steps
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS
from tests.fake_reranker import reranker

pytestmark = pytest.mark.plugins

PROMPTS = load_prompts(("cs", "en"))
ENDPOINT = Endpoint("http://127.0.0.1:9/v1", timeout=1)
STEPS = ["detect", ["refine", "keywords", "probe"], "retrieve", "relevance", "synthesize", "cite"]


def tools(*, model: bool = True) -> Tools:
    chosen = Model(OpenAIModel(ENDPOINT, "m")) if model else None
    return Tools(
        SETTINGS, PROMPTS, LanguageDetector(PROMPTS.languages, "en"), chosen, Embedder(OpenAIEmbedder(ENDPOINT, "e"), 1)
    )


def names(plan: tuple) -> list[list[str]]:
    return [[step.name for step in group] for group in plan]


def test_names_make_a_plan() -> None:
    """Groups stay together in order. Without a model, the steps that need one are left out; all helpers can be."""
    after = [["retrieve"], ["relevance"], ["synthesize"], ["cite"]]
    assert names(make_plan(STEPS, tools())) == [["detect"], ["refine", "keywords", "probe"], *after]
    assert names(make_plan(STEPS, tools(model=False))) == [["detect"], ["probe"], *after]
    shortest = make_plan(["detect", "retrieve", "synthesize", "cite"], tools())
    assert names(search_of(shortest)) == names(upto(shortest, "search")) == [["detect"], ["retrieve"]]


def test_a_search_ends_where_passages_are_judged() -> None:
    """Behind what chooses among the hits, before what decides whether they answer anything."""
    before = [["detect"], ["refine", "keywords", "probe"], ["retrieve"]]
    assert names(search_of(make_plan(STEPS, tools()))) == before
    reranks = replace(tools(), reranker=reranker(lambda *_: []))
    for judging in (["helpful", "relevance"], ["relevance", "helpful"]):
        steps = [*STEPS[:3], "rerank", *judging, *STEPS[4:]]
        assert names(search_of(make_plan(steps, reranks))) == [*before, ["rerank"]]


@pytest.mark.parametrize("model", [True, False])
@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ("rerankk", "Unknown step 'rerankk'.*detect, "),
        ("cite retrieve synthesize", "cite needs hits, events.*put retrieve before it"),
        ("retrieve", "synthesize is missing"),
        ("retrieve keywords synthesize", "retrieve uses keywords, so it must come after keywords"),
        ("probe+retrieve synthesize", "retrieve uses probe, so it must come after probe"),
        ("keywords+retrieve synthesize", "retrieve uses keywords, so it must come after"),
        # what is read is final: nobody changes it later
        ("retrieve condense rerank synthesize cite", "condense uses hits, so it must come after rerank"),
        ("retrieve relevance condense rerank synthesize", "relevance uses hits, so it must come after rerank"),
        ("retrieve synthesize rerank cite", "synthesize uses hits, so it must come after rerank"),
        ("retrieve clarify relevance synthesize", "clarify uses hits, so it must come after relevance"),
        ("retrieve clarify+relevance synthesize", "clarify uses hits, so it must come after relevance"),
        ("retrieve period synthesize cite", "retrieve uses dates, so it must come after period"),
        # a new ranking would undo what was judged
        ("retrieve relevance rerank synthesize", "relevance uses hits, so it must come after rerank"),
        # twice, in vain, or without what it acts on
        ("retrieve synthesize cite cite", "cite is named twice"),
        (
            "refine+probe analyze retrieve synthesize",
            "refine has no effect: no step reads its refined before analyze",
        ),
        ("analyze first_search retrieve synthesize", "analyze uses sure, so it must come after first_search"),
        ("retrieve relevance second_search second_search synthesize", "second_search is named twice"),
        ("probe clusters retrieve synthesize", "probe uses generation, so it must come after clusters"),
        ("retrieve second_search synthesize", "second_search needs evidence.*put relevance before it"),
        ("retrieve helpful synthesize", "helpful needs hits.rerank.*put rerank before it"),
        ("retrieve helpful rerank synthesize", "helpful needs hits.rerank.*put rerank before it"),
    ],
)
def test_an_order_that_cannot_work_says_what_to_move(steps: str, says: str, model: bool) -> None:
    """The message names the step, what it lacks and where that comes from; so, too, where the step would be left out."""
    with pytest.raises(SettingsError, match=says):
        make_plan(["detect", *(group.split("+") for group in steps.split())], tools(model=model))


@pytest.mark.parametrize(
    "steps",
    [
        "retrieve synthesize",
        "period refine+keywords+probe+multi_query+hyde+associate retrieve rerank helpful relevance second_search clarify condense synthesize verify cite",
        "probe retrieve rerank relevance second_search helpful condense+clarify synthesize cite",
        "analyze+probe retrieve synthesize cite",
        "first_search refine+keywords retrieve relevance synthesize cite",
        "clusters first_search refine+keywords retrieve relevance synthesize cite",
        "period+refine+keywords+probe retrieve relevance synthesize cite",
    ],
)
def test_an_order_that_can_work_is_taken(steps: str) -> None:
    validate_order(["detect", *(group.split("+") for group in steps.split())])


def test_no_step_is_before_detect() -> None:
    with pytest.raises(SettingsError, match=r"retrieve needs asked.*put detect before it"):
        validate_order(["retrieve", "detect", "synthesize"])


@pytest.mark.parametrize(
    ("steps", "most", "says"),
    [
        ("refine+keywords+probe retrieve relevance synthesize", 2, ""),
        ("refine+keywords+probe retrieve relevance synthesize", 1, "up to 2 .* is 1: .*, keywords will be left out"),
        (
            "refine+keywords+multi_query+hyde retrieve relevance second_search condense synthesize",
            4,
            "up to 6 helper calls a question, but DOCS_TUNING__HELPER_CALLS is 4: .* second_search, condense will be left out",
        ),
        ("refine retrieve synthesize", 0, "refine will be left out"),
    ],
)
def test_too_few_helper_calls_are_told(steps: str, most: int, says: str) -> None:
    """Calls are counted in the order of the steps; steps that have no model to ask count nothing."""
    written = ["detect", *(group.split("+") for group in steps.split())]
    told = helper_call_warning(make_plan(written, tools()), most)
    assert re.search(says, told)
    assert bool(told) == bool(says)
    assert helper_call_warning(make_plan(written, tools(model=False)), most) == ""


def test_who_asks_a_model_says_how_often() -> None:
    """All but the one that writes the answer, which is no helper call."""
    asking = {name for name, box in known_steps().items() if box.asks_model}
    assert {name for name, box in known_steps().items() if box.step.helper_calls} == asking - {"synthesize"}

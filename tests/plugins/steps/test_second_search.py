"""A second search: only where the first found too little, once, and only what is better counts."""

import pytest

from app.core.generation import Recipe
from app.core.prompts import load_prompts
from app.core.turn import Turn
from app.core.types import Chunk, Page
from app.index import Store
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.pipeline.registry import Tools
from app.pipeline.registry import steps as known
from app.pipeline.runner import run
from tests.app.pipeline.turns import SETTINGS, turn
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import DIMENSION, FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
TEXTS = {
    "volumes": "A persistent volume claim requests storage capacity.",
    "login": "Sign in with your password, a token expires daily.",
}


@pytest.fixture
async def after(store: Store, llm: FakeLLM):  # noqa: F811
    """Runs retrieve, relevance and the second search on an index of two pages."""
    embedder = FakeEmbedder()
    async with await store.draft(Recipe(embedder.name, DIMENSION, "s", "a")) as draft:
        for name, text in TEXTS.items():
            url = f"https://example.org/{name}"
            chunk = Chunk(f"c-{name}", "docs", url, 0, text, "en", name)
            (vector,) = await embedder.embed_passages([chunk.embedded_text])
            await draft.put(Page(url, "docs", name, "en", text, name), [chunk], {chunk.id: vector})
        await draft.publish()
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    given = Tools(SETTINGS, PROMPTS, None, model, embedder)  # type: ignore[arg-type]  # nothing detects here
    plan = tuple((known()[name].make(given),) for name in ("retrieve", "relevance", "second_search"))

    async def ask(question: str, **more: object) -> Turn:
        return await run(plan, turn(question, generation=await store.live(), **more))  # type: ignore[arg-type]

    yield ask
    await model.close()


async def test_new_keywords_find_what_the_question_did_not(after, llm: FakeLLM) -> None:
    """The prompt says what was tried; what is found then is judged as the first search was."""
    llm.reply = lambda _: Reply("en: persistent volume claim, storage capacity")
    done = await after("frobnicate zorgs", keywords={"en": "frobnication"})
    assert [hit.chunk.id for hit in done.hits][:1] == ["c-volumes"]
    assert done.related == ()
    assert done.evidence.share >= SETTINGS.min_evidence
    assert done.more_keywords == {"en": "persistent volume claim, storage capacity"}
    (call,) = llm.calls
    assert "tried: frobnication\n" in call["messages"][0]["content"]


async def test_one_that_finds_no_more_changes_nothing(after, llm: FakeLLM) -> None:
    """Once and no more: what stays unanswerable is declined; a good first search isn't repeated at all."""
    assert (await after("persistent volume claim storage")).hits
    assert llm.calls == []
    llm.reply = lambda _: Reply("en: gribbles, zorgs")
    done = await after("frobnicate quibbles")
    assert done.hits == ()
    assert len(llm.calls) == 1


@pytest.mark.parametrize("reply", [Reply("I don't know."), Reply("", status=503)])
async def test_a_failing_model_leaves_the_first_search(after, llm: FakeLLM, reply: Reply) -> None:
    llm.reply = lambda _: reply
    done = await after("frobnicate zorgs")
    assert done.hits == ()
    assert done.trace[-1].error.startswith(("ModelError", "ModelUnavailable"))

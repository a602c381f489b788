"""A question that finds its evidence on its own costs no helper call; any other gets the model's help as before."""

import json

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
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS, turn
from tests.contract.conftest import open_store, store  # noqa: F401  # fixtures
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import DIMENSION, FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
TEXT = "A persistent volume claim requests storage capacity."
ANSWER = {"question": "Where is storage?", "en": ["persistent volume claim"], "cs": ["úložiště"]}


@pytest.fixture
async def after(store: Store, llm: FakeLLM):  # noqa: F811
    """Runs the first search, the given helpers and retrieve on an index of one chunk with a Czech question."""
    embedder = FakeEmbedder()
    async with await store.draft(Recipe(embedder.name, DIMENSION, "s", "a", questions="p")) as draft:
        asked = (("cs", "Kolik místa na disku dostanu pro data?"),)
        chunk = Chunk("c", "docs", "https://example.org/a", 0, TEXT, "en", "Volumes", questions=asked)
        text, questions = await embedder.embed_passages([chunk.embedded_text, chunk.questions_text])
        page = Page(chunk.url, "docs", "Volumes", "en", TEXT, "a")
        await draft.put(page, [chunk], {chunk.id: text, chunk.questions_id: questions})
        await draft.publish()
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "m"))
    detector = LanguageDetector(PROMPTS.languages, "en")
    tools = Tools(SETTINGS, PROMPTS, detector, model, embedder)  # type: ignore[arg-type]
    llm.reply = lambda _: Reply(f"{json.dumps(ANSWER)}\nen: persistent volume claim")

    async def ask(question: str, *helpers: str, **more: object) -> Turn:
        steps = (("first_search",), helpers or ("analyze",), ("retrieve",), ("relevance",))
        plan = tuple(tuple(known()[name].make(tools) for name in group) for group in steps)
        return await run(plan, turn(question, generation=await store.live(), **more))  # type: ignore[arg-type]

    yield ask
    await model.close()


async def test_a_sure_first_search_saves_the_helper_calls(after, llm: FakeLLM) -> None:
    """In whichever language the page or its questions say it; the hits are those of the first search."""
    for question, language in (
        ("persistent volume claim storage capacity?", "en"),
        ("Kolik místa na disku dostanu?", "cs"),
    ):
        for helpers in (("analyze",), ("refine", "keywords")):
            done = await after(question, *helpers, language=language)
            assert (done.sure, done.keywords, done.refined) == (True, {}, None)
            assert [hit.chunk.id for hit in done.hits] == ["c"]
            assert done.calls.begun == {}
    assert llm.calls == []


@pytest.mark.parametrize(
    ("question", "more"),
    [
        ("persistent storage frobnication of zorgs", {}),
        ("storage?", {}),  # a single word is on some page
        ("persistent volume claim storage capacity?", {"referred": "How are backups made?"}),
    ],
)
async def test_any_other_question_gets_the_models_help(
    after, llm: FakeLLM, question: str, more: dict[str, str]
) -> None:
    done = await after(question, **more)
    assert not done.sure
    assert done.keywords == {"en": "persistent volume claim", "cs": "úložiště"}
    assert (len(llm.calls), done.calls.begun) == (1, {"analyze": 1})

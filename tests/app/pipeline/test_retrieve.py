"""Retrieval steps on a real embedded index: what is searched, with what, and what happens when the embedder fails."""

import json
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from app.core.errors import ModelUnavailable
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Message, Request, Turn
from app.core.types import Chunk, Vector
from app.index.embedded.generation import EmbeddedGeneration
from app.index.embedded.store import EmbeddedStore
from app.index.protocols import Generation
from app.models import Model
from app.pipeline.conversation import with_answer_language
from app.pipeline.registry import Tools, make_plan
from app.pipeline.runner import run
from app.pipeline.steps.retrieve import OTHER_LANGUAGE_WITH_KEYWORDS, Probe, Retrieve
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import SETTINGS, turn
from tests.app.published import publish
from tests.fake_llm import FakeLLM, Reply
from tests.fakes import DIMENSION, FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
EVEN = SETTINGS.model_copy(update={"vector_weight": {"*": 0.5}})  # the vectors of the tests know letters only
PAGES = {
    "memory": ("en", "Memory of notebooks: each gets 4 GB."),
    "cores": ("en", "Processor cores of notebooks: each gets 2."),
    "pamet": ("cs", "Sešit dostane 4 GB paměti."),
    "files": ("en", "Files are kept for a month."),
}


class Counting(FakeEmbedder):
    """Remembers the questions; may give shorter vectors."""

    def __init__(self, length: int = DIMENSION, name: str = "fake-64") -> None:
        super().__init__(name)
        self.length = length
        self.questions: list[str] = []

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        self.questions += texts
        return [vector[: self.length] for vector in await super().embed_queries(texts)]


class Broken(FakeEmbedder):
    """An embedding server that went away."""

    async def embed_queries(self, texts: Sequence[str]) -> list[Vector]:
        raise ModelUnavailable("http://embedder can't be reached")


@pytest.fixture
async def generation(tmp_path: Path) -> AsyncIterator[Generation]:
    store, site = EmbeddedStore(tmp_path / "index"), "https://docs.example.org/"
    chunks = (Chunk(name, "docs", site + name, 0, text, language, name) for name, (language, text) in PAGES.items())
    await publish(store, FakeEmbedder(), *chunks)
    yield await store.live()
    await store.close()


def steps(embedder: FakeEmbedder, settings: Settings = SETTINGS) -> tuple[Probe, Retrieve]:
    return Probe(embedder, PROMPTS, settings), Retrieve(embedder, PROMPTS, settings)


async def searched(embedder: FakeEmbedder, asked: Turn, settings: Settings = SETTINGS) -> Turn:
    """After a probe and retrieval."""
    probe, retrieve = steps(embedder, settings)
    return await run(((probe,), (retrieve,)), asked)


def found(after: Turn) -> list[str]:
    return [hit.chunk.id for hit in after.hits]


async def test_the_question_is_embedded_once_and_its_search_is_used_again(generation: Generation) -> None:
    """Without keywords the probe's search is the search."""
    embedder = Counting()
    after = await searched(embedder, turn("How much memory do notebooks get?", generation=generation))
    assert found(after)[0] == "memory"
    assert len(embedder.questions) == 1
    assert after.search is not None
    assert [text.text for text in after.search.query.texts] == ["memory notebooks get?"]
    assert after.hits[0].lexical is not None
    assert after.hits[0].cosine is not None


async def test_keywords_of_every_language_are_searched_beside_the_question(generation: Generation) -> None:
    """A Czech question reaches the English page through its English keywords, with a softer language preference."""
    embedder, keywords = Counting(), {"en": "files, kept, month"}
    asked = turn("Jak dlouho se uchovává můj výstup?", "cs", generation=generation, keywords=keywords)
    after = await searched(embedder, asked)
    assert found(after)[0] == "files"
    assert len(embedder.questions) == 1
    assert after.search is not None
    assert after.search.query.other_language == OTHER_LANGUAGE_WITH_KEYWORDS
    assert after.search.legs.vector


@pytest.mark.parametrize("keywords", [{}, {"en": "memory, notebook", "cs": "paměť, sešit"}])
async def test_another_language_that_counts_nothing_is_not_searched(
    generation: Generation, keywords: dict[str, str]
) -> None:
    """Neither with keywords, nor where the question's language has less than the limit."""
    settings = SETTINGS.model_copy(update={"other_language": 0.0})
    step = Retrieve(FakeEmbedder("fake-64"), PROMPTS, settings)
    for question, language in (("memory of notebooks", "en"), ("paměť sešitu", "cs")):
        found = await step(turn(question, language, generation=generation, keywords=keywords))
        assert {hit.chunk.language for hit in found["hits"]} == {language}
        legs = found["search"].legs
        assert {one.language for one in (*legs.lexical, *legs.vector)} == {language}


async def test_keywords_have_a_weight_of_their_own(generation: Generation) -> None:
    """With a small one, the question's own word decides; with a large one, the keyword."""
    asked = turn("Cores?", generation=generation, keywords={"en": "files"})
    firsts, weights = [], []
    for weight in (0.2, 5.0):
        settings = SETTINGS.model_copy(update={"keyword_weight": weight, "vector_weight": {"*": 0.0}})
        after = await run(((Retrieve(FakeEmbedder(), PROMPTS, settings),),), asked)
        firsts.append(found(after)[0])
        weights.append([text.weight for text in after.search.query.texts] if after.search else [])
    assert firsts == ["cores", "files"]
    assert weights == [[1.0, 0.2], [1.0, 5.0]]


@pytest.mark.plugins
async def test_the_time_is_found_while_question_and_keywords_are_written(
    generation: Generation, llm: FakeLLM, model: Model
) -> None:
    """Three calls at once; then the question without its time is searched, and pages of that time are lifted."""
    asked, embedder = "Notebook files in 2024?", Counting()
    open_before: list[int] = []

    def reply(body: dict) -> Reply:
        open_before.append(llm.open)
        found = {"operator": "gte", "date": "2024-06-01", "question": "Notebook files?"}
        if "JSON object" in str(body):
            return Reply(json.dumps(found), delay=0.1)
        return Reply("en: notebooks, files" if "keywords" in str(body) else f"Which {asked}", delay=0.1)

    llm.reply = reply
    settings = SETTINGS.model_copy(update={"helper_timeout": 5.0})
    detector = LanguageDetector(PROMPTS.languages, "en")
    plan = make_plan(
        ["detect", ["period", "refine", "keywords", "probe"], "retrieve", "relevance", "synthesize"],
        Tools(settings, PROMPTS, detector, model, embedder),
    )
    after = await run(plan, Turn(Request((Message("user", asked),)), generation))
    assert open_before == [0, 1, 2]
    assert [record.error for record in after.trace if record.error] == []
    assert embedder.questions == [asked, "Notebook files?"]
    assert after.search is not None
    assert after.search.query.texts[0].text == "Notebook files?"
    assert [boost.first for boost in after.search.query.boosts] == ["2024-06-01"]
    assert after.asked.text == asked  # what the answer is written for
    assert found(after)[0] == "files"


async def test_the_pages_say_in_which_language_a_question_is_that_shows_none(generation: Generation) -> None:
    """A mistyped word by its beginning. Where the pages of both languages have as much, the default decides if they have all, else the guess."""
    step = steps(FakeEmbedder())[1]
    for question, guess, language, sureness in (
        ("notebooks memry", "cs", "en", 1.0),
        ("pamet sesitu", "en", "cs", 1.0),
        ("notebk processr", "cs", "en", 1.0),
        ("4 GB", "cs", "en", 1.0),
        ("4 GB", "en", "en", 1.0),
        ("4 GB xyzzy", "cs", "cs", 0.25),
        ("4 GB xyzzy", "en", "en", 0.25),
    ):
        asked = turn(question, guess, generation=generation, unsure=True)
        after = await run(((step,),), asked)
        assert after.search is not None
        assert after.search.query.language == after.search.query.texts[0].language == language, question
        assert after.search.query.sureness == sureness
        assert with_answer_language(after, PROMPTS.languages).asked.language == language


async def test_a_question_that_refers_takes_the_earlier_one_along(generation: Generation) -> None:
    """With "And how many cores?" the notebooks of the question before are searched, too."""
    asked = turn("And how many cores?", generation=generation, referred="How much memory do notebooks get?")
    assert found(await searched(FakeEmbedder(), asked))[:2] == ["cores", "memory"]
    with_keywords = await searched(FakeEmbedder(), replace(asked, keywords={"en": "cores"}))
    assert with_keywords.search is not None
    assert [text.text for text in with_keywords.search.query.texts][1:] == ["cores"]


async def test_a_question_that_refers_to_another_is_searched_spelled_out(generation: Generation) -> None:
    """One that stands on its own is searched as it was asked, whatever the language model makes of it."""
    alone = turn("And there?", generation=generation, refined="How many cores do notebooks get?")
    later = replace(alone, asked=replace(alone.asked, referred="How much memory do notebooks get?"))
    first, second = [await searched(FakeEmbedder(), asked, EVEN) for asked in (alone, later)]
    assert first.search is not None
    assert second.search is not None
    assert "cores" not in first.search.query.texts[0].text
    assert "cores" in second.search.query.texts[0].text
    assert found(second)[0] == "cores"


async def test_a_failing_embedder_leaves_the_words(generation: Generation, caplog: pytest.LogCaptureFixture) -> None:
    """Most pages are found by words alone; the log says that the vector is missing."""
    after = await searched(Broken(), turn("memory of notebooks", generation=generation))
    assert found(after)[0] == "memory"
    assert after.search.query.vector is None
    assert "words alone decide" in caplog.text


async def test_vectors_of_two_embedders_are_never_mixed(
    generation: Generation, caplog: pytest.LogCaptureFixture
) -> None:
    """Where the embedder of the index can't be opened, or gives vectors of another length, words alone decide."""
    for embedder in (Counting(name="other-model"), Counting(8)):
        after = await searched(embedder, turn("memory of notebooks", generation=generation))
        assert found(after)[0] == "memory"
        assert after.search.query.vector is None
    assert "now returns vectors of 8 numbers" in caplog.text


async def test_only_multilingual_models_are_corrected_for_the_language(generation: EmbeddedGeneration):
    """The question's nearness to the means of the languages goes into the query; others are searched as they are."""
    for name, corrected in (("local:multilingual-x prefix='passage: '", True), ("bge-small-en", False)):
        recipe = replace(generation.info.recipe, embedder=name)
        of_model = replace(generation, info=replace(generation.info, recipe=recipe))
        after = await run(((steps(Counting(name=name))[1],),), turn("Kolik paměti?", "cs", generation=of_model))
        assert after.search
        assert [code for code, _ in after.search.query.language_offsets] == ["en"] * corrected

"""A follow-up is judged as what it means by every step that reads passages, not by its few words."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace

from app.core.prompts import load_prompts
from app.core.turn import Calls, Message, Question, Request, Search
from app.core.types import Candidate, Legs, Page, Query
from app.index.protocols import TranslationSets
from app.models import Model
from app.pipeline.conversation import referred, standalone
from plugins.steps.choices import Rerank
from plugins.steps.searches import Associate
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply
from tests.fake_reranker import reranker

PROMPTS = load_prompts(("cs", "en"))
TALK = (Message("user", "How do I get a GPU?"), Message("assistant", "Ask."), Message("user", "For how long?"))
FOLLOW_UP = turn("For how long?", request=Request(TALK), referred="How do I get a GPU?")
MEANT = [
    (FOLLOW_UP, "How do I get a GPU? For how long?"),
    (replace(FOLLOW_UP, refined=Question("For how long do I get a GPU?")), "For how long do I get a GPU?"),
    (turn("A question alone", refined="A clearer question alone"), "A question alone"),
]


def test_what_a_follow_up_means() -> None:
    """For helpers that read passages: spelled out by the model, or after the question it refers to."""
    assert [standalone(asked) for asked, _ in MEANT] == [meant for _, meant in MEANT]


async def test_the_reranker_reads_what_is_meant() -> None:
    questions = []

    def score(question: str, passages: Sequence[str]) -> list[float]:
        questions.append(question)
        return [0.5 for _ in passages]

    async def translation_sets() -> TranslationSets:
        return TranslationSets()

    async def fetch(ids: list[str]) -> list:
        return [hit(1).chunk for _ in ids]

    found = replace(
        FOLLOW_UP,
        generation=SimpleNamespace(fetch=fetch, translation_sets=translation_sets),
        search=Search(Query(()), Legs((Candidate("c1", "https://x", "en", 1.0),))),
    )
    await Rerank(reranker(score), SETTINGS)(found)
    assert questions == [MEANT[0][1]]


async def test_sections_are_picked_with_the_conversation_in_view(llm: FakeLLM, model: Model) -> None:
    """The question isn't spelled out by then."""
    llm.reply = lambda _: Reply("1")

    async def pages() -> list:
        parts = [f"https://x/{part}/{n}" for part in ("gpu", "storage") for n in range(2)]
        return [Page(url, "", url, "en", "", "") for url in parts]

    generation = SimpleNamespace(pages=pages, info=SimpleNamespace(id=1))
    changes = await Associate(model, PROMPTS, SETTINGS)(replace(FOLLOW_UP, generation=generation, calls=Calls()))
    assert changes["sections"].url_prefixes == ("https://x/gpu/",)
    assert "user: How do I get a GPU?" in llm.calls[0]["messages"][-1]["content"]


def test_thanks_between_are_no_question_that_one_could_refer_to() -> None:
    english = PROMPTS.language("en")
    talk = (*TALK[:2], Message("user", "Thanks!"), Message("assistant", "You're welcome."), TALK[2])
    assert referred(talk, english) == "How do I get a GPU?"
    assert referred(talk[2:], english) == ""

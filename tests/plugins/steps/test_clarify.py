"""A question back: only for few words that fit different parts of the site alike, and never twice in a row."""

from dataclasses import replace

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Done, Message, Request, Text
from app.core.types import Hit
from app.pipeline.steps.synthesize import Synthesize
from plugins.steps.choices import Clarify, readings
from tests.app.pipeline.turns import SETTINGS, hit, turn

PROMPTS = load_prompts(("cs", "en"))
SITE = "https://docs.example.org"


def found(path: str, score: float, title: str = "", language: str = "en") -> Hit:
    one = hit(1, url=SITE + path, title=title or path.rpartition("/")[2])
    return replace(one, chunk=replace(one.chunk, language=language), fused=score)


TWO = (found("/storage/quota", 1.0), found("/gpu/limits", 0.85), found("/faq/other", 0.84))


async def choices(question: str = "quota", language: str = "en", **more) -> tuple[Hit, ...]:
    step = Clarify(PROMPTS, SETTINGS)
    return tuple((await step(turn(question, language, hits=more.pop("hits", TWO), **more))).get("choices", ()))


async def test_two_readings_are_two_choices() -> None:
    """What scores below 85 % of the best is no reading, by a reranker where it ordered the hits; three are the most."""
    assert await choices() == TWO[:2]
    reranked = tuple(replace(one, rerank=score) for one, score in zip(TWO[::-1], (0.9, 0.8, 0.1), strict=True))
    assert await choices(hits=reranked) == reranked[:2]
    assert len(readings([found(f"/{n}/page-{n}", 1.0) for n in range(6)])) == 3


ONE = {
    "clear question": {"question": "How do I raise the storage quota of my project?"},
    "follow-up": {"referred": "How do I get storage?"},
    "same folder": {"hits": (TWO[0], found("/storage/limits", 0.9))},
    "same title": {"hits": (TWO[0], found("/gpu/quota", 0.9, title="quota"))},
    "translation": {"hits": (found("/en/clients", 1.0), found("/cs/clients", 0.99, "klienti", "cs"))},
    "reranked apart": {
        "hits": tuple(replace(one, rerank=score) for one, score in zip(TWO, (0.9, 0.7, 0.1), strict=True))
    },
    "headed by the question": {"hits": (TWO[1], TWO[0])},
    "one hit": {"hits": TWO[:1]},
    "none": {"hits": ()},
}


@pytest.mark.parametrize("name", ONE)
async def test_one_reading_is_answered(name: str) -> None:
    assert await choices(**ONE[name]) == ()


@pytest.mark.parametrize("language", ["cs", "en"])
async def test_it_never_asks_twice_in_a_row(language: str) -> None:
    """In whatever language it asked; after an answer it may ask again."""
    asked = PROMPTS.render(language, "clarify", choices="- [quota](https://x)")
    messages = (Message("user", "quota"), Message("assistant", asked), Message("user", "limits"))
    assert await choices("limits", request=Request(messages)) == ()
    messages = (*messages, Message("assistant", "The limit is 5 GB [1]."), Message("user", "quota"))
    assert await choices("quota", request=Request(messages)) == TWO[:2]


async def test_the_question_back_names_the_readings_and_asks_no_model() -> None:
    events = (await Synthesize(None, PROMPTS, SETTINGS)(turn("kvóta", "cs", hits=TWO, choices=TWO[:2])))["events"]
    said = [event async for event in events]
    assert isinstance(said[0], Text)
    assert said[0].text == (
        "Vaši otázku lze chápat různě. Co z toho máte na mysli?\n\n"
        f"- [quota]({SITE}/storage/quota)\n- [limits]({SITE}/gpu/limits)"
    )
    assert said[1:] == [Done()]

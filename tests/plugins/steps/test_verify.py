"""A second opinion on statements that words leave undecided: what readers get of it, and that nothing depends on it."""

import logging

import pytest

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Event, Evidence, Text
from app.core.types import Passage
from app.models import Model
from app.pipeline.steps.cite import Cite
from plugins.steps.choices import Verify
from tests.app.pipeline.turns import HURRIED, SETTINGS, hit, stream, text_of, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
SIGN = PROMPTS.language("en").texts.unproven
FOUND = hit(1, "Backups run every night and are kept for thirty days in the archive of the faculty.", title="Backups")
PROVED = "Backups run every night and are kept for thirty days [1]."
UNDECIDED = "The archive of the faculty keeps copies for thirty days against floods, fires and thieves [1]."


async def answered(model: Model, *said: str, language: str = "en", settings: Settings = SETTINGS) -> list[Event]:
    passages = (Passage(FOUND.chunk, (FOUND,)),)
    given = turn(
        "How are backups kept?", language, hits=(FOUND,), passages=passages, evidence=Evidence(1.0, 0.32),
        events=stream(*map(Text, said), Done()),
    )  # fmt: skip
    given = given.changed(**await Verify(model, PROMPTS, settings)(given))
    return [event async for event in (await Cite(PROMPTS, unproven="mark")(given))["events"]]


def done(events: list[Event]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def test_what_the_model_does_not_find_is_marked_below_the_answer(llm: FakeLLM, model: Model) -> None:
    """It is asked about the undecided statement alone, without its citation, and shown the passages."""
    llm.reply = lambda _: Reply("1")
    events = await answered(model, f"{PROVED} ", UNDECIDED)
    (call,) = llm.calls
    assert "Backups run every night and are kept" in call["messages"][0]["content"]
    assert call["messages"][1]["content"] == f"1. {UNDECIDED.replace(' [1]', '')}"
    assert f"{UNDECIDED.replace(' [1]', '')} {SIGN}" in text_of(events).partition(UNDECIDED)[2]
    assert [(one.text, one.kind, one.passage) for one in done(events).unsupported] == [(UNDECIDED, "statement", 1)]
    assert done(events).confidence == 0.47


async def test_what_the_model_finds_stays_and_proved_answers_cost_no_call(llm: FakeLLM, model: Model) -> None:
    llm.reply = lambda _: Reply("none")
    for said, calls in ((PROVED, 0), (UNDECIDED, 1)):
        events = await answered(model, said)
        assert (len(llm.calls), done(events).unsupported, SIGN in text_of(events)) == (calls, (), False)


async def test_statements_in_another_language_than_the_passages_are_undecided(llm: FakeLLM, model: Model) -> None:
    llm.reply = lambda _: Reply("1")
    said = "Zálohy přežijí povodně, požáry i nepozorné správce [1]."
    assert [one.text for one in done(await answered(model, said, language="cs")).unsupported] == [said]


@pytest.mark.parametrize("reply", [Reply(status=503), Reply("The first one is wrong."), Reply(delay=5)])
async def test_without_a_second_opinion_the_first_one_stands(
    llm: FakeLLM, model: Model, caplog: pytest.LogCaptureFixture, reply: Reply
) -> None:
    """The model fails, replies in sentences, or takes too long: the log says so."""
    llm.reply = lambda _: reply
    with caplog.at_level(logging.WARNING):
        events = await answered(model, UNDECIDED, settings=HURRIED)
    assert done(events).unsupported == ()
    assert "no second opinion" in caplog.text

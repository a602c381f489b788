"""What a reader sees while a slow model says nothing: after some seconds a quotation, and below it the answer, if there is one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest

from app.core.errors import ModelUnavailable
from app.core.prompts import load_prompts
from app.core.turn import Done, Event, Message, Source, Text, Turn
from app.models.guarded import Model
from app.pipeline.runner import run
from app.pipeline.steps.cite import LONGEST_WAIT, Cite
from app.pipeline.steps.synthesize import Synthesize
from tests.app.pipeline.turns import SETTINGS, hit, text_of, turn
from tests.scripted_llm import Piece, ScriptedLLM
from tests.virtual_time import in_virtual_time

PROMPTS = load_prompts(("cs", "en"))
TEXTS = PROMPTS.language("en").texts
HITS = (hit(1, "Each notebook gets 4 GB of memory. It is counted by the hour.", path=("Memory",)), hit(2, "Of disks."))


class Slow:
    """A model that says this text after so many seconds, or fails."""

    def __init__(self, seconds: float, *texts: str, thinks: bool = False) -> None:
        self.seconds, self.texts, self.thinks, self.closed = seconds, texts, thinks, False

    async def says(self, messages: Sequence[Message], options: Mapping[str, Any]) -> AsyncIterator[str | Piece]:
        try:
            for _ in range(int(self.seconds * 2)):
                await asyncio.sleep(0.5)
                if self.thinks:
                    yield Piece(reasoning="hm")
            if not self.texts:
                raise ModelUnavailable("gone")
            for text in self.texts:
                yield text
            yield Piece(finish="stop")
        finally:
            self.closed = True


async def read(model: Slow, *, whole: bool = False) -> tuple[list[Event], float]:
    """The events, and the seconds until the first text."""
    plan = ((Synthesize(PROMPTS, SETTINGS, Model(ScriptedLLM(model.says))),), (Cite(PROMPTS, unproven="mark"),))
    asked = turn(hits=HITS)
    made: Turn = await run(plan, replace(asked, request=replace(asked.request, whole=whole)))
    clock, events, first = asyncio.get_running_loop().time, list[Event](), 0.0
    assert made.events is not None
    began = clock()
    async for event in made.events:
        events.append(event)
        first = first or (clock() - began) * isinstance(event, Text)
    return events, first


@in_virtual_time
async def test_the_quotation_comes_after_some_seconds_and_the_answer_below_it() -> None:
    """The answer has its link, and is judged as any other. A model that only thinks says nothing, either."""
    for thinks in (False, True):
        said = "A notebook gets ", "4 GB of memory [1]. It costs 30 dollars."
        judge_both(*await read(Slow(30, *said, thinks=thinks)))


def judge_both(events: list[Event], first: float) -> None:
    """A quotation in time, and the answer below it."""
    text = text_of(events)
    assert LONGEST_WAIT <= first <= LONGEST_WAIT + 1.5
    assert text.startswith(TEXTS.extractive_meanwhile)
    quotation, answer = text.split(TEXTS.written_after)
    assert "Each notebook gets 4 GB of memory." in quotation
    assert "A notebook gets 4 GB of memory [1]. It costs 30 dollars. (⚠" in answer
    assert [event.number for event in events if isinstance(event, Source)] == [1]
    assert isinstance(events[-1], Done)
    assert not events[-1].extractive


@in_virtual_time
async def test_a_model_that_fails_then_leaves_the_quotation_alone() -> None:
    """It isn't repeated."""
    model = Slow(30)
    events, _ = await read(model)
    text = text_of(events)
    assert text.startswith(TEXTS.extractive_meanwhile)
    assert text.count("Each notebook gets 4 GB of memory.") == 1
    assert TEXTS.written_after not in text
    assert TEXTS.extractive_failed not in text
    assert isinstance(events[-1], Done)
    assert events[-1].extractive
    assert any(isinstance(event, Source) for event in events)
    assert model.closed


@in_virtual_time
async def test_who_gets_an_answer_in_time_or_as_a_whole_sees_no_quotation() -> None:
    for seconds, whole in ((LONGEST_WAIT - 2, False), (30, True)):
        events, _ = await read(Slow(seconds, "A notebook gets 4 GB of memory [1]."), whole=whole)
        assert text_of(events).startswith("A notebook gets 4 GB of memory [1].")


@in_virtual_time
async def test_an_answer_in_another_language_twice_leaves_the_quotation_alone() -> None:
    """The second attempt begins when the reader has read the quotation."""
    events, _ = await read(
        Slow(30, "Každý sešit dostane čtyři gigabajty paměti a počítá se to po hodinách provozu. " * 3)
    )
    assert text_of(events).count("Each notebook gets 4 GB of memory.") == 1
    assert TEXTS.written_after not in text_of(events)


@pytest.mark.parametrize("code", ["cs", "en", "de"])
def test_the_lines_are_in_each_language(code: str) -> None:
    texts = load_prompts((code,)).language(code).texts
    assert texts.extractive_meanwhile.endswith(".")
    assert texts.written_after.endswith(":")

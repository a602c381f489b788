"""Tests of the step my_step: python -m pytest test_my_step.py."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest
from my_step import MyStep

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Completion, Message, Request, Turn
from app.core.types import Chunk, Hit
from app.models.openai import OpenAIModel
from app.models.protocols import CallOptions
from app.pipeline.registry import known_steps, validate_order

SETTINGS = Settings.load()
PROMPTS = load_prompts(SETTINGS.languages).with_own(Path(__file__).parent / "prompts")


class Replies(OpenAIModel):
    """A language model that always gives the same reply; `prompt` is the last prompt it got."""

    def __init__(self, reply: str) -> None:
        self.reply = reply
        self.prompt = ""

    async def complete(self, messages: Sequence[Message], _: CallOptions) -> Completion:
        """The reply."""
        self.prompt = messages[0].content
        return Completion(self.reply)


def texts(model: Replies) -> list[str]:
    """The texts of the passages, in the order that the step returns."""
    chunks = (
        Chunk(text, "docs", f"https://example.org/{text}", 0, text, "en", "Page") for text in ("one", "two", "three")
    )
    turn = Turn(
        Request((Message("user", "Which?"),)), question="Which?", language="en", hits=tuple(Hit(one) for one in chunks)
    )
    changes = asyncio.run(MyStep(model, PROMPTS, SETTINGS)(turn))
    return [hit.chunk.text for hit in changes["hits"]]


def test_the_chosen_passage_comes_first() -> None:
    """The others keep their order."""
    model = Replies("[2]")
    assert texts(model) == ["two", "one", "three"]
    assert "[3] Page\nthree" in model.prompt


def test_a_reply_without_a_number_is_an_error() -> None:
    """The answer continues with the old order."""
    for reply in ("None of them.", "4", ""):
        with pytest.raises(ModelError, match="no number"):
            texts(Replies(reply))


def test_the_step_can_stand_behind_retrieve() -> None:
    """An earlier step has written what it reads, and a later one reads what it writes."""
    steps = ["detect", "probe", "retrieve", "my_step:MyStep", "relevance", "synthesize", "cite"]
    validate_order(steps, known_steps({}, steps))

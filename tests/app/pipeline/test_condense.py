"""Long passages are shortened for the answer, and only to what they say themselves."""

from __future__ import annotations

import pytest

from app.core.errors import ModelError
from app.core.models.openai import OpenAIModel
from app.core.prompts import load_prompts
from app.pipeline.condense import Condense, faithful, parse
from app.pipeline.synthesize import numbered
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
LONG = "A project may have 64 GB of memory. Ask with `kubectl get quota`. " + "Other things follow. " * 300


async def test_short_passages_stay_as_they_are(llm: FakeLLM, model: OpenAIModel) -> None:
    assert await Condense(model, PROMPTS, SETTINGS)(turn(hits=(hit(1),))) == {}
    assert llm.calls == []


async def test_each_passage_keeps_its_number(llm: FakeLLM, model: OpenAIModel) -> None:
    """A passage that the model leaves out or changes is used as it is."""
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.\n\n**[3]**: A project may have 128 GB.")
    hits = (hit(1, LONG), hit(2, LONG), hit(3, LONG))
    changes = await Condense(model, PROMPTS, SETTINGS)(turn(hits=hits))
    assert changes == {"condensed": ("A project may have 64 GB of memory.", "", "")}
    shown = numbered(hits, 100_000, changes["condensed"])
    assert "[1] Page 1\nA project may have 64 GB of memory.\n\n[2] Page 2\nA project" in shown


async def test_an_answer_without_numbers_is_an_error_of_ours(llm: FakeLLM, model: OpenAIModel) -> None:
    llm.reply = lambda _: Reply("A project may have 64 GB.")
    with pytest.raises(ModelError, match="as they are"):
        await Condense(model, PROMPTS, SETTINGS)(turn(hits=(hit(1, LONG), hit(2, LONG))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("A project may have 64 GB.", True),
        ("Ask with `kubectl get quota`.", True),
        ("A project may have 65 GB.", False),
        ("Ask with `kubectl get quotas`.", False),
        ("See https://example.org/quota.", False),
        ("", False),
        (LONG + ".", False),
    ],
)
def test_nothing_is_invented(text: str, expected: bool) -> None:
    assert faithful(text, LONG) is expected


def test_what_is_read_of_an_answer() -> None:
    assert parse("Here:\n[2] second\nmore [1] inside\n[10]: tenth") == {2: "second\nmore [1] inside", 10: "tenth"}

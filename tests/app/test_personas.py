"""Tones of an assistant: how they are called and listed, and that nothing but the tone is asked of the model."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest

from app.assistant import build
from app.core.errors import RequestError, SettingsError
from app.core.models.openai import Endpoint, OpenAIModel
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.pipeline.synthesize import Synthesize
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM, fake_llm

PROMPTS = load_prompts(("cs", "en"))
SHIPPED = ("beginner", "elderly", "emojis", "expert", "kids", "neutral", "rhymes")


@pytest.fixture
async def llm() -> AsyncIterator[FakeLLM]:
    async with fake_llm() as server:
        yield server


def configured(tmp_path: Path, more: str = "") -> Settings:
    file = tmp_path / "assistants.toml"
    steps = '["detect", "probe", "retrieve", "synthesize", "cite"]'
    file.write_text(f'[[assistant]]\nid = "docs"\nnames = {{ en = "Docs" }}\nsteps = {steps}\n{more}', "utf-8")
    return Settings.load(None, assistants=str(file), store=str(tmp_path / "data"))


def test_every_shipped_tone_is_there() -> None:
    assert tuple(sorted(PROMPTS.personas)) == SHIPPED


@pytest.mark.parametrize("language", ["cs", "en"])
@pytest.mark.parametrize("name", SHIPPED)
async def test_only_the_tone_is_added_to_the_prompt(llm: FakeLLM, language: str, name: str) -> None:
    """Same passages, same rules, same question, on 40 questions: the system message ends with the persona's block."""
    model = OpenAIModel(Endpoint(llm.url, timeout=5), "m")
    step = Synthesize(model, PROMPTS, SETTINGS)
    for number in range(40):
        asked = turn(
            f"What is the limit number {number}?", language, hits=(hit(1, f"The limit is {number} GB."), hit(2))
        )
        for persona in ("", name):
            toned = replace(asked, request=replace(asked.request, persona=persona))
            async for _ in (await step(toned))["events"]:
                pass
    await model.close()
    block = PROMPTS.persona(language, name)
    for plain, toned in zip(llm.calls[::2], llm.calls[1::2], strict=True):
        assert toned["messages"][0]["content"] == plain["messages"][0]["content"] + "\n\n" + block
        assert toned["messages"][1:] == plain["messages"][1:]


async def test_a_tone_is_called_by_its_name_but_not_listed(tmp_path: Path) -> None:
    """So that no picker is flooded."""
    assistants = build(configured(tmp_path))
    kids = assistants.get("docs:kids")
    assert (kids.id, kids.persona, kids.plan) == ("docs:kids", "kids", assistants.get("docs").plan)
    assert [one.id for one in assistants.listed()] == ["docs"]
    for name in ("docs:pirate", "docs:", "blog:kids"):
        with pytest.raises(RequestError, match="There is: docs"):
            assistants.get(name)
    with pytest.raises(RequestError, match="docs:name, are: beginner, elderly"):
        assistants.get("docs:pirate")
    await assistants.close()


async def test_a_tone_is_listed_where_the_file_says_so(tmp_path: Path) -> None:
    more = '[[assistant.persona]]\nid = "kids"\nnames = { en = "For kids" }\nlisted = true\n'
    assistants = build(configured(tmp_path, more + '[[assistant.persona]]\nid = "expert"\n'))
    assert [(one.id, dict(one.names)) for one in assistants.listed()] == [
        ("docs", {"en": "Docs"}),
        ("docs:kids", {"en": "For kids"}),
    ]
    assert assistants.get("docs:expert").names == {"en": "Docs (expert)"}
    await assistants.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[[assistant.persona]]\nid = "pirate"', "prompts/<language>/persona/pirate.md"),
        ("[[assistant.persona]]\nlisted = true", "with an id"),
        ('persona = ["kids"]', "with an id"),
        ('[[assistant.persona]]\nid = "kids"\ncolour = "red"', "unknown colour"),
    ],
)
def test_a_wrong_entry_is_an_error_at_the_start(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        build(configured(tmp_path, more))

"""Tones of an assistant: how they are called and listed, and that nothing but the tone is asked of the model."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import build, opened
from app.core.errors import RequestError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Message, Request
from eval.answers.contestants import OwnAssistant
from eval.questions.cases import load_cases, sample
from eval.questions.own_docs import own_set
from tests.fake_llm import FakeLLM

PROMPTS = load_prompts(("cs", "en"))
ASKED = 6
SHIPPED = ("beginner", "elderly", "emojis", "expert", "kids", "neutral", "rhymes")


def configured(tmp_path: Path, more: str = "") -> Settings:
    file = tmp_path / "assistants.toml"
    steps = '["detect", "probe", "retrieve", "synthesize", "cite"]'
    file.write_text(f'[[assistant]]\nid = "docs"\nnames = {{ en = "Docs" }}\nsteps = {steps}\n{more}', "utf-8")
    return Settings.load(None, assistants=str(file), store=str(tmp_path / "data"))


def test_every_shipped_tone_is_there() -> None:
    assert tuple(sorted(PROMPTS.personas)) == SHIPPED


def assert_toned(toned: dict[str, Any], plain: dict[str, Any], language: str, name: str) -> None:
    """The calls differ by the block of this persona alone."""
    block = PROMPTS.persona(language, name)
    assert toned["messages"][0]["content"] == plain["messages"][0]["content"] + "\n\n" + block
    assert toned["messages"][1:] == plain["messages"][1:]


async def test_a_tone_is_called_by_its_name_but_not_listed(tmp_path: Path) -> None:
    """So that no picker is flooded."""
    assistants = build(configured(tmp_path))
    kids = assistants.get("docs:kids")
    assert (kids.id, kids.persona, kids.plans) == ("docs:kids", "kids", assistants.get("docs").plans)
    assert [one.id for one in assistants.listed()] == ["docs"]
    for name in ("docs:pirate", "docs:", "blog:kids"):
        with pytest.raises(RequestError, match="Available: docs"):
            assistants.get(name)
    with pytest.raises(RequestError, match="docs:name, are: beginner, elderly"):
        assistants.get("docs:pirate")
    await assistants.close()


async def test_a_tone_is_listed_where_the_file_says_so(tmp_path: Path) -> None:
    more = '[[assistant.persona]]\nid = "kids"\nnames = { en = "For kids" }\nlisted = true\n'
    assistants = build(configured(tmp_path, more + '[[assistant.persona]]\nid = "expert"\n'))
    listed = {one.id: dict(one.table.names) for one in assistants.listed()}
    assert listed == {"docs": {"en": "Docs"}, "docs:kids": {"en": "For kids"}}
    assert assistants.get("docs:expert").table.names == {"en": "Docs (expert)"}
    await assistants.close()


async def test_a_request_may_name_a_tone(tmp_path: Path, few_docs: Settings, llm: FakeLLM) -> None:
    """It wins over the one in the assistant's name; an unknown one is the client's mistake."""
    settings = configured(tmp_path).model_copy(update={"llm_url": llm.url, "llm_model": "m", "store": few_docs.store})
    async with opened(settings) as assistants:
        messages = (Message("user", "How do I index another site?"),)
        for name, persona in (("docs:kids", ""), ("docs", "kids"), ("docs:expert", "kids"), ("docs", "")):
            async for _ in assistants.get(name).answer(Request(messages, persona=persona)):
                pass
        with pytest.raises(RequestError, match=r"no persona 'pirate'.*beginner, elderly") as wrong:
            await anext(assistants.get("docs").answer(Request(messages, persona="pirate")))
    assert wrong.value.param == "persona"
    kids, *same, plain = llm.calls
    assert same == [kids, kids]
    assert_toned(kids, plain, "en", "kids")


@pytest.mark.server
async def test_a_tone_changes_neither_passages_nor_rules(tmp_path: Path, few_docs: Settings, llm: FakeLLM) -> None:
    """Questions of our set: the same passages, same prompt but for the persona's block."""
    settings = configured(tmp_path).model_copy(update={"llm_url": llm.url, "llm_model": "m", "store": few_docs.store})
    with own_set() as path:
        cases = sample(load_cases(path), ASKED)
    found: list[list[tuple[str, ...]]] = []
    async with opened(settings) as assistants:
        for id_ in ("docs", *(f"docs:{name}" for name in SHIPPED)):
            one = OwnAssistant(assistants.get(id_), id_)
            found.append([(await one.answer(case)).passages for case in cases])
    assert all(found[0])
    for number, name in enumerate(SHIPPED, start=1):
        assert found[number] == found[0], name
        calls = llm.calls[number * ASKED : (number + 1) * ASKED]
        for case, plain, toned in zip(cases, llm.calls[:ASKED], calls, strict=True):
            assert_toned(toned, plain, case.language, name)

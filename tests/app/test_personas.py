"""Tones of an assistant: how they are called and listed, and that nothing but the tone is asked of the model."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import build, opened
from app.core.errors import RequestError, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Message, Request
from app.models.openai import OpenAIModel
from app.pipeline.steps.synthesize import Synthesize
from app.text.language import LanguageDetector
from eval.answers.contestants import OwnAssistant
from eval.answers.score import Answer, Scorer
from eval.questions.cases import Case, load_cases, sample
from eval.questions.own_docs import indexed_docs, own_set
from tests.app.pipeline.turns import SETTINGS, hit, turn
from tests.fake_llm import FakeLLM
from tests.fakes import FakeEmbedder

PROMPTS = load_prompts(("cs", "en"))
ASKED = 20
SHIPPED = ("beginner", "elderly", "emojis", "expert", "kids", "neutral", "rhymes")


def configured(tmp_path: Path, more: str = "") -> Settings:
    file = tmp_path / "assistants.toml"
    steps = '["detect", "probe", "retrieve", "synthesize", "cite"]'
    file.write_text(f'[[assistant]]\nid = "docs"\nnames = {{ en = "Docs" }}\nsteps = {steps}\n{more}', "utf-8")
    return Settings.load(None, assistants=str(file), store=str(tmp_path / "data"))


def test_every_shipped_tone_is_there() -> None:
    assert tuple(sorted(PROMPTS.personas)) == SHIPPED


@pytest.mark.parametrize("language", ["cs", "en"])
@pytest.mark.parametrize("name", SHIPPED)
async def test_only_the_tone_is_added_to_the_prompt(llm: FakeLLM, model: OpenAIModel, language: str, name: str) -> None:
    """Same passages, same rules, same question, on 40 questions: the system message ends with the persona's block."""
    step = Synthesize(model, PROMPTS, SETTINGS)
    for number in range(40):
        asked = turn(
            f"What is the limit number {number}?", language, hits=(hit(1, f"The limit is {number} GB."), hit(2))
        )
        for persona in ("", name):
            toned = replace(asked, request=replace(asked.request, persona=persona))
            async for _ in (await step(toned))["events"]:
                pass
    for plain, toned in zip(llm.calls[::2], llm.calls[1::2], strict=True):
        assert_toned(toned, plain, language, name)


def assert_toned(toned: dict[str, Any], plain: dict[str, Any], language: str, name: str) -> None:
    """The calls differ by the block of this persona alone."""
    block = PROMPTS.persona(language, name)
    assert toned["messages"][0]["content"] == plain["messages"][0]["content"] + "\n\n" + block
    assert toned["messages"][1:] == plain["messages"][1:]


async def test_a_tone_is_called_by_its_name_but_not_listed(tmp_path: Path) -> None:
    """So that no picker is flooded."""
    assistants = build(configured(tmp_path))
    kids = assistants.get("docs:kids")
    assert (kids.id, kids.persona, kids.plan) == ("docs:kids", "kids", assistants.get("docs").plan)
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
    listed = {one.id: dict(one.names) for one in assistants.listed()}
    assert listed == {"docs": {"en": "Docs"}, "docs:kids": {"en": "For kids"}}
    assert assistants.get("docs:expert").names == {"en": "Docs (expert)"}
    await assistants.close()


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ('[[assistant.persona]]\nid = "pirate"', "prompts/<language>/persona/pirate.md"),
        ("[[assistant.persona]]\nlisted = true", "persona 1: id is missing"),
        ('persona = ["kids"]', r"must be written as \[\[assistant.persona\]\]"),
        ('[[assistant.persona]]\nid = "kids"\ncolour = "red"', "unknown colour"),
    ],
)
def test_a_wrong_entry_is_an_error_at_the_start(tmp_path: Path, more: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        build(configured(tmp_path, more))


async def test_a_request_may_name_a_tone(tmp_path: Path, llm: FakeLLM) -> None:
    """It wins over the one in the assistant's name; an unknown one is the client's mistake."""
    settings = configured(tmp_path).model_copy(update={"llm_url": llm.url, "llm_model": "m"})
    async with indexed_docs(settings) as own, opened(own) as assistants:
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
async def test_a_tone_changes_neither_passages_nor_rules(tmp_path: Path, llm: FakeLLM) -> None:
    """Questions of our set, over our documentation: same passages, same prompt but for the persona's block."""
    settings = configured(tmp_path).model_copy(update={"llm_url": llm.url, "llm_model": "m"})
    with own_set() as path:
        cases = sample(load_cases(path), ASKED)
    found: list[list[tuple[str, ...]]] = []
    async with indexed_docs(settings) as own, opened(own) as assistants:
        for id_ in ("docs", *(f"docs:{name}" for name in SHIPPED)):
            one = OwnAssistant(assistants.get(id_), id_)
            found.append([(await one.answer(case)).passages for case in cases])
    assert all(found[0])
    for number, name in enumerate(SHIPPED, start=1):
        assert found[number] == found[0], name
        calls = llm.calls[number * ASKED : (number + 1) * ASKED]
        for case, plain, toned in zip(cases, llm.calls[:ASKED], calls, strict=True):
            assert_toned(toned, plain, case.language, name)


PLAIN = "A project gets 10 GiB [1]. Set it with `kubectl apply -f quota.yaml`, see https://docs.example.org/quota."
PASSAGE = "Each project gets 10 GiB. Run kubectl apply -f quota.yaml; see https://docs.example.org/quota"


@pytest.mark.parametrize(
    ("toned", "fidelity", "kept"),
    [
        ("Hey! 🎉 You get 10 GiB [1]! Just `kubectl apply -f quota.yaml`: https://docs.example.org/quota", 1, 1),
        (
            "Hey! 🎉 You get 20 GiB [1]! Just `kubectl apply -f quota.yaml`: https://docs.example.org/quota",
            2 / 3,
            2 / 3,
        ),
        ("Hey! 🎉 You get 10 GiB [1]! See https://docs.example.org/quota", 1, 2 / 3),
        ("Hey! 🎉 You get 10 GiB [1]! Just `kubectl apply -f quota.yaml`: https://example.org/fun", 2 / 3, 2 / 3),
    ],
    ids=["tone only", "number changed", "command dropped", "link changed"],
)
async def test_what_a_tone_changes_besides_is_caught(toned: str, fidelity: float, kept: float) -> None:
    """A persona beside its assistant in `eval run`: made-up claims lower `fidelity`, dropped ones `kept`."""
    case = Case(id="q", language="en", question="How much?", doc="en/quota", variant="1")
    answers = [Answer("docs", "q", PLAIN, (PASSAGE,)), Answer("docs:emojis", "q", toned, (PASSAGE,))]
    scorer = Scorer(PROMPTS, LanguageDetector(PROMPTS.languages, "en"), FakeEmbedder())
    plain, one = await scorer.score(answers, {"q": case}, ())
    assert (plain.values["fidelity"], plain.values["kept"]) == (1, None)
    assert (one.values["fidelity"], one.values["kept"]) == (pytest.approx(fidelity), pytest.approx(kept))

"""What clients send beside the question: wishes of style, attached material, their own numbering."""

from dataclasses import replace

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message, Question, Request, Source
from app.pipeline.conversation import LONGEST_STYLE
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.synthesize import Synthesize
from tests.app.pipeline.turns import SETTINGS, hit, text_of, turn
from tests.fake_llm import Reply

PROMPTS = load_prompts(("cs", "en"))
HITS = (hit(1, "Each notebook gets 4 GB."), hit(2, "Nothing about it."))


@pytest.fixture
def events(model):
    """Answers a turn."""

    async def answered(given):
        changes = await Synthesize(model, PROMPTS, SETTINGS)(given)
        cited = await Cite(PROMPTS)(replace(given, events=changes["events"]))
        return [event async for event in cited["events"]]

    return answered


def asked(*system, **fields):
    lines = (*(Message("system", text) for text in system), Message("user", "How much memory?"))
    return turn("How much memory?", hits=HITS, request=Request(lines, **fields))


@pytest.mark.parametrize("language", ["cs", "en"])
async def test_system_messages_are_style_below_our_rules(llm, events, language):
    await events(replace(asked("Be a pirate.", "Be brief."), asked=Question("How much memory?", language)))
    system = llm.calls[0]["messages"][0]["content"]
    ours = PROMPTS.render(language, "synthesize", passages="")
    assert system.startswith(ours[:200])
    assert "<style>\nBe a pirate.\n\nBe brief.\n</style>" in system
    assert [m["role"] for m in llm.calls[0]["messages"]].count("system") == 1


async def test_long_wishes_are_cut_and_without_any_nothing_is_said_of_them(llm, events):
    for wishes in (("x" * 100_000,), ()):
        await events(asked(*wishes))
    long, without = (call["messages"][0]["content"] for call in llm.calls)
    assert long.count("x") < LONGEST_STYLE + 100
    assert "<style>" not in without
    assert "<attached>" not in without


async def test_attached_material_leaves_room_for_the_passages(llm, events):
    await events(asked(attached=("y" * 200_000,)))
    system = llm.calls[0]["messages"][0]["content"]
    assert "Each notebook gets 4 GB." in system
    assert len(system) < SETTINGS.llm_context_window * 3


async def test_a_link_from_attached_material_stays(llm, events):
    llm.reply = lambda _: Reply("See [it](https://attached.example.org/x).")
    found = await events(asked(attached=("Look at https://attached.example.org/x",)))
    assert "https://attached.example.org/x" in text_of(found)


async def test_numbers_begin_where_the_client_wants(llm, events):
    llm.reply = lambda _: Reply("First [2] then [1].")
    found = await events(asked(first_number=4))
    assert text_of(found).startswith("First [4] then [5].")
    assert [(s.number, s.title) for s in found if isinstance(s, Source)] == [(4, "Page 2"), (5, "Page 1")]
    assert "\n4. [Page 2]" in text_of(found)

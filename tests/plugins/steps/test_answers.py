"""Steps around an answer: what is condensed before it, and a second opinion on what it says."""

import logging
from collections.abc import Mapping

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Event, Evidence, Text
from app.core.types import Passage
from app.models import Model
from app.pipeline.conversation import numbered
from app.pipeline.steps.cite import Cite
from plugins.steps.choices import Condense, Verify, faithful, parse_picked
from tests.app.pipeline.turns import HURRIED, SETTINGS, hit, stream, text_of, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
LONG = (
    "A project may have 64 GB of memory. Ask with `kubectl get quota`. The port is 2049, see https://example.org/a/b.\n\n"
    "```sh\nkubectl delete pod web --now\nrm -rf ./build\n```\n\n" + "Other things follow. " * 300
)


def condensed(changes: Mapping[str, tuple[Passage, ...]]) -> dict[str, str]:
    """The shorter texts by the ids of their chunks."""
    return {passage.chunk.id: passage.condensed for passage in changes["passages"] if passage.condensed}


def condense(model: Model, **settings: object) -> Condense:
    return Condense(model, PROMPTS, SETTINGS.model_copy(update={"helper_timeout": 6.0} | settings))


async def test_long_passages_are_condensed_and_short_ones_stay_as_they_are(llm: FakeLLM, model: Model) -> None:
    """By default from five of 1,500 characters on; a text that was cut off isn't used, and one without numbers is an error."""
    assert condensed(await condense(model)(turn(hits=(hit(1),)))) == {}
    assert llm.calls == []
    two = turn(hits=(hit(1, LONG), hit(2, LONG)))
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.\n[2] A project may", finish="length")
    assert set(condensed(await condense(model)(two))) == {"c1"}
    assert await condense(model)(turn(hits=tuple(hit(n, LONG[:1500]) for n in range(1, 6))))
    llm.reply = lambda _: Reply("A project may have 64 GB.")
    with pytest.raises(ModelError, match="used unchanged"):
        await condense(model)(two)


async def test_a_text_stays_with_its_passage(llm: FakeLLM, model: Model) -> None:
    """Whatever a later step does to the hits; a passage that the model leaves out or changes is used as it is."""
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.\n\n**[3]**: A project may have 128 GB.")
    hits = (hit(1, LONG), hit(2, LONG), hit(3, LONG))
    changes = await condense(model)(turn(hits=hits))
    assert condensed(changes) == {"c1": "A project may have 64 GB of memory."}
    shown = numbered(changes["passages"])
    site, text = "docs.example.org > Page", "A project may have 64 GB of memory."
    assert f"[1] {site} 1\n{text}\n\n[2] {site} 2\nA project" in shown


async def test_only_the_longest_passages_are_shown_and_only_whole(llm: FakeLLM, model: Model) -> None:
    """As many as it takes, none that the model's window has no room for, and no more is asked than there is time for."""
    llm.reply = lambda _: Reply("[1] A project may have 64 GB of memory.")
    hits = (hit(1, "Short. " * 100), hit(2, LONG), hit(3, "Short. " * 100))
    assert set(condensed(await condense(model)(turn(hits=hits)))) == {"c2"}
    body = llm.calls[0]
    assert "[1] docs.example.org > Page 2" in body["messages"][0]["content"]
    assert "Short." not in body["messages"][0]["content"]
    assert "1800 characters" in body["messages"][0]["content"]
    assert body["max_tokens"] == 600
    assert condensed(await condense(model, llm_context_window=4000)(turn(hits=hits))) == {}


FAITHFUL = (
    "A project may have 64 GB.",
    "Ask with `kubectl get quota`.",
    "A project may have 64.",
    "```sh\nkubectl delete pod web --now\n```",
    "A `project` may have **64 GB** of memory.",
    "See https://example.org/a/b.",
)
NUMBERS = ("A project may have 65 GB.", "A project may have at most 6 GB.", "A project may have 64 MB.", "Port 49.")
ADDRESSES = ("See https://example.org/quota.", "See https://example.org/a.")
COMMANDS = ("Ask with `kubectl get quotas`.", "Run `rm -rf .`", "Run `kubectl delete pod web`")
BLOCKS = tuple(f"```sh\n{code}\n```" for code in ("kubectl delete pod web", "kubectl delete namespace web", "rm -rf ."))
INVENTED = (*NUMBERS, *ADDRESSES, *COMMANDS, *BLOCKS, "", LONG + ".")


def test_nothing_is_invented() -> None:
    assert [text for text in (*FAITHFUL, *INVENTED) if faithful(text, LONG)] == [*FAITHFUL]


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ("Here:\n[2] second\nmore [1] inside\n[10]: tenth", {2: "second\nmore [1] inside", 10: "tenth"}),
        ("[1] See:\n```\n[1] 3.14\n[2] 2.71\n```\nThat is R.", {1: "See:\n```\n[1] 3.14\n[2] 2.71\n```\nThat is R."}),
        ("[1] ~~~\n[2] a\n```\n~~~\n[2] b", {1: "~~~\n[2] a\n```\n~~~", 2: "b"}),
        ("[1] first\n[2] second\n[1] first again", {2: "second"}),
        ("[1] first\n[2] ```\nnever closed\n[3] third", {1: "first"}),
        ("nothing", {}),
    ],
    ids=["plain", "marks in code", "two fences", "twice", "open code", "none"],
)
def test_what_is_read_of_an_answer(answer: str, expected: dict[int, str]) -> None:
    assert parse_picked(answer) == expected


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

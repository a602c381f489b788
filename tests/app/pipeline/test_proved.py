"""Answers whose statements are proved: what readers get, which sources are listed, and how the answer ends."""

from __future__ import annotations

from app.core.prompts import load_prompts
from app.core.turn import Done, Event, Evidence, Message, Request, Source, Text
from app.pipeline.steps.cite import Cite
from tests.app.pipeline.turns import hit, stream, text_of, turn

PROMPTS = load_prompts(("cs", "en"))
HITS = (
    hit(1, "Backups run every night at 02:00. They are kept for 30 days in the archive.", title="Backups"),
    hit(2, "A restore takes an hour. Ask the administrators for it.", title="Restore"),
)
ENGLISH = PROMPTS.language("en").texts


async def answered(
    *pieces: str,
    whole: bool = False,
    unproven: str = "mark",
    evidence: Evidence | None = None,
    end: Done = Done(),  # noqa: B008  # frozen
) -> list[Event]:
    request = Request((Message("user", "How are backups kept?"),), id="t1", whole=whole)
    asked = turn(
        "How are backups kept?",
        hits=HITS,
        request=request,
        events=stream(*map(Text, pieces), end),
        evidence=evidence,
    )
    step = Cite(PROMPTS, unproven=unproven)
    return [event async for event in (await step(asked))["events"]]


def done(events: list[Event]) -> Done:
    assert isinstance(events[-1], Done)
    return events[-1]


async def test_a_marked_statement_loses_its_citation_and_its_source() -> None:
    events = await answered("Backups run every night [1]. They run at 02:00 [1]. ", "A restore takes 5 weeks [2].")
    assert f"A restore takes 5 weeks. {ENGLISH.unproven}" in text_of(events)
    assert [one.title for one in events if isinstance(one, Source)] == ["Backups"]
    assert [(one.kind, one.passage) for one in done(events).unsupported] == [("number", 2)]
    assert (done(events).refused, done(events).ending) == (False, "")


async def test_a_mostly_unproved_answer_becomes_a_refusal() -> None:
    """Who waits for the whole answer never sees it; who reads along is told not to rely on it."""
    said = ("Backups are kept for 90 days [1]. ", "A restore takes 5 weeks [2].")
    whole, streamed = await answered(*said, whole=True), await answered(*said)
    assert text_of(whole).startswith(ENGLISH.refuted)
    assert "90 days" not in text_of(whole)
    assert f"5 weeks. {ENGLISH.unproven}\n\n{ENGLISH.refuted}" in text_of(streamed)
    for events in (whole, streamed):
        assert (done(events).refused, done(events).ending) == (True, "unproven")
        assert not [one for one in events if isinstance(one, Source)]


async def test_an_answer_that_recites_its_rules_is_cut() -> None:
    rules = PROMPTS.render("en", "synthesize", passages="")
    events = await answered("My instructions are: ", *(f"{word} " for word in rules.split()))
    assert (done(events).refused, done(events).ending) == (True, "recited")
    assert "Copy numbers" not in text_of(events)


async def test_what_follows_a_sign_of_another_turn_is_not_shown() -> None:
    """The rest isn't read, and the sources are those of what was shown."""
    events = await answered("Backups run every night [1].", "<|im_end|>", "\nA restore takes 5 weeks [2].")
    assert "restore" not in text_of(events)
    assert [one.title for one in events if isinstance(one, Source)] == ["Backups"]
    assert done(events).ending == "turned"


async def test_nothing_is_judged_when_it_is_off() -> None:
    events = await answered("Backups are kept for 90 days [1].", unproven="off")
    assert ENGLISH.unproven not in text_of(events)
    assert done(events).unsupported == ()


async def test_sources_are_the_passages_that_the_sentences_rest_on() -> None:
    """Whatever numbers the model wrote, or none."""
    for said in ("A restore takes an hour [1].", "A restore takes an hour.", "A restore takes an hour [1][2]."):
        events = await answered(said)
        assert text_of(events).startswith("A restore takes an hour [1].")  # numbered in the order of their first use
        assert [one.title for one in events if isinstance(one, Source)] == ["Restore"]


async def test_confidence_is_that_of_the_evidence_and_of_what_is_proved() -> None:
    """In words, too; a refusal has none, and an answer whose evidence nobody checked no figure."""
    good, doubtful = "Backups run every night [1]. They run at 02:00 [1]. ", "A restore takes 5 weeks [2]."
    enough, little = Evidence(0.64, 0.32), Evidence(0.33, 0.32)
    said = [done(await answered(*pieces, evidence=found)) for pieces, found in (
        ((good,), enough), ((good, doubtful), enough), ((good,), little), ((doubtful, "It costs 9 EUR [1]."), enough), ((good,), None),
    )]  # fmt: skip
    assert [(end.confidence, end.support) for end in said] == [
        (0.88, "well supported"), (0.59, "partly"), (0.38, "partly"), (0.0, "not in the documentation"), (None, None),
    ]  # fmt: skip


async def test_a_quotation_that_begins_with_perhaps_is_not_well_supported() -> None:
    """However much of the question is in the passages."""
    quoted = [
        done(await answered("Perhaps:", evidence=Evidence(0.64, 0.32), end=Done(extractive=True, doubtful=doubtful)))
        for doubtful in (False, True)
    ]
    assert [(end.confidence, end.support) for end in quoted] == [(0.88, "well supported"), (0.6, "partly")]

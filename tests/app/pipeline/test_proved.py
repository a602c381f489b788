"""Answers whose statements are proved: what readers get, which sources are listed, and how the answer ends."""

from __future__ import annotations

import shutil

import pytest

from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Event, Evidence, Message, Request, Source, Text
from app.index.embedded.store import EmbeddedStore
from app.models import open_embedder
from app.pipeline.steps.cite import Cite
from app.proof.check import Checker
from app.proof.evidence import Evidence as Read
from app.proof.wording import Wording
from tests.app.pipeline.test_retrieve import Broken
from tests.app.pipeline.turns import hit, stream, text_of, turn
from tests.app.published import publish
from tests.fakes import FakeEmbedder

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
    """In words, too; a refusal has none, an answer whose evidence nobody checked no figure, and "Perhaps" never much."""
    perhaps = await answered("Perhaps:", evidence=Evidence(0.64, 0.32), end=Done(extractive=True, doubtful=True))
    assert (done(perhaps).confidence, done(perhaps).support) == (0.6, "partly")
    good, doubtful = "Backups run every night [1]. They run at 02:00 [1]. ", "A restore takes 5 weeks [2]."
    enough, little = Evidence(0.64, 0.32), Evidence(0.33, 0.32)
    said = [done(await answered(*pieces, evidence=found)) for pieces, found in (
        ((good,), enough), ((good, doubtful), enough), ((good,), little), ((doubtful, "It costs 9 EUR [1]."), enough), ((good,), None),
    )]  # fmt: skip
    assert [(end.confidence, end.support) for end in said] == [
        (0.88, "well supported"), (0.59, "partly"), (0.38, "partly"), (0.0, "not in the documentation"), (None, None),
    ]  # fmt: skip


async def test_statements_in_doubt_are_compared_in_meaning(tmp_path, monkeypatch) -> None:
    """With the vectors of the index and of the embedder that it was made with, also across languages."""
    monkeypatch.setattr("app.index.ranking.units.FEWEST_CHUNKS", 6)
    monkeypatch.setattr("app.pipeline.steps.cite.FEWEST_CHUNKS", 6)
    embedder, store = (
        open_embedder(Settings.load(None, embedding_model="local:multilingual-e5-small")),
        EmbeddedStore(tmp_path / "index"),
    )
    texts = (
        "The cluster has 40 nodes.",
        "Log in with your password.",
        "Books are lent for a month.",
        "A licence costs 20 €.",
    )
    hits = (*HITS, *(hit(number, text) for number, text in enumerate(texts, start=3)))
    await publish(store, embedder, *(one.chunk for one in hits))
    paraphrase = "Everything is backed up nightly and archived for thirty days afterwards [1]. "
    foreign = "A courier collects magnetic tapes and stores them beneath some mountain [1]. "

    async def shown(*pieces: str, language: str = "en") -> str:
        asked = turn("How are backups kept?", language, hits=HITS, events=stream(*map(Text, pieces), Done()))
        step = Cite(PROMPTS, unproven="mark", embedder=embedder)
        return text_of([event async for event in (await step(asked.changed(generation=await store.live())))["events"]])

    by_words = Checker(
        Read([one.chunk.text for one in HITS], ["en", "en"], "How are backups kept?"), "en", Wording(PROMPTS.languages)
    )
    assert by_words.sentence(paraphrase)[0].kind == "statement"
    text = await shown("Backups run every night [1]. ", paraphrase, foreign)
    assert f"beneath some mountain. {ENGLISH.unproven}" in text
    assert text.count(ENGLISH.unproven) == 1
    czech = await shown(
        "Zálohy se dělají každou noc ve dvě hodiny [1]. ", "Kurýr převáží pásky do hor [1].", language="cs"
    )
    assert czech.count(PROMPTS.language("cs").texts.unproven) == 1
    assert "Kurýr převáží pásky do hor. " in czech
    await store.close()


@pytest.mark.parametrize("broken", ["embedder", "index"])
async def test_without_their_meaning_words_decide(tmp_path, monkeypatch, caplog, broken: str) -> None:
    """The answer goes on, and what failed isn't asked a second time."""
    monkeypatch.setattr("app.index.ranking.units.FEWEST_CHUNKS", 2)
    monkeypatch.setattr("app.pipeline.steps.cite.FEWEST_CHUNKS", 2)
    embedder, store = Broken() if broken == "embedder" else FakeEmbedder(), EmbeddedStore(tmp_path / "index")
    await publish(store, FakeEmbedder(), *(one.chunk for one in HITS))
    live = await store.live()
    if broken == "index":
        shutil.rmtree(tmp_path / "index")
    said = ("Backups run every night [1]. ", "Tapes travel weekly beneath some mountain [1]. " * 2)
    asked = turn("How are backups kept?", hits=HITS, generation=live, events=stream(*map(Text, said), Done()))
    events = [event async for event in (await Cite(PROMPTS, unproven="mark", embedder=embedder)(asked))["events"]]
    assert text_of(events).count(ENGLISH.unproven) == 1
    assert len([one for one in caplog.records if "words" in one.getMessage()]) == 1
    await store.close()

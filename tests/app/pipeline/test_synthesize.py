"""The answer: what the model is given, also by clients, and what a reader gets when it fails."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from app.core.errors import ModelError, ModelUnavailable
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import (
    Done,
    Event,
    Evidence,
    Failure,
    Message,
    Question,
    Request,
    Sampling,
    Source,
    Turn,
    WantedDates,
)
from app.core.types import Boost, Recency
from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from app.pipeline.conversation import LONGEST_STYLE, read_passages
from app.pipeline.steps.cite import Cite
from app.pipeline.steps.synthesize import SIGNS_OF_TURNS, Synthesize
from tests.app.pipeline.turns import HURRIED, SETTINGS, hit, text_of, turn
from tests.app.routes.scripted import until
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "de", "en"))
MEMORY = "## Memory\n\nEach notebook gets 4 GB.\n\nMore memory on request:\n\n```bash\nmem --set 8\n\n# done\n```"
HITS = (hit(1, MEMORY, path=("Memory",)), hit(2, "Nothing about it."))


async def answer(llm: FakeLLM | None, given: Turn, settings: Settings = SETTINGS) -> list[Event]:
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=settings.llm_timeout), "m")) if llm else None
    try:
        changes = await Synthesize(PROMPTS, settings, model)(given)
        return [event async for event in changes["events"]]
    finally:
        if model:
            await model.close()


async def test_the_model_gets_passages_history_and_the_refined_question(llm: FakeLLM) -> None:
    """Numbered passages with their headings, the earlier talk, the client's sampling; the answer is passed on."""
    messages = (Message("user", "Hi"), Message("assistant", "Hello"), Message("user", "And memory?"))
    request = Request(messages, sampling=Sampling(temperature=0.7, max_tokens=99999, stop=("END",), seed=4))
    events = await answer(llm, turn("And memory?", hits=HITS, refined="How much memory?", request=request))
    assert text_of(events).strip() == "The answer [1]."
    assert events[-1] == Done("stop")
    sent = llm.calls[0]
    assert [m["role"] for m in sent["messages"]] == ["system", "user", "assistant", "user"]
    assert "[1] docs.example.org > Page 1\n## Memory\n\nEach notebook gets 4 GB." in sent["messages"][0]["content"]
    assert sent["messages"][-1]["content"] == "How much memory?"
    sampling = {"temperature": 0.7, "max_tokens": SETTINGS.tuning.llm_max_tokens, "stop": ["END"], "seed": 4}
    assert sampling.items() <= sent.items()


@pytest.mark.parametrize(
    ("asked", "more", "sent"),
    [
        ("What changed since March?", {}, "What changed?"),
        ("What changed since March?", {"refined": "Which pages changed since March?"}, "Which pages changed?"),
        ("What changed since March?", {"refined": "Changes of the last weeks?"}, "What changed?"),
        ("And since March?", {"refined": "New quotas of late?", "referred": "Quotas?"}, "New quotas of late?"),
    ],
)
async def test_a_time_that_the_search_has_settled_is_told_apart(
    llm: FakeLLM, asked: str, more: dict, sent: str
) -> None:
    """The question has no time, so that no date or id is made up for it; the passages say when they changed."""
    dates = WantedDates("What changed?", "since March", Boost(15.0, first="2024-03-01"))
    await answer(llm, turn(asked, hits=HITS, dates=dates, **more))
    messages = llm.calls[0]["messages"]
    assert messages[-1]["content"] == sent
    assert "2024-03-01 – …" in messages[0]["content"]
    await answer(llm, turn("What changed?", hits=HITS, dates=WantedDates(recency=Recency("2025-01-01"))))
    assert "pages of this time" not in llm.calls[1]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("given", "short"),
    [
        ({}, False),
        ({"llm_form": "short"}, True),
        ({"llm_context_window": 4000}, True),
        ({"llm_context_window": 4000, "llm_form": "full"}, False),
    ],
)
async def test_a_weak_model_reads_little_and_stops_at_signs_of_another_turn(
    llm: FakeLLM, given: dict[str, Any], *, short: bool
) -> None:
    """Three passages; a client's own `stop` wins. Others get all, and no `stop`. Rules stand below the passages: what is read last is followed best."""
    settings = Settings.load(None, llm_timeout=60.0, **given)
    hits = tuple(hit(n, f"Text {n}.") for n in range(1, 5))
    await answer(llm, turn(hits=hits), settings)
    request = Request((Message("user", "And memory?"),), sampling=Sampling(stop=("END",)))
    await answer(llm, turn(hits=hits, request=request), settings)
    system = llm.calls[0]["messages"][0]["content"]
    assert ("Text 4." in system) is not short
    assert system.index("Text 1.") < system.index("word for word")
    assert [call.get("stop") for call in llm.calls] == [list(SIGNS_OF_TURNS) if short else None, ["END"]]


async def test_the_model_sees_when_a_page_changed_or_else_was_published(llm: FakeLLM) -> None:
    days = ({"published": "2023-01-05", "modified": "2024-03-01T10:00:00+00:00"}, {"published": "2023-01-05"}, {})
    pages = tuple(
        replace(each, chunk=replace(each.chunk, **dates))
        for each, dates in zip(map(hit, range(1, 4), ("One.", "Two.", "Three.")), days, strict=True)
    )
    await answer(llm, turn(hits=pages))
    prompt = llm.calls[0]["messages"][0]["content"]
    assert "[1] docs.example.org > Page 1 (2024-03-01)\nOne." in prompt
    assert "[2] docs.example.org > Page 2 (2023-01-05)\nTwo." in prompt
    assert "[3] docs.example.org > Page 3\nThree." in prompt


@pytest.mark.parametrize(
    ("reply", "fails"),
    [
        (Reply(status=500), True),
        (Reply(delay=60), True),
        (Reply(dies_after=0), True),
        (Reply(text=""), False),
        (Reply(text="<think>hm</think>"), False),
        (Reply(text="[1]. [2]."), False),
    ],
)
@pytest.mark.parametrize("language", ["cs", "de", "en"])
async def test_a_model_that_says_nothing_means_an_extractive_answer(
    llm: FakeLLM, reply: Reply, language: str, *, fails: bool
) -> None:
    """The best passage word for word, code whole. Only a model that can't be asked is called one that doesn't answer."""
    llm.reply = lambda _: reply
    settings = HURRIED if reply.delay else SETTINGS
    events = await answer(llm, turn(language=language, hits=HITS), settings)
    text, texts = text_of(events), PROMPTS.language(language).texts
    done = events[-1]
    assert isinstance(done, Done)
    sure = texts.extractive_unsure if done.doubtful else texts.extractive_intro
    assert text.startswith(f"{texts.extractive_failed} {sure}\n" if fails else f"{sure}\n")
    assert "Each notebook gets 4 GB." in text
    assert "```bash\nmem --set 8\n\n# done\n```" in text
    assert replace(done, doubtful=False) == Done(extractive=True)


async def test_a_doubtful_quotation_says_perhaps_also_if_the_model_fails(llm: FakeLLM) -> None:
    """The reason why it stands there makes it no surer."""
    llm.reply = lambda _: Reply(status=500)
    events = await answer(llm, turn("Which licence does each backup of a cluster need?", hits=HITS))
    texts = PROMPTS.language("en").texts
    assert text_of(events).startswith(f"{texts.extractive_failed} {texts.extractive_unsure}\n")
    assert isinstance(events[-1], Done)
    assert events[-1].doubtful


async def test_without_a_model_the_answer_is_extractive() -> None:
    """The embedded default needs no model at all."""
    events = await answer(None, turn(hits=HITS))
    assert "*Page 1 › Memory* [1]" in text_of(events)
    assert events[-1] == Done(extractive=True)


async def test_the_setting_error_makes_the_failure_an_error(llm: FakeLLM) -> None:
    """on_model_failure=error: the caller gets the model's error before any text."""
    failures = ((Reply(status=500), ModelUnavailable, None), (Reply(text=""), ModelError, "empty answer"))
    for reply, error, says in failures:
        llm.reply = lambda _, reply=reply: reply
        with pytest.raises(error, match=says):
            await answer(llm, turn(hits=HITS), SETTINGS.model_copy(update={"on_model_failure": "error"}))


async def test_a_model_that_dies_in_mid_answer_ends_with_a_failure(llm: FakeLLM) -> None:
    """What was said stays, then a Failure: no second answer is glued to the first."""
    llm.reply = lambda _: Reply("The limit is what the passages say.", dies_after=6)
    events = await answer(llm, turn(hits=HITS))
    assert text_of(events) == "The limit is what the passages "
    assert isinstance(events[-1], Failure)


async def test_an_answer_of_which_nothing_was_shown_can_still_be_extractive(llm: FakeLLM) -> None:
    """The model dies while its first text is held back, or while a client waits for the whole: no failure."""
    llm.reply = lambda _: Reply("Limit 4 GB.", dies_after=2)
    assert (await answer(llm, turn(hits=HITS)))[-1] == Done(extractive=True)
    llm.reply = lambda _: Reply("The limit is what the passages say.", dies_after=6)
    request = Request((Message("user", "Memory?"),), whole=True)
    events = await answer(llm, turn("Memory?", hits=HITS, request=request))
    assert events[-1] == Done(extractive=True)
    assert "passages" not in text_of(events)


async def test_what_is_only_related_is_named_but_not_answered_from(llm: FakeLLM) -> None:
    """Under "nothing found" stand at most five nearest pages, each once, with a sentence; three for a question that a page is near to by a word alone."""
    related = (hit(1), hit(1), hit(2), *(hit(n) for n in range(3, 7)))
    text = text_of(await answer(llm, turn("Memory?", related=related, evidence=Evidence(0.05, 0.32, near=True))))
    assert [f"page-{n}" in text for n in range(1, 5)] == [True, True, True, False]
    for unrelated in (turn(related=related), turn("Memory?", related=related, evidence=Evidence(0.05, 0.32))):
        assert text_of(await answer(llm, unrelated)) == PROMPTS.render("en", "nothing_found")
    unknown = Evidence(0.1, 0.32, ("wifi", "*b*"), near=True)
    assert "No page has: *wifi*, *\\*b\\**." in text_of(
        await answer(llm, turn("wifi *b*?", related=related, evidence=unknown))
    )
    text = text_of(await answer(llm, turn("Which page has text?", related=related)))
    assert text.startswith(PROMPTS.render("en", "nothing_found"))
    assert text.count("page-1") == 1
    assert "- [Page 5](https://docs.example.org/page-5)" in text
    assert "page-6" not in text
    assert llm.calls == []


async def test_a_page_is_near_if_a_sentence_of_it_has_much_of_the_question(llm: FakeLLM) -> None:
    """Though no heading has a word of it; a common word isn't enough."""
    others = [hit(n, "Nothing is for free.") for n in range(2, 6)]
    asked = turn("what licence do customers get", related=(*others, hit(1, "All is for free. The licence is MIT.")))
    text = text_of(await answer(llm, asked.changed(evidence=Evidence(0.1, 0.32, near=True))))
    assert "\n\n- [Page 1](https://docs.example.org/page-1) – All is for free. The licence is MIT." in text
    assert text.count("https://") == 3


@pytest.mark.parametrize(
    ("reply", "quoted"),
    [
        ("How much memory can I get?", True),
        ("How much memory can you get? [1]", False),
        ("You can get much memory [1].", False),
        ("[1]. [2].", True),
        ("4 GB [1].", False),
        ("Yes.", False),
        ("The documentation has no answer.", False),
    ],
)
@pytest.mark.parametrize("whole", [False, True])
async def test_an_answer_that_repeats_the_question_is_a_quotation(
    llm: FakeLLM, reply: str, *, quoted: bool, whole: bool
) -> None:
    """And so is one of citations alone. What the question says may be what the pages say, too."""
    llm.reply = lambda _: Reply(reply)
    request = Request((Message("user", "How much memory can I get?"),), whole=whole)
    events = await answer(llm, turn(hits=HITS, request=request))
    done = events[-1]
    assert isinstance(done, Done)
    assert done.extractive is quoted
    assert ("Each notebook gets 4 GB." in text_of(events)) is quoted


async def test_an_unproved_answer_that_nobody_has_seen_is_a_quotation(llm: FakeLLM, model: Model) -> None:
    """It has its links, and says what was wrong with the answer; whoever reads along has seen that, and is told so."""
    llm.reply = lambda _: Reply("Each notebook gets 64 GB [1]. Memory costs 12 crowns a day [2]. It takes 3 weeks [1].")
    seen = dict[bool, tuple[str, Done]]()
    for whole in (True, False):
        asked = turn(
            "How much memory?", hits=HITS, request=Request((Message("user", "How much memory?"),), whole=whole)
        )
        asked = asked.changed(**await Synthesize(PROMPTS, SETTINGS, model)(asked))
        events = [event async for event in (await Cite(PROMPTS, unproven="mark")(asked))["events"]]
        assert isinstance(events[-1], Done)
        seen[whole] = text_of(events), events[-1]
        assert any(isinstance(event, Source) for event in events) is whole
    (text, done), (streamed, end) = seen[True], seen[False]
    assert text.startswith(PROMPTS.language("en").texts.extractive_intro)
    assert "> Each notebook gets 4 GB." in text
    assert not any(said in text for said in ("64", PROMPTS.language("en").texts.refuted))
    assert PROMPTS.language("en").texts.refuted in streamed
    assert (done.extractive, done.refused, done.ending) == (True, False, "unproven")
    assert done.unsupported == end.unsupported


async def test_closing_the_answer_cancels_the_call_upstream(llm: FakeLLM, model: Model) -> None:
    """A reader who leaves costs the model nothing more."""
    llm.reply = lambda _: Reply("word " * 50, piece_delay=0.02)
    events = (await Synthesize(PROMPTS, SETTINGS, model)(turn(hits=HITS)))["events"]
    await anext(events)
    await events.aclose()
    await until(lambda: llm.cancelled)
    assert llm.cancelled == 1


async def test_passages_end_between_sentences_where_the_window_or_the_setting_is_full(llm: FakeLLM) -> None:
    """The first passage is always there, later ones only while there is room."""
    hits = tuple(hit(n, f"Sentence number {n} is here. " * 20) for n in range(1, 6))
    for settings in ({"passage_tokens": 500}, {"llm_context_window": 2600}, {"passage_tokens": 200}):
        await answer(llm, turn(hits=hits), SETTINGS.model_copy(update=settings))
        system = llm.calls[-1]["messages"][0]["content"]
        assert "[1] docs.example.org > Page 1\nSentence" in system
        assert ("[2] docs" in system) == (settings != {"passage_tokens": 200})
        assert "[3] docs" not in system
    long = hit(1, "Sentence number 1 is here. " * 99)
    await answer(llm, turn(hits=(long,)), SETTINGS.model_copy(update={"passage_tokens": 200}))
    assert "Sentence number 1 is here.\n\n…" in llm.calls[-1]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("speed", "timeout", "most"),
    [(250.0, 60, 5000), (5.0, 2000, 3000), (5.0, 60, 1500), (120.0, 60, 2400), (float("inf"), 60, 11_100)],
)
async def test_a_model_that_reads_slowly_gets_less_but_not_too_little(speed: float, timeout: float, most: int) -> None:
    """The speed was measured, in characters a second; one that wasn't gets what the setting says."""
    model: Any = SimpleNamespace(reading=SimpleNamespace(characters_in=lambda seconds: speed * seconds))
    hits = tuple(hit(n, f"Sentence number {n} is here. " * 120) for n in range(1, 6))
    passages = await read_passages(
        turn(hits=hits), SETTINGS.model_copy(update={"llm_timeout": timeout}), PROMPTS, model
    )
    assert most - 1500 < sum(len(passage.chunk.text) for passage in passages) <= most


TWO_PAGES = (hit(1, "Each notebook gets 4 GB."), hit(2, "Nothing about it."))


@pytest.fixture
def events(model):
    """Answers a turn."""

    async def answered(given):
        changes = await Synthesize(PROMPTS, SETTINGS, model)(given)
        cited = await Cite(PROMPTS)(replace(given, events=changes["events"]))
        return [event async for event in cited["events"]]

    return answered


def asked(*system, **fields):
    lines = (*(Message("system", text) for text in system), Message("user", "How much memory?"))
    return turn("How much memory?", hits=TWO_PAGES, request=Request(lines, **fields))


@pytest.mark.parametrize("language", ["cs", "en"])
async def test_system_messages_are_style_below_our_rules(llm, events, language):
    await events(replace(asked("Be a pirate.", "Be brief."), asked=Question("How much memory?", language)))
    system = llm.calls[0]["messages"][0]["content"]
    ours = PROMPTS.render(language, "synthesize", passages="")
    assert 0 < system.index(ours[-200:]) < system.index("<style>")
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

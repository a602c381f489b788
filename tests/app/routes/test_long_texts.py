"""Texts that were made to take long, from clients, pages and models: the service reads them and goes on answering."""

import asyncio
import json
import time
from contextlib import suppress

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message
from app.core.types import Chunk, Section
from app.pipeline.calls import replied_numbers
from app.pipeline.conversation import earlier
from app.pipeline.steps.relevance import MOST_ENDS, ends
from app.routes.ask import MAX_ATTACHED_CHARS, MAX_HISTORY_CHARS, MAX_MESSAGE_CHARS, MAX_MESSAGES, from_chat
from app.routes.openwebui import Task, unwrap_question, unwrapped
from app.routes.request_models import ChatRequest
from app.text.answer_language import AnswerLanguage
from app.text.language import LanguageDetector, is_smalltalk
from app.text.literals import claims, comparable, occurs
from app.text.query_highlight import MOST_WORDS, QueryWords
from app.text.reading import Block, parts
from app.text.units import blocks_of
from bench.hostile import ODD
from plugins.steps.choices import faithful
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of, until
from tests.deadline import at_most
from tests.fake_llm import Reply

PROMPTS = load_prompts(("cs", "en"))
WRAPPED = "### Task:\nRespond to the user query using the provided context.\n<context>\n{}\n</context>\n\n{}"
LOG = "2026-11-22T00:48:57 ERROR at a.b.c(D.java:10), x=1, retrying;"


def request(*messages: tuple[str, str]):
    given = [{"role": role, "content": content} for role, content in messages]
    return from_chat(ChatRequest.model_validate({"model": "m", "messages": given}), "id", unwrap=unwrapped)


def test_a_conversation_is_cut_at_the_door_and_the_question_is_not() -> None:
    """Of a long message beginning and end are read, of a long conversation the messages nearest to the question."""
    long = "b" + "x" * 500_000 + "e"
    asked = request(("system", "Be kind."), ("user", long), ("assistant", long), ("user", "q" * 20_000))
    assert [len(message.content) for message in asked.messages[1:3]] == [MAX_MESSAGE_CHARS + 3] * 2
    assert all(message.content[0] + message.content[-1] == "be" for message in asked.messages[1:3])
    assert len(asked.question) == 20_000
    many = request(("system", "Be kind."), *[("user", f"{n} {long}") for n in range(300)], ("user", "Q?"))
    assert sum(len(message.content) for message in many.messages) <= MAX_HISTORY_CHARS + 2
    assert [message.content.split()[0] for message in many.messages[-3:]] == ["298", "299", "Q?"]
    short = request(("system", "Be kind."), *[("user", str(n)) for n in range(300)], ("user", "Q?"))
    assert [message.content for message in short.messages] == ["Be kind.", *map(str, range(250, 300)), "Q?"]
    assert len(short.messages) == MAX_MESSAGES + 2


def test_material_of_open_webui_is_found_in_a_long_message_and_cut() -> None:
    material = f'<source id="1">{"x" * 300_000}</source>\n<source id="2">y</source>'
    asked = request(("user", WRAPPED.format(material, "How large is it?")))
    assert asked.question == "How large is it?"
    assert sum(map(len, asked.attached)) == MAX_ATTACHED_CHARS
    assert unwrap_question(WRAPPED.format("<sources>a</sources>", "Q?")) == ("Q?", ("<sources>a</sources>",))


@pytest.mark.parametrize("text", ["<source" * 250_000, "<context>\n" * 150_000, "\n" * 1_500_000, "<source>" * 200_000])
def test_what_open_webui_may_send_is_read_in_linear_time(text: str) -> None:
    with at_most(10):
        assert unwrap_question(WRAPPED.format(text, "Q?"))[0] == "Q?"
        assert unwrap_question(text) == (text, ())
        assert not Task("title", "<chat_history>\n" * 100_000 + text, trusted=True).questions
        assert Task("title", text, trusted=True).parse_reply("{" * 1_000_000) is None


def test_earlier_answers_are_read_in_linear_time() -> None:
    lists = ("Sources:" + " " * 4000, "Sources:\n\n" * 2000, "Sources:\n" + "1. \n" * 4000)
    with at_most(10):
        for text in (*(f"{one}x" for one in lists), "`" * 4000):
            earlier((Message("user", "Q"), Message("assistant", text), Message("user", "Q")), PROMPTS)


def test_a_question_of_many_clauses_has_few_ends() -> None:
    """Each is searched for in each passage."""
    assert len(ends("one, " * 4000)) <= MOST_ENDS
    assert ends("Hi, " * 40 + "how large is it?")[-1] == "how large is it?"


PIECES = ("-", ".", "„a", "a", " \n", "a.", "hi ", ": ", "1:", "1 000 ", LOG, "{")
LONG_TEXTS = [piece * (20_000 // len(piece)) for piece in PIECES]


@pytest.mark.parametrize("text", [*LONG_TEXTS, "``` " + "a" * 20_000, "`" * 9000 + "`" * 8999 + "a"])
def test_questions_and_answers_are_read_in_linear_time(text: str) -> None:
    """Their language, their small talk, what they claim."""
    english, check = PROMPTS.language("en"), AnswerLanguage("en", PROMPTS.languages)
    with at_most(15):
        LanguageDetector(PROMPTS.languages, "en").detect(text)
        is_smalltalk(text, english)
        check.early(text)
        check.outcome(text)
        claims(text)
        comparable(text)
        faithful(text, f"{text} end")
        replied_numbers(text)


def test_a_reply_of_numbers_is_read_in_linear_time() -> None:
    """A line break between two can be read in several ways, and so can all of them together."""
    with at_most(10):
        assert replied_numbers("1\n" * 5000 + "x") is None
        assert replied_numbers("Passages: 1, 2 and\n\n 3\n4 & 5.") == (1, 2, 3, 4, 5)


def test_a_claim_occurs_apart_from_longer_ones() -> None:
    for text in ("100", "1.10", "10.5", "x10"):
        assert not occurs("10", text)
        assert occurs("10", f"{text} or 10.")
    with at_most(10):
        assert not occurs("a" * 10_000, "a" * 20_000)


def test_passages_of_a_whole_page_are_read_in_linear_time() -> None:
    text = "".join(f"# {n}\n\n- a\n\n- b\n\n" for n in range(20_000))
    sections = tuple(Section(at, ("a",)) for at in range(0, len(text), len(text) // 20_000))
    chunk = Chunk("c", "docs", "https://docs.example.org/a", 0, text, "en", "A", sections)
    with at_most(20):
        assert len(blocks_of(chunk)) >= 20_000
        assert len(parts(Block("`Open. " + "Read it. " * 50_000, "paragraph", 0, 0))) == 1


async def test_a_search_for_odd_letters_is_answered(tmp_path) -> None:
    """One of U+FDFA took 31 s, in which nobody else got an answer; a word of over 40 letters isn't looked for."""
    async with indexed(tmp_path) as service, client_of(service.app) as client:
        for pump in ODD:
            query = pump * min(19_900 // len(pump), 60_000 // len(pump.encode()))
            with at_most(15):
                for as_you_type in (False, True):
                    body = {"query": f"volume {query} volume", "as_you_type": as_you_type}
                    response = await client.post("/v1/search", json=body)
                    assert (response.status_code, bool(response.json()["data"])) == (200, True), pump


def test_a_word_of_many_letters_is_not_looked_for() -> None:
    words = QueryWords.of(f"volume {'각' * 41} {chr(0xFDFA) * 41} {'a' * 40}", "en").words
    assert [word.text for word in words] == ["volume", "a" * 40]
    assert len(QueryWords.of(" ".join(f"w{n}" for n in range(5000)), "en").words) == MOST_WORDS


HOSTILE_PAGE = "-" * 60 + "|\n\nquota " + "<br>" * 2000 + "|\n\n" + "quota, " * 3000 + "\n\n" + "`" * 3000
ATTACHED = WRAPPED.format("<source" * 100_000, "What is the quota?")
HOSTILE_MESSAGES = ("quota, " * 2800, LOG * 300, "quota " + "„a" * 9000, ATTACHED)


@pytest.mark.parametrize("with_model", [False, True])
async def test_the_service_goes_on_answering_with_a_hostile_page_and_hostile_messages(
    tmp_path, *, with_model: bool
) -> None:
    """Nothing holds the event loop: a question to `/health` meanwhile is answered in a moment."""
    async with indexed(tmp_path, with_model=with_model, more={"hostile": HOSTILE_PAGE}, min_evidence=0) as service:
        service.llm.reply = lambda _: Reply("-" * 24_000 + " [1]")
        before = [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "Sources:" + " " * 4000 + "x"}]
        waits = list[float]()

        async def ask(client, text: str) -> int:
            return (await client.post(CHAT, json=chat(text, *before * 30))).status_code

        with at_most(240):
            async with client_of(service.app) as client, asyncio.TaskGroup() as tasks:
                asked = [tasks.create_task(ask(client, text)) for text in HOSTILE_MESSAGES]
                while not all(task.done() for task in asked):
                    started = time.perf_counter()
                    assert (await client.get("/health")).status_code == 200
                    waits.append(time.perf_counter() - started)
                    await asyncio.sleep(0.01)
        assert [task.result() for task in asked] == [200] * len(asked)
        assert max(waits) < 30


ENDLESS = (
    "[" * 4,
    "[" * 100_000,
    "The quota is 10 GB, and so on",
    "\t" * 50,
    "\n" * 1000,
    "`" * 1000,
    "x=1\t" * 1000,
    "[a](",
)


@pytest.mark.parametrize("piece", ENDLESS, ids=lambda piece: f"{piece[:4]!r}{len(piece)}")
@pytest.mark.parametrize("unproven", ["mark", "off"])
async def test_an_endless_answer_is_cut_and_holds_nobody_up(tmp_path, piece: str, unproven: str) -> None:
    """A model that ignores `max_tokens`, also with a line that never ends: its request is closed, and readers are told."""
    options = {"min_evidence": 0, "tuning": {"unproven": unproven}}
    async with indexed(tmp_path, with_model=True, **options) as service, client_of(service.app) as client:
        await client.post(CHAT, json=chat("What is the quota?"))  # what is read once
        event = json.dumps({"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        for opening in ("The quota is 10 GB [1].\n\n", "```sh\nquota\n"):
            service.llm.reply = lambda _, opening=opening: Reply(opening, repeated=f"data: {event}\n\n")
            for asked in ({"stream": True}, {"stream": False}):
                with at_most(60):
                    held = asyncio.create_task(longest_hold())
                    response = await client.post(CHAT, json=chat("How large is the quota?", **asked))
                    held.cancel()
                    hold, text = await held, response.text
                    assert (response.status_code, len(text) < 200_000, hold < 0.5) == (200, True, True), (asked, hold)
                    cut = '"finish_reason":"length"' in text and "cut here because it is too long" in text
                    assert cut or unproven == "mark"  # which ends circles, and refuses what nothing proves
                    await until(lambda: not service.llm.open)


@pytest.mark.parametrize("stream", [True, False])
async def test_an_answer_that_is_cut_says_so_in_each_api(tmp_path, monkeypatch, *, stream: bool) -> None:
    """Also below code that was open."""
    monkeypatch.setattr("app.pipeline.steps.synthesize.LONGEST_ANSWER", 1000)
    async with indexed(tmp_path, with_model=True, min_evidence=0, tuning={"unproven": "off"}) as service:
        lines = "\n".join(f"export QUOTA_{number}=10" for number in range(500))
        service.llm.reply = lambda _: Reply(f"The quota [1]:\n\n```sh\n{lines}\n```\n")
        async with client_of(service.app) as client:
            said = (await client.post(CHAT, json=chat("How large is the quota?", stream=stream))).text
            asked = {"model": "docs-assistant", "input": "How large is the quota?", "stream": stream}
            responded = (await client.post("/v1/responses", json=asked)).text
    note = "The answer was cut here because it is too long."
    for text, sign in ((said, '"finish_reason":"length"'), (responded, "max_output_tokens")):
        assert sign in text
        assert "QUOTA_20" in text
        assert "QUOTA_200" not in text
        assert text.count("```") == text.count("```sh") * 2
        assert note in text


async def longest_hold() -> float:
    """The most seconds of CPU for which the event loop had no time for anything else, until it is cancelled."""
    longest, before = 0.0, time.thread_time()
    with suppress(asyncio.CancelledError):
        while True:
            await asyncio.sleep(0)
            longest, before = max(longest, time.thread_time() - before), time.thread_time()
    return longest

"""DOCS_ANSWER_CACHE: the same question gets the stored answer, and nothing that belongs to somebody else."""

import json
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from app.assistants.answer_cache import AnswerCache
from app.conversations.opening import open_conversations
from app.core.settings import Settings
from app.core.turn import AnswerRecord, Done, Message, Request, StepRecord, Text, Turn
from app.core.types import Filters
from tests.app.http.test_keys import entry, key, write
from tests.app.routes.indexed import Indexed, indexed
from tests.app.routes.scripted import CHAT, chat, client_of
from tests.fake_llm import Reply

QUESTION = "How do I create a persistent volume?"
SYSTEM = {"role": "system", "content": "Call the user Anna."}
EARLIER = [{"role": "user", "content": "Who am I?"}, {"role": "assistant", "content": "Anna."}]


class Asker:
    """Asks a service, whose model numbers its answers."""

    def __init__(self, service: Indexed, client: httpx.AsyncClient) -> None:
        self.service, self.client, self.written = service, client, 0
        self.change: dict[str, Any] = {}
        service.llm.reply = self._reply

    def _reply(self, body: dict[str, Any]) -> Reply:
        if not body.get("stream"):
            return Reply("en: persistent volume")
        self.written += 1
        return replace(Reply(f"Answer {self.written}: use the class nfs-csi [1]."), **self.change)

    async def ask(self, question: str = QUESTION, *before: dict[str, str], headers: Any = (), **fields: Any) -> str:
        """The text of the answer, streamed."""
        return self.text(await self.post(question, *before, headers=headers, **fields))

    async def post(self, question: str = QUESTION, *before: dict[str, str], headers: Any = (), **fields: Any) -> Any:
        body = chat(question, *before, **{"stream": True, **fields})
        response = await self.client.post(CHAT, json=body, headers=dict(headers))
        assert response.status_code == 200, response.text
        return response

    def text(self, response: httpx.Response) -> str:
        return "".join(choice["delta"].get("content", "") for one in chunks(response) for choice in one["choices"])


def chunks(response: httpx.Response) -> list[dict[str, Any]]:
    lines = [line[6:] for line in response.text.splitlines() if line.startswith("data: {")]
    return [json.loads(line) for line in lines]


@asynccontextmanager
async def asking(folder: Path, **options: object) -> AsyncIterator[Asker]:
    async with indexed(folder, **{"answer_cache": 600, **options}) as service, client_of(service.app) as client:
        yield Asker(service, client)


@pytest.mark.plugins
async def test_a_repeated_question_gets_the_same_answer_without_the_model_under_an_id_of_its_own(tmp_path):
    """Streamed with the same text and sources; the metrics, the header Age and the log line tell the difference."""
    async with asking(tmp_path) as asker:
        first, second = await asker.post(), await asker.post("how do I  create a persistent volume")
        calls, embedded = len(asker.service.llm.calls), len(asker.service.llm.embedded)
        assert "Answer 1" in asker.text(first)
        assert asker.text(second) == asker.text(first)
        assert (asker.written, "age" in first.headers, second.headers["age"]) == (1, False, "0")
        ends = [chunks(one)[-1] for one in (first, second)]
        assert ends[0].pop("id") != ends[1].pop("id")
        assert ends[0].pop("created") <= ends[1].pop("created")
        assert ends[0] == ends[1]
        assert ends[0]["sources"]
        await asker.post()
        assert (len(asker.service.llm.calls), len(asker.service.llm.embedded)) == (calls, embedded)
        usage = chunks(await asker.post(stream_options={"include_usage": True}))[-1]["usage"]
        assert usage["total_tokens"] == 0  # what the model was asked for this answer
        told = (await asker.client.get("/metrics")).text
        assert 'docs_assistant_answer_cache_total{result="hit"} 3.0' in told
        assert 'docs_assistant_answer_cache_total{result="miss"} 1.0' in told
        assert 'docs_assistant_tokens_total{kind="completion",step="synthesize"} 7.0' in told
        body = {"model": "docs-assistant", "input": QUESTION, "stream": False}
        whole = [(await asker.client.post("/v1/responses", json=body)).json() for _ in range(2)]
        assert whole[0]["output"][0]["content"] == whole[1]["output"][0]["content"]
        assert asker.written == 2  # a whole answer may still be corrected, a streamed one may not


async def test_what_an_answer_depends_on_asks_the_model_again(tmp_path):
    """Also a name in other capitals, a header that asks for a new answer, and one that forbids storing."""
    async with asking(tmp_path) as asker:
        await asker.ask("What does -v do to a persistent volume?")
        for number, (question, fields) in enumerate(
            (
                ("What does -V do to a persistent volume?", {}),
                (QUESTION, {}),
                (QUESTION, {"filters": {"languages": ["en"]}}),
                (QUESTION, {"persona": "kids"}),
                (QUESTION, {"temperature": 1.0}),
                (QUESTION, {"max_tokens": 50}),
                (QUESTION, {"page": "https://docs.example.org/volumes"}),
                (QUESTION, {"language": "cs"}),
                (QUESTION, {"headers": {"cache-control": "no-cache"}}),
                (QUESTION, {"headers": {"cache-control": "max-age=0, No-Store"}}),
            ),
            2,
        ):
            assert f"Answer {number}:" in await asker.ask(question, **fields), fields
        assert "Answer 10:" in await asker.ask()  # of no-cache, which replaced the first; no-store wasn't stored


async def test_what_belongs_to_one_client_is_neither_stored_nor_repeated(tmp_path):
    """Conversations, system messages, traces and prompts of a request: each asks the model, and leaves no answer behind."""
    async with asking(tmp_path, admin_keys="admin-key-of-tests") as asker:
        admin = {"headers": {"authorization": "Bearer admin-key-of-tests"}}
        own = (
            ([SYSTEM], {}),
            (EARLIER, {}),
            ([], {"trace": True, **admin}),
            ([], {"overrides": {"prompts": {"synthesize.md": "Say hello. $passages"}}, **admin}),
        )
        for before, fields in (*own, *own):
            await asker.ask(QUESTION, *before, **fields)
        assert asker.written == 8
        plain = await asker.ask()
        assert "Answer 9:" in plain
        for number, (before, fields) in enumerate(own, 10):
            assert f"Answer {number}:" in await asker.ask(QUESTION, *before, **fields)
        assert await asker.ask() == plain


async def test_only_complete_written_answers_are_stored(tmp_path):
    """A model that is down, an answer that was cut, one in another language, a refusal and small talk are made anew each time."""
    async with asking(tmp_path) as asker:
        for change, repeated in (({"status": 500}, 0), ({"finish": "length"}, 0), ({"dies_after": 2}, 0), ({}, 1)):
            asker.change = change
            assert ["age" in (await asker.post()).headers for _ in range(2)] == [False, bool(repeated)], change
        for question in ("Kolik stojí lístek na vlak do Brna?", "hello"):  # answered in English; small talk
            assert ["age" in (await asker.post(question)).headers for _ in range(2)] == [False, False], question
    for done, changes in (
        (Done(refused=True), {}),
        (Done(extractive=True), {}),
        (Done(language="switched"), {}),
        (Done(), {"choices": (SimpleNamespace(),)}),
        (Done(), {"trace": (StepRecord("rerank", 1.0, {}, "ModelTimeout"),)}),
    ):
        cache, assistant = AnswerCache(60), Counting(done, changes)
        assert [await is_made(cache, assistant, QUESTION) for _ in range(2)] == [True, True], (done, changes)


async def test_a_new_index_has_no_stored_answers_and_an_older_one_has_its_own_again(tmp_path):
    async with asking(tmp_path) as asker:
        first = await asker.ask()
        recipe = (await asker.service.store.live()).info.recipe
        async with await asker.service.store.draft(recipe) as draft:
            await draft.remove("https://docs.example.org/limits")
            await draft.publish()
        assert "Answer 2:" in await asker.ask()
        await asker.service.store.rollback()
        assert await asker.ask() == first


async def test_keys_with_other_rights_have_other_answers(tmp_path):
    """A key of a collection is never told what the pages of another one say."""
    limited = (entry(name, collections=f'["{only}"]') for name, only in (("docs", "docs"), ("none", "other")))
    keys = write(tmp_path / "keys.toml", entry("all"), entry("same"), *limited)
    async with asking(tmp_path, keys=keys, with_model=True) as asker:
        of_all = await asker.ask(headers=key("all"))
        assert await asker.ask(headers=key("same")) == of_all
        assert "Answer 2:" in await asker.ask(headers=key("docs"))
        assert "nfs-csi" not in await asker.ask(headers=key("none"))


async def test_a_stored_answer_is_kept_logged_and_rated_like_any_other(tmp_path):
    """Its row of the question log is that of the first one, apart from id, time and rating."""
    file = tmp_path / "kept.db"
    store = open_conversations(Settings.load(None, database=f"sqlite:///{file}"), tmp_path)
    async with asking(tmp_path, conversations=store) as asker:
        ids = [chunks(await asker.post())[-1]["id"] for _ in range(2)]
        assert asker.written == 1
        rated = await asker.client.post(f"/v1/answers/{ids[1]}/feedback", json={"rating": "up"})
        assert rated.status_code == 200, rated.text
    assert store
    await store.close()
    with closing(sqlite3.connect(file)) as database:
        told = "text, outcome, language, evidence, needed, nearest, used, vector, embedder, digest"
        first, second = database.execute(f"SELECT {told} FROM questions ORDER BY number").fetchall()
        assert first == second
        assert (first[1], first[2], len(first[7]) > 0) == ("written", "en", True)
        assert database.execute("SELECT rating FROM questions ORDER BY number").fetchall() == [("",), ("up",)]
        answers = database.execute("SELECT answer, sources, outcome, generation, language FROM answers").fetchall()
        assert answers[0] == answers[1]


@dataclass
class Counting:
    """An assistant that repeats the question a hundred times, and counts."""

    done: Done = field(default_factory=Done)
    changes: Mapping[str, Any] = field(default_factory=dict)
    id: str = "docs"
    persona: str = ""
    limits: Filters = field(default_factory=Filters)
    made: int = 0
    info: Any = field(default_factory=lambda: SimpleNamespace(id=1, built_at="now"))

    @property
    def store(self) -> Any:
        return self

    async def live(self) -> Any:
        return self

    async def edition(self) -> None:
        """Its answers are made from nothing else."""

    async def answer(self, request: Request, record: AnswerRecord) -> AsyncIterator[Any]:
        self.made += 1
        record.turn = Turn(request, generation=self, **self.changes)
        yield Text(request.question * 100)
        yield self.done


async def is_made(cache: AnswerCache, assistant: Counting, question: str, of: str = "") -> bool:
    """Ask, and tell whether the assistant was; the answer is that of the question, or `of` another one."""
    before, record = assistant.made, AnswerRecord()
    told = [one async for one in cache.answer(assistant, Request((Message("user", question),)), record)]
    assert told == [Text((of or question) * 100), assistant.done]
    assert record.cache == ("hit" if assistant.made == before else "miss")
    return assistant.made > before


async def test_marks_that_may_be_parts_of_names_make_another_question():
    """A mark at the end of a word is none, and `$?` isn't `$!`."""
    made = partial(is_made, AnswerCache(60), Counting())
    same = ("What is it?", " what is  it. ", "what is it")
    assert [await made(one, same[0]) for one in same] == [True, False, False]
    assert [await made(f"What is {one}") for one in ("$?", "$!", "$", "save", "save!", "..", ".")] == [True] * 7


async def test_answers_expire_and_their_number_and_size_are_bounded():
    """Those go first that were asked for least recently."""
    now = 0.0
    made = partial(is_made, AnswerCache(60, entries=3, size=20_000, clock=lambda: now), Counting())
    assert [await made(one) for one in "abcacd"] == [True, True, True, False, False, True]
    assert [await made(one) for one in "acdb"] == [False, False, False, True]
    now = 59.9
    assert not await made("c")
    now = 60.0
    assert await made("c")
    large = ("a text." * 20, "another text." * 14)  # 14,000 and 18,200 characters
    assert [await made(one) for one in (*large, large[1], "c")] == [True, True, False, True]
    assert [await made("more than all of it." * 20) for _ in range(2)] == [True, True]

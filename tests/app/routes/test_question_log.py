"""GET /v1/admin/question-log: what was asked, in both databases, for admin keys only."""

import csv
import io
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from app.conversations import log_figures
from app.conversations.database import Database, url_of
from app.conversations.queries import QuestionLog
from app.conversations.records import Found, KeptAnswer, Rating
from app.conversations.store import DAY, ConversationStore
from app.core.turn import Source
from app.routes.admin import question_log as answers
from tests.app.routes.indexed import indexed
from tests.app.routes.scripted import CHAT, chat, client_of, refused, scripted

NOW = 20_000.5 * DAY  # noon in UTC
ADMIN, READER = ({"authorization": f"Bearer {name}-key-of-tests"} for name in ("the-admin", "reader"))
SOURCE = Source(1, "Volumes", "https://docs.test/v", "Create", "en", "snippet", 0.9)
WRITTEN = {"outcome": "written", "language": "en", "assistant": "docs"}
ASKED: Sequence[tuple[str, dict[str, Any], float]] = (
    ("How do I create a volume?", {"found": Found(key="hub", tokens=300)}, 3),
    ("Jak vytvořím svazek?", {"language": "cs", "outcome": "perhaps", "found": Found(tokens=40)}, 2.9),
    ("What is the price of DOCS_TOP_K?", {"outcome": "refused", "found": Found(nearest={"url": SOURCE.url})}, 1),
    ("=1+1 creates volumes", {"outcome": "marked", "assistant": "handbook"}, 0.4),
    ("And how large is it?", {}, 0.1),
)


@asynccontextmanager
async def logged(
    database: str,
    *,
    hashed: bool = False,
    more: Sequence[tuple[str, dict[str, Any], float]] = (),
    rated: Mapping[str, tuple[Rating, str]] = MappingProxyType({}),
    **settings: Any,
) -> AsyncIterator[httpx.AsyncClient]:
    """A client with an admin key of a service whose log has `ASKED` and `more`, rated so; the last one of `ASKED` is rated down."""
    store = ConversationStore(
        Database(url_of(database, Path())), 30, question_log=QuestionLog(hashed=hashed), clock=lambda: NOW
    )
    keys = {"admin_keys": "the-admin-key-of-tests", "api_keys": "reader-key-of-tests"}
    for number, (question, about, ago) in enumerate((*ASKED, *more), 1):
        fields = {**WRITTEN, "found": Found(), **about, "created": NOW - ago * DAY, "sources": [SOURCE]}
        fields |= {"previous": f"a{number - 1}"} if number == 5 else {}
        await store.keep(KeptAnswer(f"a{number}", "somebody", question, f"Answer {number}.", **fields))
    for answer, (rating, comment) in {"a5": ("down", ""), **rated}.items():
        await store.rate("somebody", answer, rating, comment or None)
    try:
        async with client_of(scripted(conversations=store, **keys, **settings), headers=ADMIN) as client:
            yield client
    finally:
        await store.close()


async def read(client: httpx.AsyncClient, path: str, body: Any = None) -> Any:
    """The JSON at this address, which must have the form that is described."""
    response = await client.get(f"/v1/admin/question-log{path}")
    assert response.status_code == 200, response.text
    assert response.headers["cache-control"] == "no-store"
    if body:
        TypeAdapter(body).validate_json(response.content, extra="forbid")
    return response.json()


async def ids(client: httpx.AsyncClient, **filters: Any) -> str:
    """The numbers of the questions found, the first one first."""
    found = await read(client, str(httpx.URL("", params=filters)), answers.LogList)
    return "".join(one["id"].removeprefix("a") for one in found["data"])


async def test_questions_are_filtered_and_the_newest_is_first(database: str, monkeypatch: pytest.MonkeyPatch):
    """By all that an editor asks for; words begin words of the question, whatever their case, also those of a rare one."""
    async with logged(database) as client:
        assert await ids(client) == "54321"
        for filters, found in (
            ({"since": "1d"}, "543"),
            ({"until": "1970-01-01T00:00:00"}, None),
            ({"outcome": "refused,marked"}, "43"),
            ({"language": "cs"}, "2"),
            ({"assistant": "handbook"}, "4"),
            ({"key": "hub"}, "1"),
            ({"key": "none"}, "5432"),
            ({"rating": "down"}, "5"),
            ({"rating": "none", "language": "en"}, "431"),
            ({"outcome": "perhaps"}, "2"),
            ({"q": "VOLUME"}, "41"),
            ({"q": "volume create", "outcome": "marked"}, "4"),
            ({"q": "docs_top"}, "3"),
            ({"q": "svaz"}, "2"),
            ({"q": "100% %"}, ""),
        ):
            if found is None:
                assert (await client.get("/v1/admin/question-log", params=filters)).status_code == 400
            else:
                assert await ids(client, **filters) == found, filters
        monkeypatch.setattr(log_figures, "NEWEST", 1)  # all others are found by the index of words
        assert [await ids(client, q=q) for q in ("volume", "svaz", "docs_top k", "nothing")] == ["41", "2", "3", ""]


async def test_parts_follow_each_other(database: str):
    async with logged(database) as client:
        first = await read(client, "?limit=2&language=en")
        assert [one["id"] for one in first["data"]] == ["a5", "a4"]
        second = (await client.get(f"/{first['next']}")).json()
        assert [one["id"] for one in second["data"]] == ["a3", "a1"]
        assert second["next"] is None
        assert (await client.get("/v1/admin/question-log?after=99")).json()["error"]["param"] == "after"
        assert (await client.get("/v1/admin/question-log?page=2")).status_code == 400


async def test_each_day_has_its_figures(database: str):
    async with logged(database) as client:
        found = (await read(client, "/days", answers.DayList))["data"]
        assert [tuple(one.values()) for one in found] == [
            ("2024-10-01", 2, 2, 0, 0, 0, 340), ("2024-10-03", 1, 0, 1, 0, 0, 0), ("2024-10-04", 2, 2, 0, 1, 1, 0),
        ]  # fmt: skip
        hub = (await read(client, "/days?key=hub"))["data"]
        assert [(one["day"], one["questions"], one["tokens"]) for one in hub] == [("2024-10-01", 1, 300)]
        czech = (await read(client, "/days?language=cs&assistant=docs"))["data"]
        assert [(one["day"], one["questions"]) for one in czech] == [("2024-10-01", 1)]


async def test_each_figure_of_a_day_opens_as_many_questions(database: str):
    """What the overview links to: a day with a kind of question, and all that wasn't answered well as one filter."""
    weak = {"outcome": "written", "found": Found(evidence=0.3, needed=0.32)}
    async with logged(database, more=[("Where are the logs?", weak, 0.2)]) as client:
        (day,) = (await read(client, "/days?day=2024-10-04", answers.DayList))["data"]
        for name, only in (
            ("questions", {}),
            ("answered", {"only": "answered"}),
            ("refused", {"outcome": ",".join(log_figures.REFUSED)}),
            ("marked", {"outcome": "marked"}),
            ("down", {"rating": "down"}),
        ):
            assert len(await ids(client, day="2024-10-04", **only)) == day[name], name
        assert await ids(client, day="2024-10-03") == "3"
        assert await ids(client, only="failed") == "56432"  # rated down, weak, marked, refused, "Perhaps"
        assert await ids(client, only="failed", day="2024-10-04") == "564"
        wrong = await client.get("/v1/admin/question-log?day=yesterday")
        assert (wrong.status_code, wrong.json()["error"]["param"]) == (400, "day")


async def test_equal_questions_are_one_row_that_unfolds(database: str):
    """With their count and the comments of all; parts follow each other, and filters choose what is folded."""
    again = [("how do I create a volume", {}, 0.3), ("HOW DO I CREATE A VOLUME?", {}, 0.05)]
    said = {"a1": ("down", "The button isn't there."), "a6": ("up", "")}
    async with logged(database, more=again, rated=said) as client:
        rows = (await read(client, "?folded=true", answers.LogList))["data"]
        assert [(one["id"], one["count"], one["down"]) for one in rows] == [
            ("a7", 3, 1), ("a5", 1, 1), ("a4", 1, 0), ("a3", 1, 0), ("a2", 1, 0),
        ]  # fmt: skip
        assert rows[0]["comments"] == ["The button isn't there."]
        first = await read(client, "?folded=true&limit=2")
        assert [one["id"] for one in (await client.get(f"/{first['next']}")).json()["data"]] == ["a4", "a3"]
        assert await ids(client, equal="a7") == "761"
        assert await ids(client, folded=True, day="2024-10-04", q="volume") == "74"
        assert await ids(client, folded=True, rating="down") == "51"


async def test_what_readers_wrote_stands_at_their_questions(database: str):
    """In the list, at the question, in files, and as a filter."""
    said = {"a3": ("down", "Nothing about\nprices."), "a4": ("up", "")}
    async with logged(database, rated=said) as client:
        listed = {one["id"]: one["comments"] for one in (await read(client, "", answers.LogList))["data"]}
        assert listed == {"a5": [], "a4": [], "a3": ["Nothing about\nprices."], "a2": [], "a1": []}
        assert await ids(client, only="commented") == "3"
        assert (await read(client, "/a3"))["question"]["comments"] == ["Nothing about\nprices."]
        rows = list(csv.DictReader(io.StringIO((await client.get("/v1/admin/question-log?format=csv")).text)))
        assert rows[2]["comments"] == "Nothing about\nprices."


async def test_a_question_has_its_conversation(database: str):
    """That of another owner, too; nothing else of it."""
    async with logged(database) as client:
        found = await read(client, "/a5", answers.LoggedConversation)
        assert [(turn["question"], turn["answer"]) for turn in found["turns"]] == [
            ("=1+1 creates volumes", "Answer 4."), ("And how large is it?", "Answer 5."),
        ]  # fmt: skip
        assert (found["question"]["rating"], found["question"]["pages"]) == ("down", [SOURCE.url])
        assert (await read(client, "/a3"))["question"]["nearest"] == SOURCE.url
        assert refused(await client.get("/v1/admin/question-log/a9")) == (404, "answer_not_found")


async def test_all_are_saved_as_a_file_that_a_spreadsheet_may_open(database: str, monkeypatch: pytest.MonkeyPatch):
    """What looks like a formula is a text there."""
    monkeypatch.setattr(answers, "AT_ONCE", 2)
    async with logged(database) as client:
        response = await client.get("/v1/admin/question-log?format=csv&since=30d")
        assert 'filename="questions.csv"' in response.headers["content-disposition"]
        rows = list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"))))
        assert [row["question"] for row in rows] == [
            f"'{question}" if question.startswith("=") else question for question, *_ in reversed(ASKED)
        ]
        assert (rows[0]["rating"], rows[0]["pages"], rows[2]["outcome"]) == ("down", SOURCE.url, "refused")
        lines = (await client.get("/v1/admin/question-log?format=jsonl&outcome=marked")).text.splitlines()
        assert [json.loads(line)["question"] for line in lines] == ["=1+1 creates volumes"]


async def test_the_key_and_all_tokens_of_a_question_are_logged(database: str, tmp_path: Path):
    store = ConversationStore(Database(url_of(database, Path())), 30, question_log=QuestionLog())
    keys = {"admin_keys": "the-admin-key-of-tests", "api_keys": "reader-key-of-tests"}
    async with indexed(tmp_path, conversations=store, **keys) as service, client_of(service.app) as client:
        answer = await client.post(CHAT, json=chat("How do I create a volume?"), headers=READER)
        await store.writer.settle()
        listed = await client.get("/v1/admin/question-log?key=1", headers=ADMIN)
    await store.close()
    (logged_question,), usage = listed.json()["data"], answer.json()["usage"]
    assert listed.json()["keys"] == ["1", "admin1"]
    assert logged_question["key"] == "1"
    assert logged_question["tokens"] == usage["total_tokens"] > 0


async def test_a_log_without_texts_shows_none(database: str):
    """Neither a question nor the conversation and the comment that are kept for its reader."""
    said = {"a3": ("down", "Nothing about prices.")}
    async with logged(database, hashed=True, rated=said, question_log="hashed") as client:
        found = await read(client, "", answers.LogList)
        assert (found["log"], {one["question"] for one in found["data"]}) == ("hashed", {""})
        for path in ("", "?folded=true"):
            assert {str(one["comments"]) for one in (await read(client, path))["data"]} == {"[]"}
        assert (await read(client, "/a5"))["turns"] == []


async def test_where_nothing_is_kept_there_is_no_log():
    nothing_kept = scripted(retention_days=0, admin_keys="the-admin-key-of-tests")
    async with client_of(nothing_kept, headers=ADMIN) as client:
        assert refused(await client.get("/v1/admin/question-log")) == (404, "no_log")

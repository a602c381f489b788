"""/v1/admin/verdicts: what editors say of logged answers, in both databases, for admin keys only."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from pydantic import TypeAdapter

from app.conversations.database import Database, url_of
from app.conversations.evaluations import keep_evaluation
from app.conversations.queries import QuestionLog
from app.conversations.records import Evaluation, Found, KeptAnswer
from app.conversations.store import DAY, ConversationStore
from app.core.shares import share
from app.core.turn import Source, Unsupported, Verbatim
from app.routes.admin.quality import QualityBody
from tests.app.routes.scripted import client_of, refused, scripted

ADMIN = {"authorization": "Bearer the-admin-key-of-tests"}
NOW = 20_000 * DAY
PAGE, OTHER = "https://docs.test/volumes", "https://docs.test/quotas"


class Clock:
    """The time of the store."""

    now = float(NOW)

    def __call__(self) -> float:
        return self.now


@asynccontextmanager
async def judged(
    database: str, *, hashed: bool = False, clock: Clock | None = None
) -> AsyncIterator[tuple[httpx.AsyncClient, ConversationStore]]:
    """A client with an admin key of a service that has answered four questions, the second after the first."""
    store = ConversationStore(
        Database(url_of(database, Path())), 30, question_log=QuestionLog(hashed=hashed), clock=clock or Clock()
    )
    source = Source(1, "Volumes", f"{PAGE}#create", "Create", "en", "snippet", 0.9)
    about = {"language": "en", "assistant": "docs", "found": Found(), "generation": 3}
    proof = {"verbatim": Verbatim(4, 2), "unsupported": (Unsupported("It is 5 GB.", "number", 1, 0.2),)}
    for number, question, more in (
        (1, "How do I create a volume as jan@example.org?", {"outcome": "marked", "sources": [source], **proof}),
        (2, "And how large is it?", {"outcome": "written", "sources": [source], "previous": "a1"}),
        (3, "What does it cost?", {"outcome": "refused"}),
        (4, "Which licence is it?", {"outcome": "curated"}),
    ):
        await store.keep(KeptAnswer(f"a{number}", "me", question, f"Answer {number}.", NOW - number, **about, **more))
    service = scripted(conversations=store, admin_keys="the-admin-key-of-tests")
    try:
        async with client_of(service, headers=ADMIN) as client:
            yield client, store
    finally:
        await store.close()


async def give(client: httpx.AsyncClient, id_: str, **body: Any) -> httpx.Response:
    return await client.post(f"/v1/admin/verdicts/{id_}", json=body)


async def test_a_verdict_says_what_a_later_answer_is_measured_by(database: str):
    """Of a good answer its pages, of a wrong one those that the editor names, or at least those that it mustn't begin with."""
    async with judged(database) as (client, _):
        for id_, body, answerable, right, wrong in (
            ("a1", {"verdict": "good"}, True, [PAGE], []),
            ("a1", {"verdict": "wrong", "reason": "Too old."}, True, [], [PAGE]),
            ("a1", {"verdict": "wrong", "pages": [f"{OTHER}#limits"]}, True, [OTHER], [PAGE]),
            ("a2", {"verdict": "wrong", "answerable": False}, False, [], [PAGE]),
            ("a3", {"verdict": "good"}, False, [], []),
            ("a3", {"verdict": "wrong", "pages": [OTHER]}, True, [OTHER], []),
        ):
            found = (await give(client, id_, **body)).json()
            assert (found["answerable"], found["right_pages"], found["wrong_pages"]) == (answerable, right, wrong), body
            assert found == (await client.get(f"/v1/admin/question-log/{id_}")).json()["verdict"]
        listed = (await client.get("/v1/admin/verdicts")).json()["data"]
        assert {one["id"]: one["verdict"] for one in listed} == {"a1": "wrong", "a2": "wrong", "a3": "wrong"}
        (first,) = (one for one in listed if one["id"] == "a1")
        assert (first["question"], first["by"]) == ("How do I create a volume as [e-mail]?", "key admin1")
        assert [one["id"] for one in (await client.delete("/v1/admin/verdicts/a1")).json()["data"]] == ["a2", "a3"]
        assert (await client.get("/v1/admin/question-log/a1")).json()["verdict"] is None
        assert (await client.get("/v1/admin/verdicts?assistant=other")).json()["data"] == []


async def test_a_verdict_that_measures_nothing_is_refused(database: str):
    async with judged(database) as (client, _):
        for body in ({"verdict": "good"}, {"verdict": "wrong"}):
            response = await give(client, "a4", **body)
            assert "name the page that answers" in response.json()["error"]["message"]
        for body, param in (
            ({"verdict": "wrong", "pages": [OTHER], "answerable": False}, "pages"),
            ({"verdict": "perhaps"}, "verdict"),
            ({"verdict": "good", "page": OTHER}, "page"),
        ):
            assert (await give(client, "a1", **body)).json()["error"]["param"] == param
        assert refused(await give(client, "a9", verdict="good")) == (404, "answer_not_found")
        assert refused(await client.delete("/v1/admin/verdicts/a1")) == (404, "answer_not_found")
        without_key = await client.get("/v1/admin/verdicts", headers={"authorization": "Bearer wrong"})
        assert refused(without_key) == (401, "invalid_api_key")


async def test_a_log_without_texts_keeps_no_verdicts(tmp_path: Path):
    async with judged(f"sqlite:///{tmp_path / 'hashed.db'}", hashed=True) as (client, _):
        assert "DOCS_QUESTION_LOG=hashed" in (await give(client, "a1", verdict="good")).json()["error"]["message"]


@pytest.mark.parametrize("deleted", [False, True])
async def test_a_verdict_outlives_the_retention_but_not_the_deletion_by_its_reader(database: str, deleted: bool):
    """With what its case needs: the question, what was said before, and what the answer was."""
    clock = Clock()
    async with judged(database, clock=clock) as (client, store):
        await give(client, "a1", verdict="good")
        await give(client, "a2", verdict="good")
        if deleted:
            assert await store.delete_answer("me", "a2")
        clock.now += 31 * DAY
        await store.forget()
        assert (await client.get("/v1/admin/question-log/a1")).status_code == 404
        kept = {one.id: one for one in await store.all_verdicts()}
        assert set(kept) == ({"a1"} if deleted else {"a1", "a2"})
        first = kept["a1"]
        assert (first.outcome, first.generation, first.statements, first.unproved) == ("marked", 3, 4, 1)
        if not deleted:
            assert kept["a2"].earlier == [["How do I create a volume as [e-mail]?", "Answer 1."]]


async def test_quality_says_how_often_sure_answers_are_right_and_shows_the_kept_runs(database: str):
    """By editors, by readers, and by the pages that are expected; refusals and marked answers aren't sure."""
    async with judged(database) as (client, store):
        await give(client, "a1", verdict="good")
        await give(client, "a2", verdict="wrong")
        await give(client, "a3", verdict="good")
        await store.rate("me", "a2", "up", None)
        means = {"page": {"mean": 0.5, "low": 0.2, "high": 0.8}}
        rows = [
            {"language": "en", "variant": variant, "cross": False, "n": 3, "measures": means}
            for variant in ("all", "x")
        ]
        right, wrong = {"refusal": 1.0, "page": 1.0}, {"refusal": 1.0, "page": 0.0}
        cases = [{"outcome": "written", "values": values} for values in (right, right, wrong)]
        refused_ = [{"outcome": "refused", "values": {"refusal": 1.0, "page": None}}]
        verdicts = Evaluation(
            kind="eval verdicts",
            created=NOW - 9.0,
            n=4,
            model="m",
            generation=3,
            figures={"rows": rows},
            cases=cases + refused_,
        )
        groups = {"rows": rows, "groups": [{"times": 1.25, "n": 8, "right": 0.75}]}
        for one in (verdicts, Evaluation(kind="eval refusals", created=NOW - 8.0, n=8, figures=groups)):
            store._database.write(keep_evaluation, one)
        response = await client.get("/v1/admin/quality?since=7d")
        found = TypeAdapter(QualityBody).validate_json(response.content, extra="forbid")
        assert found["days"] == [
            {"day": "2024-10-03", "outcomes": {"marked": 1, "written": 1, "refused": 1, "curated": 1}}
        ]
        assert {(one["said"], one["by"]): (one["right"].count, one["right"].of) for one in found["calibration"]} == {
            ("sure", "verdicts"): (0, 1), ("doubted", "verdicts"): (1, 1),
            ("sure", "ratings"): (1, 1), ("doubted", "ratings"): (0, 0),
            ("sure", "question_set"): (2, 3), ("doubted", "question_set"): (0, 0),
        }  # fmt: skip
        assert [(one["times"], one["right"]) for one in found["evidence"]] == [(1.25, share(6, 8))]
        assert [(one["kind"], one["model"], len(one["rows"])) for one in found["runs"]] == [
            ("eval verdicts", "m", 1), ("eval refusals", "", 1),
        ]  # fmt: skip

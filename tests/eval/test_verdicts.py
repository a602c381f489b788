"""Verdicts of editors as cases of a question set."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.conversations import verdicts
from app.conversations.database import Database, url_of
from app.conversations.queries import QuestionLog, add_answers
from app.conversations.records import Found, Given, KeptAnswer
from app.core.settings import Settings
from app.core.turn import Source, Verbatim
from eval.questions.cases import load_cases, load_unanswerable
from tests.eval.conftest import command

SITE = "http://docs.localhost/docs/en/"
Judge = Callable[..., None]


@pytest.fixture
def judged(index: Settings, tmp_path: Path) -> tuple[Settings, Judge]:
    """Settings with a database of conversations, and a function that keeps an answer with a verdict on it."""
    url = f"sqlite:///{tmp_path / 'conversations.db'}"
    count = iter(range(1, 100))

    def judge(question: str, used: list[str], given: Given, **answer: Any) -> None:
        about = {"outcome": "written", "language": "en", "assistant": "docs-assistant", "verbatim": Verbatim(4, 4)}
        sources = [Source(1, "", SITE + page, "", "en", "", 0.9) for page in used]
        id_ = f"a{next(count)}"
        kept = KeptAnswer(id_, "me", question, "So.", 1.0, sources=sources, found=Found(), **{**about, **answer})
        with closing(Database(url_of(url, Path()))) as database:
            database.migrate()
            database.write(lambda connection: QuestionLog().add(connection, [kept]))

            database.write(add_answers, [kept])
            assert database.write(verdicts.give, id_, given, float(id_[1:]))

    return index.model_copy(update={"database": url}), judge


async def test_verdicts_become_question_sets_that_can_be_measured(judged, tmp_path, capsys):
    """Each kind as it should be answered; the newest verdict on a question counts; follow-up questions have what was said before."""
    settings, judge = judged
    judge("What is the log of questions?", ["gaps#kept"], Given(verdict="wrong"))
    judge("what is the log of questions", ["gaps#kept"], Given(verdict="good"))
    judge("Where are the keys?", ["gaps"], Given(verdict="wrong", pages=[f"{SITE}security"]))
    judge("How many pages does it take?", ["sizing"], Given(verdict="wrong", reason="Not that."))
    judge("What does it cost?", ["sizing"], Given(verdict="wrong", answerable=False))
    judge("And in the cloud?", [], Given(verdict="good"), outcome="refused", previous="a5", verbatim=None)
    out = tmp_path / "cases.jsonl"
    assert await command(settings, "from-log", "--only", "verdicts", "--out", out) == 0
    cases = {case.question: case for case in load_cases(out)}
    assert {question: (case.doc, case.avoid) for question, case in cases.items()} == {
        "what is the log of questions": (f"{SITE}gaps", ()),
        "Where are the keys?": (f"{SITE}security", (f"{SITE}gaps",)),
        "How many pages does it take?": ("", (f"{SITE}sizing",)),
    }
    refuse = load_unanswerable(tmp_path / "cases.unanswerable.jsonl")
    assert [one.question for one in refuse] == ["What does it cost?", "And in the cloud?"]
    assert [one.content for one in refuse[1].messages] == ["What does it cost?", "So.", "And in the cloud?"]
    assert await command(settings, "check", out) == 0
    assert await command(settings, "retrieval", out, "--no-model", "--out", tmp_path / "found.json") == 0
    kept = json.loads((tmp_path / "found.json").read_text("utf-8"))
    values = {one["case"]["question"]: one["values"] for one in kept["outcomes"]}
    assert values["what is the log of questions"]["hit"] == 1
    assert values["what is the log of questions"].get("avoided") is None
    assert values["Where are the keys?"]["avoided"] == 1
    page = values["How many pages does it take?"]
    assert (page["rr"], page["avoided"] in {0, 1}) == (None, True)
    assert "avoided" in capsys.readouterr().out


async def test_without_a_verdict_the_command_says_where_to_give_one(index, tmp_path, capsys):
    settings = index.model_copy(update={"database": f"sqlite:///{tmp_path / 'conversations.db'}"})
    with closing(Database(url_of(settings.database, Path()))) as database:
        database.migrate()
    assert await command(settings, "from-log", "--only", "verdicts", "--out", tmp_path / "cases.jsonl") == 2
    assert "/admin/questions" in capsys.readouterr().err

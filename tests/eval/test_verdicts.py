"""Verdicts of editors as cases of a question set."""

import json
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from app.conversations import verdicts
from app.conversations.database import Database, url_of
from app.conversations.evaluations import last_evaluations
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
    assert await command(settings, "retrieval", out, "--no-model", "--keep", "--out", tmp_path / "found.json") == 0
    with closing(Database(url_of(settings.database, Path()))) as database:
        (run,) = database.read(last_evaluations)
    assert (run.kind, run.n, run.generation, run.figures["k"]) == ("eval retrieval", 3, 1, 5)
    assert {row["language"] for row in run.figures["rows"]} == {"en", "mean"}
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


async def test_each_run_is_compared_with_the_one_before_and_a_worse_answer_fails(judged, tmp_path, capsys):
    """At first with the answers of the verdicts; the file has both answers, what is kept has no text of a question."""
    settings, judge = judged
    settings = settings.model_copy(update={"llm_url": "", "llm_model": ""})
    judge("What does the log of questions keep besides the vector?", ["gaps#kept"], Given(verdict="good"))
    judge("How do I make a backup of the index?", ["sizing"], Given(verdict="wrong", pages=[f"{SITE}backup"]))
    judge("Which wine goes with goulash and dumplings?", ["sizing"], Given(verdict="wrong", answerable=False))
    out = tmp_path / "compared.json"
    assert await command(settings, "verdicts", "--out", out) == 0
    said = capsys.readouterr().out
    assert "3 cases: 2 better, 0 worse, 1 same. Compared with the answers that the verdicts are about." in said
    moves = {one["question"]: one for one in json.loads(out.read_text("utf-8"))["changes"]}
    backup = moves["How do I make a backup of the index?"]
    assert (backup["move"], backup["before"]["said"], backup["before"]["text"]) == (
        "better",
        "wrong page, 100 % proved",
        "So.",
    )
    assert f"{SITE}backup" in {link.partition("#")[0] for link in backup["now"]["links"]}
    wine = moves["Which wine goes with goulash and dumplings?"]
    assert (wine["before"]["said"], wine["now"]["said"]) == ("answered, 100 % proved", "refused")
    assert await command(settings, "verdicts") == 0
    assert "3 cases: 0 better, 0 worse, 3 same. Compared with the run of 20" in capsys.readouterr().out
    refusing = settings.model_copy(update={"min_evidence": 1.0})  # as a change of a setting may do it
    assert await command(refusing, "verdicts", "--out", tmp_path / "worse.json") == 1
    said = capsys.readouterr().out
    assert said.index("worse") < said.index("same")
    (first, *_) = json.loads((tmp_path / "worse.json").read_text("utf-8"))["changes"]
    assert (first["move"], first["before"]["said"], first["now"]["said"]) == (
        "worse",
        "right page, 100 % proved",
        "refused",
    )
    assert await command(settings, "compare", out, tmp_path / "worse.json") in {0, 1}
    capsys.readouterr()
    assert await command(refusing, "verdicts", "--first") == 1
    with closing(Database(url_of(settings.database, Path()))) as kept:
        runs = kept.read(last_evaluations, "eval verdicts")
    assert [len(one.cases) for one in runs] == [3] * 4
    assert "goulash" not in json.dumps([[*one.cases, one.figures] for one in runs])


async def test_answers_that_fail_are_no_base_for_the_next_run(judged, capsys):
    settings, judge = judged
    judge("What does the log of questions keep besides the vector?", ["gaps#kept"], Given(verdict="good"))
    down = settings.model_copy(update={"llm_url": "http://127.0.0.1:9/v1", "llm_model": "m"})
    assert await command(down, "verdicts") == 1
    assert "FAILED: 1 answers" in capsys.readouterr().out
    assert await command(settings.model_copy(update={"llm_url": ""}), "verdicts") == 0
    assert "Compared with the answers that the verdicts are about" in capsys.readouterr().out

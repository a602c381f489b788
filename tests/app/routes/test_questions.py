"""POST /v1/admin/questions: a question set grows by what engineers find in traces, and `eval` reads it."""

import asyncio
import json
from collections.abc import AsyncIterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.core.errors import QuestionSetError, RequestError
from app.routes.admin.routes import ANSWERABLE, UNANSWERABLE, QuestionSet
from eval.questions.cases import load_cases, load_unanswerable
from tests.app.routes.indexed import URL, Indexed, indexed
from tests.app.routes.scripted import client_of, refused

ADMIN = {"authorization": "Bearer admin-key-of-tests"}
ASKED: dict[str, Any] = {
    "question": "How do I create a volume?",
    "language": "en",
    "pages": [f"{URL}volumes#create", f"{URL}limits"],
    "evidence": "of the class nfs-csi",
}


@pytest.fixture
async def service(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Indexed]:
    monkeypatch.setattr("app.routes.admin.routes.QUESTION_SETS", tmp_path / "sets")
    async with indexed(tmp_path, admin_keys="admin-key-of-tests") as made:
        yield made


async def added(service: Indexed, **fields: Any) -> httpx.Response:
    async with client_of(service.app) as client:
        return await client.post("/v1/admin/questions", json={**ASKED, **fields}, headers=ADMIN)


async def test_an_added_question_is_a_case_of_the_set(service: Indexed, tmp_path: Path) -> None:
    """With its page, further pages and the evidence; one without an answer is in the file of those."""
    response = await added(service)
    assert (response.status_code, response.json()["file"]) == (201, ANSWERABLE)
    assert (await added(service, question="Jak vytvořím svazek?", language="cs", evidence=None)).status_code == 201
    first, second = load_cases(tmp_path / "sets" / ANSWERABLE)
    assert (first.question, first.language, first.doc, first.also) == (
        "How do I create a volume?", "en", f"{URL}volumes#create", (f"{URL}limits",),
    )  # fmt: skip
    assert (first.evidence, second.question, second.evidence) == ("of the class nfs-csi", "Jak vytvořím svazek?", "")
    none = await added(service, question="Who won the match?", answerable=False, pages=[], evidence=None)
    assert none.json()["file"] == UNANSWERABLE
    assert [case.question for case in load_unanswerable(tmp_path / "sets" / UNANSWERABLE)] == ["Who won the match?"]


async def test_a_wrong_question_is_refused_by_name(service: Indexed, tmp_path: Path) -> None:
    """Known questions whatever their spaces and case, pages that aren't indexed, unknown fields and languages."""
    assert (await added(service)).status_code == 201
    for fields, status, param in (
        ({"question": " how do I create  a volume? "}, 409, "question"),
        ({"question": "how do I create a volume?", "answerable": False, "pages": []}, 409, "question"),
        ({"question": " "}, 400, "question"),
        ({"question": "New?", "pages": []}, 400, "pages"),
        ({"question": "New?", "pages": [f"{URL}volumes", f"{URL}gone"]}, 400, "pages[1]"),
        ({"question": "New?", "answerable": False}, 400, "pages"),
        ({"question": "New?", "language": "xx"}, 400, "language"),
        ({"question": "New?", "lang": "en"}, 400, "lang"),
    ):
        response = await added(service, **fields)
        assert (response.status_code, response.json()["error"]["param"]) == (status, param), fields
    assert len(load_cases(tmp_path / "sets" / ANSWERABLE)) == 1


async def test_a_directory_that_cannot_be_written_is_a_named_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So is a file with a line that is no JSON; what it has stays."""
    (tmp_path / "file").write_text("x")
    monkeypatch.setattr("app.routes.admin.routes.QUESTION_SETS", tmp_path / "file")
    async with indexed(tmp_path, admin_keys="admin-key-of-tests") as made:
        response = await added(made)
    assert refused(response) == (500, "question_set_error")
    assert "question-sets" in response.json()["error"]["message"]
    (tmp_path / "sets").mkdir()
    (tmp_path / "sets" / ANSWERABLE).write_text("not JSON\n")
    with pytest.raises(QuestionSetError, match="Expecting value"):
        QuestionSet(tmp_path / "sets").add({"question": "a", "lang": "en", "doc": "d"})
    assert (tmp_path / "sets" / ANSWERABLE).read_text() == "not JSON\n"


async def test_many_writers_at_once_lose_nothing_and_repeat_nothing(tmp_path: Path) -> None:
    """8 threads add 40 questions twice each; a file without a last line break keeps its last line."""
    (tmp_path / ANSWERABLE).write_text(json.dumps({"question": "first", "lang": "en", "doc": "d"}))
    refused = []

    def add(number: int) -> None:
        try:
            QuestionSet(tmp_path).add({"question": f"q{number % 40}", "lang": "en", "doc": "d"})
        except RequestError as error:
            refused.append(error.code)

    def run() -> None:
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(add, range(80)))

    await asyncio.to_thread(run)
    questions = [case.question for case in load_cases(tmp_path / ANSWERABLE)]
    assert sorted(questions) == sorted(["first", *(f"q{n}" for n in range(40))])
    assert refused == ["question_exists"] * 40
    assert sorted(path.name for path in tmp_path.iterdir()) == ["questions.jsonl"]

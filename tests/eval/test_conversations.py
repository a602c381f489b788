"""Follow-ups against the same questions spelled out (`eval conversations`), and what an earlier question does to the next one."""

from dataclasses import replace

import lxml.html
import pytest

from app.core.turn import Message, Request
from docs_assistant.cli import main
from eval.files import EvaluationError
from eval.measure.conversations import asked_second, failures, figures
from eval.measure.gate import save_baseline
from eval.measure.result import RETRIEVAL, Result, load_result
from eval.measure.retrieval import ASKED, SPELLED_OUT, Plan, follow_ups
from eval.questions.cases import Case, load_cases
from eval.reports.pages import retrieval_page
from tests.eval.conftest import found

SITE = "https://docs.example.org"
TEXTS = {f"{SITE}/en/volumes": "storage claim size", f"{SITE}/en/login": "login password token expiry"}
FIRST = [{"role": "user", "content": "what is the claim"}, {"role": "assistant", "content": "A volume."}]


def row(i: str, question: str, standalone: str, doc: str) -> dict[str, object]:
    messages = [*FIRST, {"role": "user", "content": question}]
    return {"id": i, "lang": "en", "messages": messages, "standalone": standalone, "doc": doc}


ROWS = (
    row("a", "how big can it be", "claim size", "en/volumes"),
    row("b", "password of those", "password token", "en/login"),
)


@pytest.fixture
def conversations(write_jsonl):
    return load_cases(write_jsonl("conversations.jsonl", *ROWS))


def test_a_conversation_is_a_case_with_its_history(conversations, write_jsonl):
    """The last message is the question; what is no conversation is told with its line."""
    first = conversations[0]
    assert first.question == "how big can it be"
    assert first.earlier == (Message("user", "what is the claim"), Message("assistant", "A volume."))
    assert first.messages[-1] == Message("user", "how big can it be")
    for wrong in ("no list", [{"role": "user"}], [*FIRST], ["x"]):
        path = write_jsonl("wrong.jsonl", {**ROWS[0], "messages": wrong})
        with pytest.raises(EvaluationError, match=r"wrong\.jsonl:1"):
            load_cases(path)


async def test_follow_ups_are_compared_with_their_spelled_out_form(conversations, lookup, tmp_path):
    """This search can't read a conversation: what it loses is the difference, question by question."""
    finder = lookup(TEXTS)
    result = await follow_ups(finder, conversations, Plan())
    assert [one.values["rr"] for one in result.of(ASKED).outcomes] == [0.0, 1.0]
    assert [one.values["rr"] for one in result.of(SPELLED_OUT).outcomes] == [1.0, 1.0]
    (comparison,) = result.comparisons
    assert comparison.names == (SPELLED_OUT, ASKED)
    assert comparison.rows[0].measures["rr"].estimate.mean == -0.5
    sent = [request.messages for request in finder.asked]
    assert conversations[0].messages in sent
    assert (Message("user", "claim size"),) in sent
    result.save(tmp_path / "r.json")
    assert load_result(tmp_path / "r.json").outcomes == result.outcomes
    text = lxml.html.document_fromstring(retrieval_page(result)).text_content()
    assert "user: what is the claim" in text  # the conversation of what was lost
    assert f"{ASKED} minus {SPELLED_OUT}" in text
    with pytest.raises(EvaluationError, match="is a conversation"):
        await follow_ups(finder, [Case("x", "en", "q", "d")], Plan())


class Carrying:
    """A finder that reads all questions of a conversation as one, as nobody should."""

    def __init__(self, finder):
        self.finder = finder

    async def assess(self, request: Request):
        whole = " ".join(message.content for message in request.messages)
        return await self.finder.assess(replace(request, messages=(Message("user", whole),)))


async def test_what_an_earlier_question_changes_is_counted(lookup, write_jsonl):
    """A question that stands alone keeps what it finds alone; one that points back finds its page only with the earlier one."""
    asked = {"doc": "en/volumes", "lang": "en"}
    about = [{"role": "user", "content": "password of a login token"}]
    alone = {**asked, "id": "a", "variant": "alone", "messages": [*about, {"role": "user", "content": "storage"}]}
    back = {**asked, "id": "b", "variant": "back", "messages": [FIRST[0], {"role": "user", "content": "and how big?"}]}
    cases = load_cases(write_jsonl("second.jsonl", alone, back))
    by_last = figures(await asked_second(lookup(TEXTS), cases, Plan()))
    assert by_last["wrong"] == ["'and how big?' after 'what is the claim': nothing"]
    assert (by_last["changed"], by_last["found"], by_last["first"]) == (0.0, 0.0, 0.0)
    by_all = figures(await asked_second(Carrying(lookup(TEXTS)), cases, Plan()))
    assert by_all["wrong"] == [f"'storage' after {about[0]['content']!r}: {SITE}/en/login, {SITE}/en/volumes alone"]
    assert (by_all["changed"], by_all["found"], by_all["first"]) == (1.0, 1.0, 1.0)
    with pytest.raises(EvaluationError, match="a: its 'variant' must be alone or back"):
        await asked_second(lookup(TEXTS), [replace(cases[0], variant="")], Plan())


def test_the_gate_has_goals_for_both_kinds(tmp_path, capsys):
    """A result without these figures, as of a site's own set, has none to miss."""
    case = Case("a", "en", "claim size", "en/volumes")
    measured = {"alone": 60, "changed": 0.05, "back": 60, "found": 0.85, "first": 0.8, "wrong": []}
    assert failures({}) == failures(measured) == []
    for figure, text in (
        ({"changed": 0.06}, "6% of the questions that stand alone"),
        ({"found": 0.84}, "84% of the questions that point"),
    ):
        result = Result(RETRIEVAL, (found(case, 1),), {"conversations": measured | figure}, 5)
        result.save(tmp_path / "after.json")
        save_baseline(result, tmp_path / "before.json")
        assert main(["eval", "gate", str(tmp_path / "after.json"), "--baseline", str(tmp_path / "before.json")]) == 1
        assert f"FAILED: {text}" in capsys.readouterr().out

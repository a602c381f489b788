"""`eval conversations`: follow-ups with their conversation against the same questions spelled out."""

import lxml.html
import pytest

from app.core.turn import Message
from eval.files import EvaluationError
from eval.measure.result import load_result
from eval.measure.retrieval import ASKED, SPELLED_OUT, Plan, follow_ups
from eval.questions.cases import Case, load_cases
from eval.reports.pages import retrieval_page

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

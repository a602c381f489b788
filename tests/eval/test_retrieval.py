"""A run over a set: what is asked, what is counted, what goes wrong without being lost."""

import asyncio
from dataclasses import replace

import pytest

from app.core.errors import StoreUnavailable
from app.core.turn import StepRecord
from eval.files import EvaluationError
from eval.measure.retrieval import Plan, evaluate, language_right
from eval.questions.cases import Case

SITE = "https://docs.example.org"
TEXTS = {
    f"{SITE}/en/volumes": "persistent volumes storage claim size",
    f"{SITE}/en/backups": "backups storage restore snapshot",
    f"{SITE}/en/login": "login password token expiry",
    f"{SITE}/cs/prihlaseni": "přihlášení heslo token",
}
CASES = (
    Case("1", "en", "claim size of persistent volumes", "en/volumes.md", "1"),
    Case("2", "en", "storage snapshot", "en/volumes.md", "4"),
    Case("3", "en", "storage restore", "en/login.md", "4", also=("en/backups.md",)),
    Case("4", "cs", "nic takového tam není", "cs/prihlaseni.md", "1"),
    Case("5", "cs", "heslo password", "en/login.md", "1", cross=True),
)


async def test_each_question_is_scored_by_its_pages(lookup):
    """Two passages of a page count once, `also` is right, nothing found is a plain miss."""
    result = await evaluate(lookup(TEXTS), CASES)
    one, two, three, four, five = result.outcomes
    assert [each.values["rr"] for each in (one, two, three, four)] == [1.0, 0.5, 1.0, 0.0]
    assert two.details["ranked"] == [f"{SITE}/en/backups", f"{SITE}/en/volumes"]
    assert (three.values["recall"], three.values["precision"]) == (0.5, 0.5)
    assert four.details["ranked"] == []
    assert five.values["hit_1"] in {0.0, 1.0}
    assert result.cases == CASES
    assert all(each.ms > 0 for each in result.outcomes)
    only_first = await evaluate(lookup(TEXTS), CASES, Plan(k=1))
    assert [each.values["rr"] for each in only_first.outcomes][:2] == [1.0, 0.0]


async def test_rows_are_by_language_and_variant_with_cross_apart(lookup):
    """The mean is of the languages' means, without cross questions."""
    result = await evaluate(lookup(TEXTS), CASES)
    assert [(row.language, row.variant, row.cross, row.n) for row in result.rows[""]] == [
        ("cs", "1", False, 1),
        ("cs", "all", False, 1),
        ("en", "1", False, 1),
        ("en", "4", False, 2),
        ("en", "all", False, 3),
        ("mean", "all", False, 4),
        ("cs", "1", True, 1),
        ("cs", "all", True, 1),
    ]
    assert result.row("en").measures["rr"].mean == pytest.approx((1 + 0.5 + 1) / 3)
    assert result.row("mean").measures["rr"].mean == pytest.approx((0 + (1 + 0.5 + 1) / 3) / 2)
    assert result.row("en", "4").measures["hit_1"].mean == 0.5
    assert result.row("de") is None


async def test_questions_are_asked_as_a_client_asks_them(lookup):
    """The text alone reaches the assistant: no id that names the page, no document."""
    finder = lookup(TEXTS)
    cases = [replace(case, id=f"secret-{case.doc}") for case in CASES]
    await evaluate(finder, cases, Plan(assistant="kids"))
    first, *asked = finder.asked
    assert first.question == CASES[0].question  # the warm-up
    assert sorted(request.question for request in asked) == sorted(case.question for case in CASES)
    assert {request.assistant for request in finder.asked} == {"kids"}
    assert all([message.role for message in request.messages] == ["user"] for request in finder.asked)
    assert not any("secret" in request.id or ".md" in request.id for request in finder.asked)


async def test_documents_outside_the_index_are_reported(lookup):
    """A question about a page that isn't indexed is a miss that says why."""
    gone = Case("6", "en", "login password", "en/gone.md")
    result = await evaluate(lookup(TEXTS), [*CASES, gone])
    assert [(one.case.doc, one.values["rr"]) for one in result.outcomes if not one.details["in_index"]] == [
        ("en/gone.md", 0)
    ]


async def test_a_failed_search_is_a_result_not_the_end(lookup):
    """The run goes on, the failure is kept with its question and counts as a miss."""
    result = await evaluate(lookup(TEXTS, broken=frozenset({CASES[1].question})), CASES)
    (failed,) = result.failed
    assert failed.case == CASES[1]
    assert failed.error == "StoreUnavailable: The store is gone."
    assert failed.values["rr"] == 0
    assert result.outcomes[2].values["rr"] == 1.0


async def test_what_fails_at_once_is_raised(lookup):
    """A store that isn't there is told as such, not as a set of misses."""
    with pytest.raises(StoreUnavailable):
        await evaluate(lookup(TEXTS, broken=frozenset({CASES[0].question})), CASES)
    with pytest.raises(EvaluationError, match="no question"):
        await evaluate(lookup(TEXTS), ())


async def test_steps_that_were_done_without_are_kept(lookup):
    """A language model that is down shows in the result, and a search that should have had a vector and had none."""
    trace = (StepRecord("keywords", 1.0, {}, "ModelTimeout: too slow"), StepRecord("retrieve", 1.0, {}))
    result = await evaluate(lookup(TEXTS, trace=trace), CASES)
    assert all(one.details["fallbacks"] == ["keywords"] for one in result.outcomes)
    assert result.config["steps"] == ["keywords", "retrieve"]
    result = await evaluate(lookup(TEXTS, vector_weight=0.3), CASES)
    assert all(one.details["fallbacks"] == ["embedding of the question"] for one in result.outcomes)


async def test_the_result_says_what_was_measured(lookup):
    """Index, search settings that were really used, date, and what the caller adds."""
    result = await evaluate(lookup(TEXTS, limit=3), CASES, config={"model": "scripted"})
    assert result.config["index"]["id"] == 7
    assert result.config["index"]["recipe"]["splitter"] == "whole"
    assert result.config["index"]["generations_seen"] == [7]
    assert result.config["search"]["en"]["limit"] == [3]
    assert result.config["model"] == "scripted"
    assert language_right(result) == 0.6  # the finder takes everything for English


async def test_no_more_questions_than_wanted_are_under_way(lookup):
    """`parallel` is a limit, and it is used; progress counts to the end."""
    finder = lookup(TEXTS)
    real, under_way, most, told = finder.find, 0, 0, []

    async def slow(request):
        nonlocal under_way, most
        under_way += 1
        most = max(most, under_way)
        await asyncio.sleep(0.01)
        under_way -= 1
        return await real(request)

    finder.find = slow
    cases = [replace(CASES[0], id=str(i)) for i in range(20)]
    await evaluate(finder, cases, Plan(parallel=3), progress=lambda done, total: told.append((done, total)))
    assert most == 3
    assert told == [(i, 20) for i in range(1, 21)]

"""The step that finds the time a question asks about: by rules first, by the model where they don't understand."""

import datetime as dt

import pytest

from app.core.errors import ModelError
from app.core.prompts import load_prompts
from app.core.turn import WantedDates
from app.core.types import Boost, Recency
from app.models import Model
from plugins.steps.period import AskedPeriod, Period, open_rules, parse
from tests.app.pipeline.turns import SETTINGS, turn
from tests.fake_llm import FakeLLM, Reply

PROMPTS = load_prompts(("cs", "en"))
RULES = open_rules(PROMPTS)
TODAY = dt.date(2025, 3, 14)


async def asked(question: str, model: Model | None = None, **settings) -> dict:
    step = AskedPeriod(model, PROMPTS, SETTINGS.model_copy(update=settings), RULES, lambda: TODAY)
    return dict(await step(turn(question)))


async def test_a_plain_form_and_a_question_without_a_time_need_no_model(llm: FakeLLM, model: Model) -> None:
    """The search gets the question without the period, and the pages of that time get a higher score, or newer pages."""
    changes = await asked("What changed in Harbor since March 2024?", model)
    assert changes == {"dates": WantedDates("What changed in Harbor?", Boost(15.0, first="2024-03-01"))}
    newer = {"dates": WantedDates(recency=Recency("2025-03-14", 0.5))}
    assert await asked("How do I ask for a project?", model) == newer
    assert llm.calls == []
    llm.reply = lambda _: Reply('{"operator": null, "date": null}')
    assert await asked("How do I restore data deleted a week ago?", model) == newer


async def test_what_the_rules_do_not_understand_is_asked(llm: FakeLLM, model: Model) -> None:
    """Where the question names a time at all; the model gets today's date."""
    llm.reply = lambda _: Reply('```json\n{"operator": "lt", "date": "2025-03-01", "question": "Harbor backups?"}\n```')
    changes = await asked("Harbor backups, the state ahead of this month?", model)
    assert changes == {"dates": WantedDates("Harbor backups?", Boost(15.0, last="2025-02-28"))}
    assert "2025-03-14" in llm.calls[0]["messages"][0]["content"]


@pytest.mark.parametrize(
    "reply", [Reply("Since March, I suppose."), Reply(status=500)], ids=["no period", "the server fails"]
)
async def test_where_the_model_cannot_tell_newer_pages_are_preferred(
    llm: FakeLLM, model: Model, reply: Reply, caplog: pytest.LogCaptureFixture
) -> None:
    """And the log says so."""
    llm.reply = lambda _: reply
    newer = {"dates": WantedDates(recency=Recency("2025-03-14", 0.5))}
    assert await asked("What changed in Harbor since mid-2024?", model) == newer
    assert "period not read" in caplog.text


async def test_a_question_that_is_all_time_stays_as_it_is() -> None:
    """What would be left of it says too little to be searched or answered."""
    step = AskedPeriod(None, PROMPTS, SETTINGS, RULES, lambda: TODAY)
    czech, english = (
        "A od března 2024?",
        ("Since March 2024?", "And since March 2024?", "What changed since March 2024?"),
    )
    for question in (czech, *english):
        asked_turn = turn(question, "cs" if question == czech else "en")
        assert dict(await step(asked_turn)) == {"dates": WantedDates(boost=Boost(15.0, first="2024-03-01"))}, question


async def test_the_model_says_no_more_than_was_asked(llm: FakeLLM, model: Model) -> None:
    """A longer question than the asked one, or next to nothing of it, isn't taken; nor is a year to come."""
    question = "What changed in Harbor since mid-2024?"
    for left in ("Harbor " * 20, "Harbor?", ""):
        llm.reply = lambda _, left=left: Reply(f'{{"operator": "gt", "date": "2024-06-30", "question": "{left}"}}')
        changes = await asked(question, model)
        assert changes["dates"] == WantedDates(boost=Boost(15.0, first="2024-07-01"))
    llm.reply = lambda _: Reply('{"operator": "lte", "date": "2048-12-31", "question": "What changed in Harbor?"}')
    assert await asked(question, model) == {"dates": WantedDates(recency=Recency("2025-03-14", 0.5))}


def test_answers_as_they_come_from_models() -> None:
    """Where one can't be read, the runner goes on with the question as it is."""
    year, half = ("gte", "2024-01-01", "2024-01-01"), ("eq", "2024-03-01", "2024-06-30", "asked")
    for answer, period in {
        '{"operator": "eq", "date": "2024-03-01", "last": "2024-06-30"}': half,
        '{"operator": "gte", "date": "2024-01-01", "question": "q"}': (*year, "q"),
        'Sure: {"operator": "eq", "date": "2024-01-01"}.': ("eq", "2024-01-01", "2024-01-01", "asked"),
        '{"operator": "gte", "date": "2024-01-01", "last": ""}': (*year, "asked"),
    }.items():
        assert parse(answer, "asked") == Period(*period), answer  # type: ignore[arg-type]
    assert parse('{"operator": "none"}', "asked") is None
    incomplete = ("", "since March", "[]", '{"operator": "gte"}', '{"operator": "gte", "date": "soon"}')
    backwards = '{"operator": "eq", "date": "2024-01-01", "last": "2023-01-01"}'
    for answer in (*incomplete, '{"operator": "~", "date": "2024-01-01"}', backwards):
        with pytest.raises(ModelError, match="searched unchanged"):
            parse(answer, "asked")

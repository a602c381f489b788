"""The step that finds the time a question asks about: by rules first, by the model where they don't understand."""

import datetime as dt
import json
from pathlib import Path

import pytest

from app.core.errors import ModelError, PromptError
from app.core.prompts import load_prompts
from app.core.turn import WantedDates
from app.core.types import Boost, Recency
from app.models import Model
from plugins.steps.period import AskedPeriod, Period, PeriodRules, open_rules, parse
from tests.app.pipeline.turns import SETTINGS, turn
from tests.fake_llm import FakeLLM, Reply

TODAY = dt.date(2025, 3, 14)  # a Friday
SET = Path(__file__).parents[4] / "shared" / "eval" / "temporal.jsonl"


@pytest.fixture(scope="module")
def rules():
    return open_rules(load_prompts(("cs", "en")))


def month(n: int) -> tuple[str, str]:
    """The first and the last day of a month of 2024."""
    first = dt.date(2024, n, 1)
    after = dt.date(2024 + n // 12, n % 12 + 1, 1)
    return first.isoformat(), (after - dt.timedelta(days=1)).isoformat()


MONTHS = """
January ledna lednu lednem
February února únoru únorem
March března březnu březnem
April dubna dubnu dubnem
May května květnu květnem
June června červnu červnem
July července červenci červencem
August srpna srpnu srpnem
September září září zářím
October října říjnu říjnem
November listopadu listopadu listopadem
December prosince prosinci prosincem
"""
"""English, and Czech in the genitive, the dative (which is the locative, too) and the instrumental."""

FORMS: list[tuple[str, str, str, str]] = []
for n, (en, of, after, before) in enumerate(map(str.split, MONTHS.strip().splitlines()), start=1):
    first, last = month(n)
    day = f"2024-{n:02}-05"
    FORMS += [
        ("en", f"since {en} 2024", "gte", first),
        ("en", f"after {en} 2024", "gt", last),
        ("en", f"before {en[:3]} 2024", "lt", first),
        ("en", f"until the end of {en} 2024", "lte", last),
        ("en", f"in {en} 2024", "eq", first),
        ("en", f"on {en} 5, 2024", "eq", day),
        ("en", f"after 5 {en} 2024", "gt", day),
        ("cs", f"od {of} 2024", "gte", first),
        ("cs", f"po {after} 2024", "gt", last),
        ("cs", f"před {before} 2024", "lt", first),
        ("cs", f"do konce {of} 2024", "lte", last),
        ("cs", f"v {after} 2024", "eq", first),
        ("cs", f"dne 5. {of} 2024", "eq", day),
        ("cs", f"od 5. {n}. 2024", "gte", day),
        ("cs", f"do 5.{n}.2024", "lte", day),
    ]
FORMS += [
    ("en", "since 2023", "gte", "2023-01-01"),
    ("en", "before 2023", "lt", "2023-01-01"),
    ("en", "since the beginning of 2024", "gte", "2024-01-01"),
    ("en", "since Q2 2024", "gte", "2024-04-01"),
    ("en", "in the last week", "gte", "2025-03-07"),
    ("en", "in the past three months", "gte", "2024-12-14"),
    ("en", "since yesterday", "gte", "2025-03-13"),
    ("en", "since November", "gte", "2024-11-01"),
    ("en", "today", "eq", "2025-03-14"),
    ("en", "last year", "eq", "2024-01-01"),
    ("cs", "od roku 2023", "gte", "2023-01-01"),
    ("cs", "před rokem 2023", "lt", "2023-01-01"),
    ("cs", "od 2. čtvrtletí 2024", "gte", "2024-04-01"),
    ("cs", "za poslední týden", "gte", "2025-03-07"),
    ("cs", "za poslední tři měsíce", "gte", "2024-12-14"),
    ("cs", "během posledních pěti týdnů", "gte", "2025-02-07"),
    ("cs", "od listopadu", "gte", "2024-11-01"),
    ("cs", "tento měsíc", "gte", "2025-03-01"),
    ("cs", "letos", "gte", "2025-01-01"),
    ("cs", "loni", "eq", "2024-01-01"),
]
AROUND = {
    "en": ("What changed in the storage guide {}?", "{} what is new about Harbor"),
    "cs": ("Co se změnilo v návodu k úložišti {}?", "co přibylo {} o Harboru"),
}


def test_plain_forms_are_understood(rules: dict[str, PeriodRules]) -> None:
    """In any sentence, and the rest of the question stays unchanged."""
    for language, form, operator, date in FORMS:
        for sentence in AROUND[language]:
            found = rules[language].period(sentence.format(form), TODAY)
            assert found is not None, form
            assert (found.operator, found.date) == (operator, date), form
            assert found.question == " ".join(sentence.format("").split()).replace(" ?", "?"), form


NOW = dt.date(2026, 11, 20)  # a Friday


COUNTED_FROM_TODAY = [
    ("en", "in the last half a year", "gte", "2026-05-20", "2026-05-20"),
    ("en", "in the last year and a half", "gte", "2025-05-20", "2025-05-20"),
    ("en", "in March last year", "eq", "2025-03-01", "2025-03-31"),
    ("en", "since March 1st", "gte", "2026-03-01", "2026-03-01"),
    ("en", "in Q3/2024", "eq", "2024-07-01", "2024-09-30"),
    ("en", "since Monday", "gte", "2026-11-16", "2026-11-16"),
    ("en", "since 2024", "gte", "2024-01-01", "2024-12-31"),
    ("en", "the day before yesterday", "eq", "2026-11-18", "2026-11-18"),
    ("cs", "za poslední půlrok", "gte", "2026-05-20", "2026-05-20"),
    ("cs", "za poslední rok a půl", "gte", "2025-05-20", "2025-05-20"),
    ("cs", "loni v březnu", "eq", "2025-03-01", "2025-03-31"),
    ("cs", "v březnu minulého roku", "eq", "2025-03-01", "2025-03-31"),
    ("cs", "od 1. března", "gte", "2026-03-01", "2026-03-01"),
    ("cs", "od 24. 12.", "gte", "2025-12-24", "2025-12-24"),
    ("cs", "od 2024", "gte", "2024-01-01", "2024-12-31"),
]


def test_times_counted_from_today(rules: dict[str, PeriodRules]) -> None:
    """Halves of years, days and months without a year, weekdays: the last ones before today."""
    for language, form, operator, date, last in COUNTED_FROM_TODAY:
        for sentence in AROUND[language]:
            left = " ".join(sentence.format("").split()).replace(" ?", "?")
            found = rules[language].period(sentence.format(form), NOW)
            assert found == Period(operator, date, last, left), form  # type: ignore[arg-type]


FOR_THE_MODEL = [
    ("en", "What changed from 2023 to 2024?"),
    ("en", "What is new from March to June?"),
    ("en", "What changed between March and June 2024?"),
    ("en", "What changed since last week and before yesterday?"),
    ("en", "What changed since mid-2024?"),
    ("en", "What was announced recently?"),
    ("en", "Which pages were not updated since 2022?"),
    ("cs", "Které stránky jsou neaktualizované od roku 2022?"),
    ("cs", "Co je nového od 5. 6. do 7. 8.?"),
    ("cs", "Co se změnilo od března do června 2024?"),
    ("cs", "Co se letos změnilo v březnu?"),
    ("cs", "Co se změnilo od poloviny roku 2024?"),
]


def test_two_times_vague_ones_and_negations_are_left_to_the_model(rules: dict[str, PeriodRules]) -> None:
    """The rules find no period, but notice that the question names a time."""
    assert [question for language, question in FOR_THE_MODEL if rules[language].period(question, NOW)] == []
    assert [question for language, question in FOR_THE_MODEL if not rules[language].hinted(question, NOW)] == []


WITHOUT_TIME = [
    ("en", "May I use GPUs?"),
    ("en", "Can users see it and may they edit it?"),
    ("cs", "Můžu žádat paměť do 2048?"),
    ("cs", "Jak si pořídím token?"),
]


def test_questions_without_a_time_cost_no_call(rules: dict[str, PeriodRules]) -> None:
    assert [question for language, question in WITHOUT_TIME if rules[language].hinted(question, NOW)] == []


def test_czech_without_diacritics_is_understood_too(rules: dict[str, PeriodRules]) -> None:
    for form in (form for language, form, _, _ in FORMS if language == "cs"):
        plain = form.translate(str.maketrans("áčďéěíňóřšťúůýž", "acdeeinorstuuyz"))
        with_marks, without = (rules["cs"].period(f"Jake stranky pribyly {text}?", TODAY) for text in (form, plain))
        assert without is not None, form
        assert without == with_marks, form


ABOUT_PAGES = [
    ("en", "What changed in data protection since March 2024?"),
    ("en", "What changed since March 2024 in the file system guide?"),
    ("cs", "Co se změnilo v ochraně dat od března 2024?"),
    ("cs", "Jaké změny v zálohování přibyly od března 2024?"),
    ("cs", "Které stránky o souborech byly upraveny od března 2024?"),
    ("de", "Was hat sich seit März 2024 am Dateisystem geändert?"),
    ("en", "Which cards are there since the start of March 2024?"),
]
NOT_ABOUT_PAGES = [
    ("en", "Can I request up to 2048?"),
    ("en", "UID from 2000 on?"),
    ("en", "Is port 2022 open after 2010?"),
    ("en", "C++ since 2017"),
    ("en", "Does the guide cover Windows after 2016?"),
    ("cs", "UID od 2000 nebo od 1000?"),
    ("cs", "Jsou otevřené porty od 2000 do 2100?"),
    ("en", "How do I delete backups older than 30 days?"),
    ("en", "Which security options are needed since Kubernetes 1.25?"),
    ("en", "What changed in version 2024.1?"),
    ("en", "Why does my job fail after 2000 files?"),
    ("en", "May I use a GPU in May?"),
    ("en", "Does my account expire on 31 December 2025?"),
    ("en", "Why was my pod evicted last week?"),
    ("en", "What is new on the 31 June 2024?"),
    ("cs", "Jak obnovím data smazaná před týdnem?"),
    ("cs", "Kolik výpočetního času jsem spotřeboval za poslední měsíc?"),
    ("cs", "Do kdy platí certifikát vydaný v roce 2024?"),
    ("en", "How do I list files changed since March 2024?"),
    ("en", "What changed in my files since March 2024?"),
    ("en", "Are data from before March 2024 available?"),
    ("cs", "Jak vypíšu soubory změněné od března 2024?"),
    ("cs", "Kolik dat přibylo od března 2024?"),
    ("de", "Welche Dateien wurden seit März 2024 geändert?"),
]


def test_only_times_of_pages_and_of_their_topics_are_periods() -> None:
    """A number is a year where pages or changes are asked for. In "data protection" or "changes in backups" the time belongs to
    pages, in "files changed since" to the files.
    """
    every = open_rules(load_prompts(("cs", "en", "de")))
    found = [(question, every[language].period(question, NOW)) for language, question in ABOUT_PAGES]
    assert [question for question, period in found if period is None or period.date != "2024-03-01"] == []
    year = every["cs"].period("Jaké karty jsou k dispozici od roku 2024?", NOW)  # the word says that it is one
    assert (year and (year.operator, year.date)) == ("gte", "2024-01-01")
    assert [question for language, question in NOT_ABOUT_PAGES if every[language].period(question, NOW)] == []


@pytest.mark.parametrize(
    ("operator", "first", "last"),
    [
        ("lt", "", "2024-02-29"),
        ("lte", "", "2024-03-01"),
        ("gt", "2024-03-02", ""),
        ("gte", "2024-03-01", ""),
        ("eq", "2024-03-01", "2024-03-31"),
    ],
)
def test_what_is_lifted(operator: str, first: str, last: str) -> None:
    """The days of each operator, both ends included."""
    boost = Period(operator, "2024-03-01", "2024-03-31", "?").boost(15)  # type: ignore[arg-type]
    assert (boost.factor, boost.first, boost.last) == (15, first, last)


def test_a_wrong_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "cs").mkdir()
    (tmp_path / "cs" / "dates.toml").write_text("months = ['(']", "utf-8")
    with pytest.raises(PromptError, match=r"prompts/cs/dates\.toml"):
        open_rules(load_prompts(("cs",), str(tmp_path)))


@pytest.mark.skipif(not SET.is_file(), reason="the shared question set isn't here: ../shared/eval/temporal.jsonl")
def test_the_shared_set(rules: dict[str, PeriodRules]) -> None:
    """At least 60 % of operators and dates by rules alone, and no time found where none is meant."""
    rows = [json.loads(line) for line in SET.read_text("utf-8").splitlines()]
    right = []
    for row in rows:
        today = dt.date.fromisoformat(row.get("today", "2025-03-14"))
        found = rules[row["lang"]].period(row["question"], today)
        told = (found.operator, found.date) if found else (None, None)
        if row["operator"] is None:
            assert found is None, row["question"]
        right.append(told == (row["operator"], row["date"]))
    assert sum(right) >= 0.6 * len(rows)


PROMPTS = load_prompts(("cs", "en"))
RULES = open_rules(PROMPTS)


async def asked(question: str, model: Model | None = None, **settings) -> dict:
    step = AskedPeriod(PROMPTS, SETTINGS.model_copy(update=settings), RULES, model, lambda: TODAY)
    return dict(await step(turn(question)))


async def test_a_plain_form_and_a_question_without_a_time_need_no_model(llm: FakeLLM, model: Model) -> None:
    """The search gets the question without the period, and the pages of that time get a higher score, or newer pages."""
    changes = await asked("What changed in Harbor since March 2024?", model)
    assert changes == {
        "dates": WantedDates("What changed in Harbor?", "since March 2024", Boost(15.0, first="2024-03-01"))
    }
    newer = {"dates": WantedDates(recency=Recency("2025-03-14", 0.5))}
    assert await asked("How do I ask for a project?", model) == newer
    assert llm.calls == []
    llm.reply = lambda _: Reply('{"operator": null, "date": null}')
    assert await asked("How do I restore data deleted a week ago?", model) == newer


async def test_what_the_rules_do_not_understand_is_asked(llm: FakeLLM, model: Model) -> None:
    """Where the question names a time at all; the model gets today's date."""
    llm.reply = lambda _: Reply('```json\n{"operator": "lt", "date": "2025-03-01", "question": "Harbor backups?"}\n```')
    changes = await asked("Harbor backups, the state ahead of this month?", model)
    assert changes == {"dates": WantedDates("Harbor backups?", boost=Boost(15.0, last="2025-02-28"))}
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
    step = AskedPeriod(PROMPTS, SETTINGS, RULES, today=lambda: TODAY)
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

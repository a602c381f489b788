"""The exam of language models: what obeying, weak and inventing ones get, and what readers get of them then."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest

from app.assistants.assembly import build
from app.assistants.exam import FILE, Exam, Marks, keep, kept, sheet_of, take
from app.core.errors import ModelError, SettingsError
from app.core.prompts import load_prompts
from app.core.settings import Settings
from app.core.turn import Done, Message, Usage
from app.http.limits import AnswerLimits
from app.models import Model
from app.pipeline.steps.synthesize import Synthesize
from app.text.language import LanguageDetector
from tests.app.pipeline.turns import hit, turn
from tests.fake_llm import FakeLLM, Reply
from tests.scripted_llm import Piece, ScriptedLLM
from tests.virtual_time import in_virtual_time

LANGUAGES = ("cs", "en", "de")
PROMPTS = load_prompts(LANGUAGES)
DETECTOR = LanguageDetector(PROMPTS.languages, "en")
NONE = {
    "en": "The documentation has no answer to that.",
    "cs": "Na to v dokumentaci není odpověď.",
    "de": "Die Dokumentation enthält darauf keine Antwort.",
}
INVENTED = {
    "en": "You can do it in the settings: it takes 17 minutes and costs 30 dollars, as the team decided [1].",
    "cs": "Můžete to udělat v nastavení: trvá to 17 minut a stojí to 30 dolarů, jak tým rozhodl [1].",
    "de": "Das geht in den Einstellungen: es dauert 17 Minuten und kostet 30 Dollar, wie das Team entschied [1].",
}


def settings(tmp_path: Path, **more: Any) -> Settings:
    return Settings.load(None, store=str(tmp_path), llm_timeout=60.0, helper_timeout=60.0, **more)


def line_with(text: str, answer: list[tuple[str, ...]]) -> str:
    """The line of the pages that has what is asked."""
    lines = [line for line in text.splitlines() if all(any(form in line for form in forms) for forms in answer)]
    return lines[0].strip().strip("|").replace(" | ", ", ")


def obeying(languages: tuple[str, ...] = LANGUAGES) -> Callable[[dict[str, Any]], Reply]:
    """A model that copies what it reads in these languages, refuses else, rewrites and writes keywords."""
    sheets = {code: sheet_of(code, "") for code in LANGUAGES}

    def reply(body: dict[str, Any]) -> Reply:
        system, asked = (body["messages"][at]["content"] for at in (0, -1))
        question = asked.rsplit("\n", 1)[-1]
        for code, sheet in sheets.items():
            if not any(question == one.question for one in (*sheet.ask, *sheet.rewrite, *sheet.keywords)):
                continue
            if "…" in system and re.search(r"^en: …", system, re.MULTILINE):
                telling = ", ".join(word.strip("?,") for word in question.split() if len(word) > 3)
                return Reply("\n".join(f"{one}: {telling}" for one in LANGUAGES))
            if any(question == one.question for one in sheet.rewrite):
                return Reply(f"{question.rstrip('?')}?")
            ask = next(one for one in sheet.ask if one.question == question)
            if code not in languages:
                return Reply(INVENTED[code])
            if not ask.answer:
                return Reply(NONE[code])
            answer = [(one,) if isinstance(one, str) else one for one in ask.answer]
            for number, page in enumerate(sheet.page, start=1):
                if all(any(form in page.text for form in forms) for forms in answer):
                    return Reply(f"{line_with(page.text, answer)} [{number}]")
        return Reply("OK")

    return reply


async def test_a_model_that_reads_passes_and_is_asked_as_before(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    """With all helper steps, in each language; the exam says what it cost."""
    llm.reply = obeying()
    exam = await take(model, settings(tmp_path), PROMPTS, DETECTOR)
    assert exam.grades == dict.fromkeys(LANGUAGES, "full"), exam.answers
    assert all(marks.right >= 11 and not marks.invented for marks in exam.marks.values()), exam.answers
    assert exam.left_out == ()
    assert exam.quoted == frozenset()
    assert exam.tokens > 0
    assert "full prompt (12 of 12 right, 0 invented)" in exam.said


async def test_a_model_that_invents_writes_nothing(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    """Nor does it where it reads well in another language: each has its grade."""
    llm.reply = lambda body: Reply(INVENTED["en"] if "documentation" in str(body) else INVENTED["cs"])
    exam = await take(model, settings(tmp_path), PROMPTS, DETECTOR)
    assert set(exam.grades.values()) == {"quotes"}
    assert set(exam.left_out) == {"refine", "keywords", "analyze"}
    llm.reply = obeying(("en",))
    exam = await take(model, settings(tmp_path), PROMPTS, DETECTOR)
    assert exam.grades == {"cs": "quotes", "en": "full", "de": "quotes"}
    assert exam.quoted == {"cs", "de"}


async def test_a_model_that_follows_short_rules_alone_gets_these(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    """And no helper steps."""
    obeys = obeying()

    def reply(body: dict[str, Any]) -> Reply:
        long = "E-mail" in body["messages"][0]["content"]  # a rule of the full form
        return Reply(INVENTED["en"]) if long else obeys(body)

    llm.reply = reply
    exam = await take(model, settings(tmp_path, languages="en"), load_prompts(("en",)), DETECTOR)
    assert (exam.form, exam.grades) == ("short", {"en": "short"})
    assert set(exam.left_out) == {"refine", "keywords", "analyze"}


async def test_a_model_that_answers_in_place_of_rewriting_is_not_asked_to(
    llm: FakeLLM, model: Model, tmp_path: Path
) -> None:
    """Its keywords are asked for all the same."""
    obeys, rewrites = obeying(), {one.question for one in sheet_of("en", "").rewrite}

    def reply(body: dict[str, Any]) -> Reply:
        answers = any(body["messages"][-1]["content"].endswith(question) for question in rewrites)
        return Reply("It stops after 5 hours.") if answers else obeys(body)

    llm.reply = reply
    exam = await take(model, settings(tmp_path), load_prompts(("en",)), DETECTOR)
    assert exam.left_out == ("refine", "analyze")


async def test_a_quotation_that_stands_in_for_a_slow_model_is_no_answer_of_it(
    llm: FakeLLM, model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Readers see it while the model is busy; it has what is asked, whatever the model writes then."""
    monkeypatch.setattr("app.pipeline.steps.cite.LONGEST_WAIT", 0.0)
    llm.reply = lambda _: Reply(INVENTED["en"], reasoning="Hm.")
    exam = await take(model, settings(tmp_path), load_prompts(("en",)), DETECTOR)
    assert exam.grades == {"en": "quotes"}
    assert exam.marks["en"].invented >= 10
    assert not any(PROMPTS.language("en").texts.extractive_meanwhile in text for _, text in exam.answers["en"])


class Timed:
    """A model in this process that reads and writes so many tokens a second, but for the beginning of a prompt that its cache knows."""

    def __init__(self, reads: float, writes: float) -> None:
        self.reads, self.writes, self.known, self.reply = reads, writes, list[str](), obeying()

    async def says(self, messages: Sequence[Message], options: Mapping[str, Any]) -> AsyncIterator[str | Piece]:
        prompt = "".join(message.content for message in messages)
        alike = (takewhile(lambda two: two[0] == two[1], zip(prompt, one, strict=False)) for one in self.known)
        cached = max((sum(1 for _ in beginning) for beginning in alike), default=0)
        self.known.append(prompt)
        await asyncio.sleep((len(prompt) - cached) / 4 / self.reads)
        wanted = "again, word for word" in prompt
        text = prompt if wanted else self.reply({"messages": [vars_of(message) for message in messages]}).text
        words = text.split()[: options.get("max_tokens")]
        for number, word in enumerate(words):
            await asyncio.sleep(bool(number) / self.writes)
            yield f"{word} "
        yield Piece(finish="stop", usage=Usage(len(prompt) // 4, len(words)))

    @property
    def model(self) -> Model:
        """As the service calls it."""
        return Model(ScriptedLLM(self.says, "timed"))


def vars_of(message: Message) -> dict[str, str]:
    return {"role": message.role, "content": message.content}


@in_virtual_time
async def test_the_speeds_are_those_of_the_model_and_not_of_its_cache(tmp_path: Path) -> None:
    """Also when it is examined again, and although readers see an answer only when it is judged."""
    inner = Timed(reads=120, writes=8)
    for _ in range(2):
        exam = await take(inner.model, settings(tmp_path), load_prompts(("en",)), DETECTOR)
        assert exam.grades == {"en": "full"}
        assert exam.reads == pytest.approx(120, rel=0.2)
        assert exam.writes == pytest.approx(8, rel=0.2)
        assert exam.characters == pytest.approx(480, rel=0.2)


async def test_the_speeds_on_a_server_are_told_and_kept(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    """A quick server on a busy machine is slower than it says; the window is that of its list."""
    obeys = obeying()

    def reply(body: dict[str, Any]) -> Reply:
        if "again, word for word" in body["messages"][-1]["content"]:
            return Reply("word " * 30, delay=0.5, piece_delay=0.05)
        return obeys(body)

    llm.reply, llm.models, llm.windows = reply, ["m"], {"m": 6000}
    exam = await take(model, settings(tmp_path), load_prompts(("en",)), DETECTOR)
    assert 0 < exam.characters < 2 * 4100
    assert 0 < exam.writes < 30
    assert exam.window == 6000
    keep(exam, settings(tmp_path))
    assert kept(settings(tmp_path))["m"].characters == exam.characters


async def test_a_model_that_fails_at_the_measurement_has_no_speeds(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    """It is examined all the same; one that fails in its answers isn't."""
    obeys = obeying()
    llm.reply = lambda body: Reply("no", status=500) if "again, word for word" in str(body) else obeys(body)
    exam = await take(model, settings(tmp_path), load_prompts(("en",)), DETECTOR)
    assert (exam.reads, exam.writes, exam.characters) == (0, 0, 0)
    assert exam.grades == {"en": "full"}
    llm.reply = lambda body: Reply("no", status=500) if body.get("stream") else Reply("OK")
    with pytest.raises(ModelError, match="m failed in its exam"):
        await take(model, settings(tmp_path), load_prompts(("en",)), DETECTOR)


async def test_a_model_that_is_away_is_not_examined(llm: FakeLLM, model: Model, tmp_path: Path) -> None:
    llm.reply = lambda _: Reply(status=500)
    with pytest.raises(ModelError):
        await take(model, settings(tmp_path), PROMPTS, DETECTOR)


def result(name: str = "m", **more: Any) -> Exam:
    grades = {"cs": "quotes", "en": "short"}
    given = {
        "form": "short",
        "grades": grades,
        "marks": dict.fromkeys(grades, Marks(12, 8, 2)),
        "left_out": ("refine",),
    }
    return Exam(name, "2026-01-02T03:04:05+00:00", **{**given, **more})


def test_a_result_is_kept_by_model_and_heeded(tmp_path: Path) -> None:
    """The form that the settings name stays, and a setting heeds none."""
    own = settings(tmp_path, llm_url="http://127.0.0.1:9/v1", llm_model="m")
    keep(result("other"), own)
    keep(result(), own)
    assert {name: exam.quoted for name, exam in kept(own).items()} == dict.fromkeys(("other", "m"), frozenset({"cs"}))
    heeding = build(own)
    assistant = heeding.by_id["docs-assistant"]
    assert assistant.plans.left_out == ("refine",)
    (synthesize,) = [step for group in assistant.plans.answer for step in group if isinstance(step, Synthesize)]
    assert synthesize.quoted == {"cs"}
    assert synthesize.settings.tuning.llm_form == "short"
    assert "cs: quotations only (8 of 12 right, 2 invented)" in heeding.exams["m"].said
    full = build(own.model_copy(update={"llm_form": "full"})).by_id["docs-assistant"].plans.answer
    assert [step.settings.tuning.llm_form for group in full for step in group if isinstance(step, Synthesize)] == [
        "full"
    ]
    assert build(own.model_copy(update={"heed_exam": False})).by_id["docs-assistant"].plans.left_out == ()
    assert build(own.model_copy(update={"llm_model": "new"})).by_id["docs-assistant"].plans.left_out == ()


LONG = tuple(hit(n, f"Volumes are kept for {n} days. " + "Each notebook has some memory. " * 40) for n in range(1, 9))


def writer(own: Settings, inner: Timed) -> tuple[Synthesize, float]:
    """The step that writes answers after a start with these settings, and the time limit of a whole answer."""
    assistants = build(own, model=inner.model)
    assistant = assistants.by_id["docs-assistant"]
    (step,) = [step for group in assistant.plans.answer for step in group if isinstance(step, Synthesize)]
    return step, AnswerLimits.of(own, assistants.llm_timeout).whole


async def first_answer(step: Synthesize, whole: float) -> tuple[bool, float]:
    """Whether the model wrote the first answer after a start, and the seconds that it took."""
    clock = asyncio.get_running_loop().time
    began = clock()
    async with asyncio.timeout(whole):
        events = [event async for event in (await step(turn("How long are volumes kept?", hits=LONG)))["events"]]
    return not next(event for event in events if isinstance(event, Done)).extractive, clock() - began


@in_virtual_time
async def test_the_first_question_after_a_start_waits_for_a_model_that_its_exam_found_slow(tmp_path: Path) -> None:
    """Its prompt is shorter, and its time-out longer; without the exam, readers got a quotation after a minute."""
    own, speed = Settings.load(None, store=str(tmp_path)), {"reads": 15.0, "characters": 60.0, "writes": 1.0}
    inner = Timed(reads=15, writes=1)
    inner.reply = lambda _: Reply("Volumes are kept for 1 days [1]. " + "They are kept on a disk. " * 20)
    assert await first_answer(*writer(own, inner)) == (False, 60)
    keep(result("timed", grades={}, marks={}, form="full", left_out=(), **speed), own)
    step, whole = writer(own, inner)
    assert await first_answer(step, whole) == (True, pytest.approx(200, rel=0.3))
    assert whole > own.tuning.llm_max_tokens / inner.writes
    assert step.settings.llm_timeout > 60


@in_virtual_time
async def test_a_time_out_of_the_operator_stays_and_its_prompt_is_read_in_it(tmp_path: Path) -> None:
    """It is half of that of a short prompt; a quick model has the time-out and the passages of before."""
    own = Settings.load(None, store=str(tmp_path), llm_timeout=30.0)
    inner = Timed(reads=60, writes=20)
    inner.reply = lambda _: Reply("Volumes are kept for 1 days [1].")
    assert await first_answer(*writer(own, inner)) == (False, 30)
    none = {"grades": {}, "marks": {}, "form": "full", "left_out": ()}
    keep(result("timed", reads=60.0, characters=240.0, writes=20.0, **none), own)
    step, whole = writer(own, inner)
    assert (step.settings.llm_timeout, whole) == (30, 300)
    written, seconds = await first_answer(step, whole)
    assert written
    assert seconds < 20
    keep(result("timed", reads=3000.0, characters=9000.0, writes=80.0, **none), own)
    default = Settings.load(None, store=str(tmp_path))
    step, whole = writer(default, inner)
    assert (step.settings.llm_timeout, whole) == (60, 600)
    assert sum(len(one.condensed or one.chunk.text) for one in (await step(turn(hits=LONG)))["passages"]) > 8000


def test_a_file_of_results_that_is_no_json_is_named(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("{", "utf-8")
    with pytest.raises(SettingsError, match=r"exams\.json can't be read.*check --exam"):
        build(settings(tmp_path, llm_url="http://127.0.0.1:9/v1", llm_model="m"))


@pytest.mark.parametrize("code", LANGUAGES)
def test_an_exam_asks_what_its_pages_answer(code: str) -> None:
    """As much in each language; no two questions are alike."""
    sheet, english = sheet_of(code, ""), sheet_of("en", "")
    text = "\n".join(page.text for page in sheet.page)
    for ask in sheet.ask:
        for one in ask.answer[:1] if "90" in ask.question else ask.answer:
            assert any(form.casefold() in text.casefold() for form in ([one] if isinstance(one, str) else one)), ask
    assert [len(part) for part in (sheet.page, sheet.ask, sheet.rewrite, sheet.keywords)] == [
        len(part) for part in (english.page, english.ask, english.rewrite, english.keywords)
    ]
    questions = [one.question for one in (*sheet.ask, *sheet.rewrite, *sheet.keywords)]
    assert len(set(questions)) == len(questions)
    assert json.loads(sheet.model_dump_json())

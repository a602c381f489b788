"""The gate for answers: real drops fail, the noise of models doesn't, and nothing incomparable is compared."""

from collections.abc import Mapping
from dataclasses import replace

from app.core.settings import Settings
from eval.answers.score import Answer, outcome_of
from eval.judge import Judgement
from eval.measure.gate import judge
from eval.measure.result import ANSWERS, MEASURES, Outcome, Result, load_result
from eval.questions.cases import Case
from tests.eval.conftest import command

JUDGED = {"set": "s.jsonl", "judge": "j", "criteria": {"faithful": "own"}}


def one(i: int, values: Mapping[str, float], *, doc: bool = True, contestant: str = "us") -> Outcome:
    language = "cs" if i % 2 else "en"
    case = Case(f"q{i}", language, f"question {i}", f"{language}/p{i % 24}" if doc else "", "1")
    answer = Answer(contestant, case.id, "Ten.", ("p",), ("http://l",), 12.0, prompt_tokens=90, completion_tokens=7)
    judgement = Judgement(f"{contestant}\0{case.id}", "faithful", bool(values.get("faithful", 1)))
    return outcome_of(answer, case, {**dict.fromkeys(MEASURES[ANSWERS]), **values}, [judgement])


def result(*faithful: float, **more: float) -> Result:
    """Answers about 24 pages, faithful as told, and 12 questions without an answer, all declined."""
    answered = [one(i, {"language": 1.0, "faithful": value, **more}) for i, value in enumerate(faithful)]
    declined = [one(1000 + i, {"language": 1.0, "refusal": 1.0}, doc=False) for i in range(12)]
    return Result(ANSWERS, (*answered, *declined), JUDGED)


def dropped(after: Result, before: Result) -> set[tuple[str, str]]:
    return {(v.measure, v.language) for v in judge(after, before).verdicts if v.dropped}


def test_less_faithful_answers_fail():
    """A fifth of the answers, one about each page, isn't faithful any more; what is in order isn't blamed."""
    assert dropped(result(*[1.0, 1.0, 0.0, 1.0, 1.0] * 24), result(*[1.0] * 120)) == {
        ("faithful", "cs"), ("faithful", "en"), ("faithful", "mean"),
    }  # fmt: skip


def test_answers_to_what_no_page_answers_fail():
    """It answers now what it declined before."""
    before = result(*[1.0] * 40)
    after = replace(before, outcomes=tuple(
        s if s.answerable else replace(s, values={**s.values, "refusal": 0.0}) for s in before.outcomes
    ))  # fmt: skip
    assert dropped(after, before) == {("refusal", "unanswerable")}


async def test_the_command_tells_answers_from_retrieval(tmp_path, capsys):
    """`--update` keeps a question a line; the same passes with 0, a drop and a failed answer fail with 1."""

    async def gate(*words: str) -> int:
        settings = Settings.load(env_file=None)
        return await command(settings, "gate", *words, "--baseline", tmp_path / "base.json")

    kept = str(tmp_path / "answers.json")
    before = result(*[1.0] * 40)
    before.save(kept)
    assert load_result(kept) == before
    assert await gate(kept, "--update") == 0
    assert sum("question " in line for line in (tmp_path / "base.json").read_text("utf-8").splitlines()) == 52
    assert await gate(kept) == 0
    result(*[1.0, 1.0, 0.0, 0.0] * 10).save(kept)
    assert await gate(kept) == 1
    first, *others = before.outcomes
    broken = replace(first, error="ModelTimeout: late")
    replace(before, outcomes=(broken, *others)).save(kept)
    capsys.readouterr()
    assert await gate(kept) == 1
    assert "1 questions and 0 judgements failed" in capsys.readouterr().out

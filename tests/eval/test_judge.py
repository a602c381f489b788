"""The judge loop against a scripted judge that misbehaves in every way: no row is lost, none is paid for twice."""

import asyncio
import json
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest

from app.models import Model
from app.models.openai import Endpoint
from app.models.openai_chat import OpenAIModel
from eval.files import Cache, EvaluationError
from eval.judge import Judge, Pace, Task, criteria, own_criterion
from tests.fake_llm import Reply, fake_llm

ROOT = Path(__file__).parents[2]
GOOD = own_criterion("good", "GOOD", "BAD", "Is the ANSWER good?")
FENCED = 'Sure!\n```json\n{"reasoning": "because {it} is", "category": "good"}\n```'


def task(text: str, criterion=GOOD) -> Task:
    fields = {"question": "How?", "answer": text, "source": "s {x} %s", "reference": "r"}
    return Task(text, criterion, fields)


ROWS = [
    "fine", "fenced", "thinking", "unsure", "banana", "keyless", "prose", "once", "always", "limited", "hanging", "cut",
]  # fmt: skip


def verdict_of(category: str) -> str:
    return json.dumps({"category": category, "reasoning": "r"})


async def judge(llm, path, rows, **pace):
    """The rows judged by the scripted judge, with what the file has of earlier times."""
    model = Model(OpenAIModel(Endpoint(llm.url, timeout=60), "judge"))
    with Cache(path) as cache:
        found = await Judge(model, cache, Pace(first_wait=0.01, **pace)).judge([task(row) for row in rows])
    await model.close()
    return found


def script(**replies: list[Reply]):
    """Answers by which row's text is in the prompt, one reply after the other; the last one stays."""
    asked: Counter[str] = Counter()

    def reply(body) -> Reply:
        row = next(name for name in replies if f"\n{name}\n" in body["messages"][-1]["content"])
        asked[row] += 1
        return replies[row][min(asked[row], len(replies[row])) - 1]

    return reply, asked


async def test_no_row_is_lost_whatever_the_judge_says(tmp_path):
    """Fences, wrong categories, missing keys, no JSON, 500s, a rate limit, hanging: each row has a verdict or an error."""
    reply, asked = script(
        fine=[Reply(verdict_of("GOOD"))],
        fenced=[Reply(FENCED)],
        thinking=[Reply("<think>BAD? {no}</think>" + verdict_of("bad"))],
        unsure=[Reply(verdict_of("UNKNOWN"))],
        banana=[Reply(verdict_of("BANANA"))],
        keyless=[Reply('{"reasoning": "r"}')],
        prose=[Reply("It is quite good.")],
        once=[Reply("oops", status=500), Reply(verdict_of("BAD"))],
        always=[Reply("oops", status=500)],
        limited=[Reply("slow down", status=429, headers={"Retry-After": "0"}), Reply(verdict_of("GOOD"))],
        hanging=[Reply(delay=60)],
        cut=[Reply('{"category": "GO', finish="length"), Reply(verdict_of("GOOD"))],
    )
    async with fake_llm() as llm:
        llm.reply = reply
        found = {one.row: one for one in await judge(llm, tmp_path / "j.jsonl", ROWS, timeout=1, parallel=6)}
    assert len(found) == 12
    assert {row: one.verdict for row, one in found.items() if not one.error} == {
        "fine": True, "fenced": True, "thinking": False, "unsure": None, "once": False, "limited": True, "cut": True,
    }  # fmt: skip
    errors = {row: one.error for row, one in found.items() if one.error}
    assert set(errors) == {"banana", "keyless", "prose", "always", "hanging"}
    assert "BANANA" in errors["banana"]
    assert "malformed" in errors["keyless"]
    assert "ModelUnavailable" in errors["always"]
    assert "ModelTimeout" in errors["hanging"]
    assert {asked[row] for row in errors} == {3}


async def test_what_was_judged_is_not_asked_again(tmp_path):
    """Good judgements are kept by content, across runs and within one; failed ones are asked anew."""
    reply, asked = script(
        a=[Reply(verdict_of("GOOD"))], b=[Reply("no"), Reply("no"), Reply("no"), Reply(verdict_of("BAD"))]
    )
    async with fake_llm() as llm:
        llm.reply = reply
        for expected in (None, False, False):
            one, same, other = await judge(llm, tmp_path / "j.jsonl", ["a", "a", "b"])
            assert (one.verdict, same.verdict, other.verdict) == (True, True, expected)
    assert asked == {"a": 1, "b": 4}


async def test_pace_is_kept(tmp_path):
    """No more calls at once than allowed, and none earlier than the rate lets it."""
    async with fake_llm() as llm:
        running, most = 0, 0

        def reply(body) -> Reply:
            nonlocal running, most
            running += 1
            most = max(most, running)
            asyncio.get_running_loop().call_later(0.04, done)
            return Reply(verdict_of("GOOD"), delay=0.05)

        def done() -> None:
            nonlocal running
            running -= 1

        llm.reply = reply
        await judge(llm, "", [str(n) for n in range(8)], parallel=2)
        assert most == 2
        started = asyncio.get_running_loop().time()
        await judge(llm, "", [str(n) for n in range(6)], parallel=6, per_minute=600)
        assert asyncio.get_running_loop().time() - started >= 0.5


def test_a_line_cut_off_by_a_kill_is_dropped(tmp_path):
    """What is whole stays, also after later runs wrote behind it; a foreign file is refused."""
    path = tmp_path / "c.jsonl"
    path.write_text('{"key": "a", "v": 1}\n{"key": "b", "v"', encoding="utf-8")
    with Cache(path) as cache:
        assert cache.get("b") is None
        cache.put("c", {"v": 3})
    with Cache(path) as cache:
        assert {key: cache.get(key) for key in "abc"} == {"a": {"v": 1}, "b": None, "c": {"v": 3}}
    path.write_text("question,answer\n", encoding="utf-8")
    with pytest.raises(EvaluationError, match=r"c\.jsonl:1"), Cache(path):
        pass


@pytest.mark.parametrize("evidently", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_criteria_show_the_judge_what_it_needs(evidently):
    """Braces and percent signs of a page break no template; each prompt has the answer, its source and its categories."""
    if evidently and not find_spec("evidently"):
        pytest.skip("needs the extra eval")
    fields = {"question": "Q {0}?", "answer": "A {x} %d", "source": "S {y}", "reference": "R {z}"}
    for name, criterion in criteria(evidently=evidently).items():
        text = "\n".join(message.content for message in criterion.messages(fields))
        assert "A {x} %d" in text
        assert {"faithful": "S {y}", "complete": "R {z}"}.get(name, "Q {0}?") in text
        assert all(category in text for category in criterion.categories)
        assert "category" in text

"""`eval run`: contestants answer side by side, and what was paid for once isn't asked again."""

import asyncio
import json
import os
import re
import sys
from collections import Counter
from pathlib import Path

import lxml.html
import pytest

from app.assistants.assembly import build
from app.core.errors import NoIndex
from app.core.settings import Settings
from app.routes.server import create_app
from eval.questions.own_docs import own_set
from tests.app.routes.scripted import serving
from tests.eval.conftest import command
from tests.fake_llm import Reply, fake_llm

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
async def test_our_assistant_and_a_foreign_api_answer_side_by_side(tmp_path, index, capsys):
    """Answers, judgements and both reports are kept; the same command again asks nobody."""
    async with fake_llm() as llm:
        verdict = '{"category": "UNKNOWN", "reasoning": "?"}'
        llm.reply = lambda body: Reply("Ask somebody." if body["model"] == "old-bot" else verdict)
        answering = index.model_copy(update={"llm_url": llm.url, "llm_model": "ours"})
        with own_set() as path, own_set("docs_unanswerable.jsonl") as none:
            words = [
                "run", path, "--unanswerable", none, "--limit", "20", "--assistant", "docs-assistant",
                "--url", f"old={llm.url},old-bot", "--judge-url", llm.url, "--judge-model", "judge",
                "--out", tmp_path / "out",
            ]  # fmt: skip
            assert await command(answering, *words) == 0
            asked = len(llm.calls)
            assert await command(answering, *words) == 0
    assert len(llm.calls) == asked
    assert sum(call["model"] == "old-bot" for call in llm.calls) == 20
    assert "old minus docs-assistant" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert {row["contestant"] for row in kept["rows"]} == {"docs-assistant", "old"}
    assert kept["failed_judgements"] == kept["failed"] == 0
    tokens = {one["contestant"]: one["prompt_tokens"] for one in kept["efforts"]}
    assert tokens["docs-assistant"] > tokens["old"] == 11  # helper calls count as well
    assert (tmp_path / "out/answers.html").is_file()
    with own_set() as path:
        same = Settings.load(env_file=None, llm_url="http://127.0.0.1:9/v1", llm_model="judge")
        assert await command(same, "run", path, "--judge-url", "x", "--judge-model", "judge", "--out", tmp_path) == 2
    assert "can't judge" in capsys.readouterr().err


async def test_without_an_index_nobody_is_asked(tmp_path):
    """Answers are judged by it, and they may have cost money."""
    async with fake_llm() as llm:
        empty = Settings.load(env_file=None, store=str(tmp_path / "none"))
        with own_set() as path:
            words = ["run", path, "--limit", "1", "--url", f"old={llm.url},old-bot", "--judge-url", llm.url]
            with pytest.raises(NoIndex):
                await command(empty, *words, "--judge-model", "judge", "--out", tmp_path / "out")
        assert llm.calls == []


ASKED = ("en-limits-1", "en-gone-pages-1", "en-question-language-1", "en-question-set-1")
INVENTED = "It costs 7 crowns."


def judged(prompt: str) -> Reply:
    """A judge that compares texts: faithful is what the source has word for word, complete what has the evidence."""
    parts = {name: " ".join(text.split()) for name, text in PART.findall(prompt)}
    answer = re.sub(r" ?\[\d+\]", "", parts["ANSWER"])
    if "SOURCE" in parts:
        told = "I found nothing" in answer or all(one in parts["SOURCE"] for one in answer.split(" And: "))
        return Reply(json.dumps({"category": "FAITHFUL" if told else "UNFAITHFUL"}))
    whole = parts.get("REFERENCE", "?") in answer
    return Reply(json.dumps({"category": "COMPLETE" if whole else "INCOMPLETE" if "REFERENCE" in parts else "UNKNOWN"}))


PART = re.compile(r"-----([A-Z]+) starts-----\n(.*?)\n-----\1 ends-----", re.DOTALL)


async def test_another_assistant_is_judged_by_its_pages_and_the_index(tmp_path, index, monkeypatch):
    """Our own service, over HTTP, stands for the other: the four cells of faithful and complete are known for both.

    Ours refuses the first question, which is faithful and incomplete.
    """
    monkeypatch.setattr("eval.judge.find_spec", lambda _: None)  # the judge reads our wording
    with own_set() as path:
        known = {row["id"]: row for row in map(json.loads, path.read_text("utf-8").splitlines())}
    told = [known[id_]["evidence"] for id_ in ASKED]
    rows = [{**known[id_], "answer": one, "question": f"{one}?"} for id_, one in zip(ASKED, told, strict=True)]
    rows[0]["question"] = "Which quuxes do zorbling flibbers need?"
    said = {
        # the second answer is of a page that isn't cited
        "other": [f"{told[0]} [1]", f"{told[2]} [1]", INVENTED, f"{told[3]} And: {INVENTED}"],
        "ours": ["", f"{told[1]} [1]", f"{told[2]} [1]", INVENTED],
    }
    (questions := tmp_path / "q.jsonl").write_text("\n".join(map(json.dumps, rows)), "utf-8")

    def reply(body: dict) -> Reply:
        text = body["messages"][-1]["content"]
        if body["model"] == "judge":
            return judged(text)
        place = next(i for i, row in enumerate(rows) if row["question"] in text)
        return Reply(said[body["model"]][place] if body.get("stream") else text)

    async with fake_llm() as llm:
        llm.reply = reply
        other = Settings.load(
            env_file=None, store=index.store, llm_url=llm.url, llm_model="other", min_evidence=0, unproven="off"
        )
        unchecked = index.tuning.model_copy(update={"unproven": "off"})
        ours = index.model_copy(update={"llm_url": llm.url, "llm_model": "ours", "tuning": unchecked})
        with serving(create_app(build(other), other)) as base:
            words = [
                "run", questions, "--assistant", "docs-assistant", "--url", f"other={base}/v1,docs-assistant",
                "--judge-url", llm.url, "--judge-model", "judge", "--out", tmp_path / "out",
            ]  # fmt: skip
            assert await command(ours, *words) == 0
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    counts = {
        (name, kind): share["n"] * share["mean"] for kind, own in kept["shares"].items() for name, share in own.items()
    }
    assert counts == {
        ("docs-assistant", "faithful, complete"): 2, ("other", "faithful, complete"): 1,
        ("docs-assistant", "faithful, incomplete"): 1, ("other", "faithful, incomplete"): 1,
        ("docs-assistant", "unfaithful, complete"): 0, ("other", "unfaithful, complete"): 1,
        ("docs-assistant", "unfaithful, incomplete"): 1, ("other", "unfaithful, incomplete"): 1,
    }  # fmt: skip
    assert kept["config"]["cite indexed pages"] == {"other": "4 of 4 answers"}
    page = lxml.html.document_fromstring((tmp_path / "out/answers.html").read_bytes())
    chart = page.xpath("//section[h2='Faithful and complete']")[0]
    assert len(chart.xpath(".//rect[contains(@class, 'fill-')]")) == 8


@pytest.mark.slow
@pytest.mark.server
async def test_a_killed_run_of_answers_goes_on_and_repeats_nothing(tmp_path, own_docs):
    """The command itself, SIGKILL while answers come and again while they are judged: nothing is paid for twice."""
    asked = Counter[str]()

    def reply(body) -> Reply:
        asked[body["model"] + body["messages"][-1]["content"]] += 1
        return Reply("Ask." if body["model"] == "bot" else '{"category": "UNKNOWN", "reasoning": ""}', delay=0.05)

    async with fake_llm() as llm:
        llm.reply = reply
        with own_set() as path:
            words = [
                sys.executable, "-m", "docs_assistant.cli", "eval", "run", str(path), "--limit", "30", "--parallel", "3",
                "--url", f"old={llm.url},bot", "--judge-url", llm.url, "--judge-model", "judge",
                "--out", str(tmp_path / "out"),
            ]  # fmt: skip
            for kill_after in (12, 60, None):
                running = await asyncio.create_subprocess_exec(
                    *words, cwd=ROOT, env={**os.environ, "DOCS_STORE": own_docs.store}, stdout=asyncio.subprocess.PIPE
                )
                while kill_after and asked.total() < kill_after:
                    await asyncio.sleep(0.01)
                if kill_after:
                    running.kill()
                await running.communicate()
    assert running.returncode == 0
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert (len(kept["outcomes"]), kept["failed"], kept["failed_judgements"]) == (30, 0, 0)
    again = sum(n - 1 for n in asked.values())
    assert again <= 2 * 3  # only what was under way when it was killed
    assert sum(key.startswith("bot") for key in asked) == 30

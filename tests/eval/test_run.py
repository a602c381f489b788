"""`eval run`: contestants answer side by side, and what was paid for once isn't asked again."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections import Counter
from pathlib import Path

import pytest

from app.core.settings import Settings
from eval.questions.own_docs import own_set
from tests.eval.conftest import command
from tests.fake_llm import Reply, fake_llm

ROOT = Path(__file__).parents[2]


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
                "--own-criteria", "--out", tmp_path / "out",
            ]  # fmt: skip
            assert await command(answering, *words) == 0
            asked = len(llm.calls)
            assert await command(answering, *words) == 0
    assert len(llm.calls) == asked
    assert sum(call["model"] == "old-bot" for call in llm.calls) == 20
    assert "Against docs-assistant" in capsys.readouterr().out
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert {row["contestant"] for row in kept["rows"]} == {"docs-assistant", "old"}
    assert kept["failed_judgements"] == kept["failed_answers"] == 0
    tokens = {one["contestant"]: one["prompt_tokens"] for one in kept["efforts"]}
    assert tokens["docs-assistant"] > tokens["old"] == 11  # helper calls count as well
    assert (tmp_path / "out/answers.html").is_file()
    with own_set() as path:
        same = Settings.load(env_file=None, llm_url="http://127.0.0.1:9/v1", llm_model="judge")
        assert await command(same, "run", path, "--judge-url", "x", "--judge-model", "judge", "--out", tmp_path) == 2
    assert "can't judge" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.server
async def test_a_killed_run_of_answers_goes_on_and_repeats_nothing(tmp_path, own_index):
    """The command itself, SIGKILL while answers come and again while they are judged: nothing is paid for twice."""
    asked = Counter[str]()

    def reply(body) -> Reply:
        asked[body["model"] + body["messages"][-1]["content"]] += 1
        return Reply("Ask." if body["model"] == "bot" else '{"category": "UNKNOWN", "reasoning": ""}', delay=0.05)

    async with fake_llm() as llm:
        llm.reply = reply
        with own_set() as path:
            words = [
                sys.executable, "-m", "app.cli", "eval", "run", str(path), "--limit", "30", "--parallel", "3",
                "--url", f"old={llm.url},bot", "--judge-url", llm.url, "--judge-model", "judge", "--own-criteria",
                "--out", str(tmp_path / "out"),
            ]  # fmt: skip
            for kill_after in (12, 60, None):
                running = await asyncio.create_subprocess_exec(
                    *words, cwd=ROOT, env={**os.environ, "DOCS_STORE": own_index.store}, stdout=asyncio.subprocess.PIPE
                )
                while kill_after and asked.total() < kill_after:
                    await asyncio.sleep(0.01)
                if kill_after:
                    running.kill()
                await running.communicate()
    assert running.returncode == 0
    kept = json.loads((tmp_path / "out/answers.json").read_text(encoding="utf-8"))
    assert (len(kept["answers"]), kept["failed_answers"], kept["failed_judgements"]) == (30, 0, 0)
    again = sum(n - 1 for n in asked.values())
    assert again <= 2 * 3  # only what was under way when it was killed
    assert sum(key.startswith("bot") for key in asked) == 30

"""Regressions to plant, and what the gate says of them."""

import asyncio
import random
from dataclasses import replace

import pytest

from eval.measure.gate import judge
from eval.measure.result import Result
from ingestion.split import Splitter
from ingestion.workers import Workers

HALVES = 20


def dropped(result: Result, before: Result) -> set[tuple[str, str]]:
    """Measure and language of each real drop; "cs-cross" for questions across languages."""
    verdicts = judge(result, before).verdicts
    return {(v.measure, v.language + ("-cross" if v.cross else "")) for v in verdicts if v.dropped}


def alarms(again: Result, before: Result) -> list[int]:
    """On which of twenty random halves of the questions the gate fails."""
    return [seed for seed in range(HALVES) if dropped(_half(again, seed), _half(before, seed))]


def _half(result: Result, seed: int) -> Result:
    return replace(result, outcomes=tuple(random.Random(seed).sample(result.outcomes, len(result.outcomes) // 2)))


def lose_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks forget the path of their headings."""
    split = Splitter.split

    def headless(self, page):
        return tuple(
            replace(chunk, sections=tuple(replace(section, path=()) for section in chunk.sections))
            for chunk in split(self, page)
        )

    async def here(self, work, /, *arguments, **named):
        return await asyncio.to_thread(work, *arguments, **named)

    monkeypatch.setattr(Splitter, "split", headless)
    monkeypatch.setattr(Workers, "run", here)  # a process of its own would know nothing of it

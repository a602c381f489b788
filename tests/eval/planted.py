"""Regressions to plant, and what the gate says of them."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import pytest

from app.text import analysis
from eval.measure.gate import baseline_of, judge
from eval.measure.result import RetrievalResult
from ingestion.split.splitters import MarkdownSplitter
from ingestion.workers import Workers

HALVES = 20


def dropped(result: RetrievalResult, before: RetrievalResult) -> set[tuple[str, str]]:
    """Measure and language of each real drop; "cs-cross" for questions across languages."""
    verdicts = judge(result, baseline_of(before)).verdicts
    return {(v.measure, v.language + ("-cross" if v.cross else "")) for v in verdicts if v.dropped}


def alarms(again: RetrievalResult, before: RetrievalResult) -> list[int]:
    """On which of twenty random halves of the questions the gate fails."""
    return [seed for seed in range(HALVES) if dropped(_half(again, seed), _half(before, seed))]


def _half(result: RetrievalResult, seed: int) -> RetrievalResult:
    return replace(result, cases=tuple(random.Random(seed).sample(result.cases, len(result.cases) // 2)))


def lose_headings(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks forget the path of their headings."""
    split = MarkdownSplitter.split

    def headless(self, page, vectors=()):
        return tuple(
            replace(chunk, sections=tuple(replace(section, path=()) for section in chunk.sections))
            for chunk in split(self, page, vectors)
        )

    async def here(self, work, /, *arguments, **named):
        return await asyncio.to_thread(work, *arguments, **named)

    monkeypatch.setattr(MarkdownSplitter, "split", headless)
    monkeypatch.setattr(Workers, "run", here)  # a process of its own would know nothing of it


@contextmanager
def without_czech_analysis() -> Iterator[None]:
    """Czech words count only as they are written."""
    tokens = analysis._word_tokens

    def plain(word: str, language: str) -> Iterator[str]:
        if language == "cs":
            yield analysis.fold(word)
        else:
            yield from tokens(word, language)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(analysis, "_word_tokens", plain)
        analysis._kept_tokens.cache_clear()
        yield
    analysis._kept_tokens.cache_clear()

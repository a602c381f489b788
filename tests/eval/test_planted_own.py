"""Regressions planted into our own documentation's index: the gate catches each, wherever the checkout lies.

A lost Czech analysis costs too little on so few pages to be told from noise; the shared set shows it (test_planted.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.commands.options import AssistantFinder as Finder
from eval.measure.result import RetrievalResult
from eval.measure.retrieval import Plan, evaluate
from eval.questions.cases import Case, load_cases
from eval.questions.own_docs import indexed_docs, own_set
from tests.eval.planted import alarms, dropped, lose_headings

pytestmark = [pytest.mark.server, pytest.mark.slow]


def measure(*searches: Mapping[str, Any]) -> list[RetrievalResult]:
    """Our documentation indexed anew, and our questions asked with each of these settings of the search."""

    async def run() -> list[RetrievalResult]:
        with own_set() as path:
            cases = load_cases(path)
        async with indexed_docs(Settings.load(env_file=None)) as settings:
            return [await ask(settings.model_copy(update=dict(one)), cases) for one in searches or ({},)]

    return asyncio.run(run())


async def ask(settings: Settings, cases: Sequence[Case]) -> RetrievalResult:
    async with opened(settings) as assistants:
        return await evaluate(Finder(assistants), cases, Plan())


@dataclass(frozen=True)
class Measured:
    """One index, asked as it is set and by vectors alone."""

    sound: RetrievalResult
    wordless: RetrievalResult


@pytest.fixture(scope="module")
def measured() -> Iterator[Measured]:
    logging.getLogger("app").setLevel(logging.ERROR)
    yield Measured(*measure({}, {"vector_weight": {"*": 1.0}}))
    logging.getLogger("app").setLevel(logging.NOTSET)


def test_without_a_change_twenty_random_halves_pass(measured: Measured):
    """Indexed anew and asked anew, half of the questions at a time: no false alarm."""
    assert alarms(measure()[0], measured.sound) == []


def test_lost_words_are_caught(measured: Measured):
    """Vectors alone: the chunk with the evidence is lost."""
    # swapped weights cost .03 here, which is inside the noise of so few pages, and English loses little more; the shared set shows them
    found = dropped(measured.wordless, measured.sound)
    assert {("page", "mean"), ("chunk", "cs")} <= found


def test_lost_heading_paths_are_caught(measured: Measured, monkeypatch):
    """Pages are found as before, but no link leads to the right section."""
    lose_headings(monkeypatch)
    found = dropped(measure()[0], measured.sound)
    assert ("section", "mean") in found

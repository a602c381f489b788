"""Regressions planted into our own documentation's index: the gate catches each, wherever the checkout lies."""

import asyncio
import logging
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from app.assistants.assembly import opened
from app.core.settings import Settings
from eval.measure.result import Result
from eval.measure.retrieval import Finder, Plan, evaluate
from eval.questions.cases import load_cases
from eval.questions.own_docs import indexed_docs, own_set
from tests.eval.planted import alarms, dropped, lose_headings

pytestmark = [pytest.mark.server, pytest.mark.slow]


async def ask(settings: Settings) -> Result:
    """Our questions, asked with these settings."""
    with own_set() as path:
        cases = load_cases(path)
    async with opened(settings) as assistants:
        return await evaluate(Finder(assistants), cases, Plan())


def measured_anew() -> Result:
    """Our documentation indexed anew, and our questions asked."""

    async def run() -> Result:
        async with indexed_docs(Settings.load(env_file=None)) as settings:
            return await ask(settings)

    return asyncio.run(run())


@dataclass(frozen=True)
class Measured:
    """One index, asked as it is set and by vectors alone."""

    sound: Result
    wordless: Result


@pytest.fixture(scope="module")
def measured(own_docs: Settings) -> Iterator[Measured]:
    logging.getLogger("app").setLevel(logging.ERROR)
    wordless = own_docs.model_copy(update={"vector_weight": {"*": 1.0}})
    yield Measured(asyncio.run(ask(own_docs)), asyncio.run(ask(wordless)))
    logging.getLogger("app").setLevel(logging.NOTSET)


def test_without_a_change_twenty_random_halves_pass(measured: Measured):
    """Indexed anew and asked anew, half of the questions at a time: no false alarm."""
    assert alarms(measured_anew(), measured.sound) == []


def test_lost_words_are_caught(measured: Measured):
    """Vectors alone: the chunk with the evidence is lost."""
    # swapped weights cost .03 here, which is inside the noise of so few pages, and English loses little more
    found = dropped(measured.wordless, measured.sound)
    assert {("rr", "mean"), ("chunk", "cs")} <= found


def test_lost_heading_paths_are_caught(measured: Measured, monkeypatch):
    """Pages are found as before, but no link leads to the right section."""
    lose_headings(monkeypatch)
    found = dropped(measured_anew(), measured.sound)
    assert ("section", "mean") in found

"""Regressions planted into our own documentation's index: the gate catches each, wherever the checkout lies.

A lost Czech analysis costs too little on so few pages to be told from noise; the shared set shows it (test_planted.py).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest

from app.core.settings import Settings
from eval.cases import load_cases
from eval.commands.docs import Finder
from eval.own import own_assistants, own_set
from eval.result import RetrievalResult
from eval.retrieval import Plan, evaluate
from tests.eval.planted import alarms, dropped, lose_headings

pytestmark = pytest.mark.server


def measure(**settings: Any) -> RetrievalResult:
    """Our documentation indexed anew and our questions asked."""

    async def run() -> RetrievalResult:
        with own_set() as path:
            async with own_assistants(Settings.load(env_file=None, **settings)) as assistants:
                return await evaluate(Finder(assistants), load_cases(path), Plan())

    return asyncio.run(run())


@pytest.fixture(scope="module")
def sound() -> Iterator[RetrievalResult]:
    logging.getLogger("app").setLevel(logging.ERROR)
    yield measure()
    logging.getLogger("app").setLevel(logging.NOTSET)


def test_without_a_change_twenty_random_halves_pass(sound: RetrievalResult):
    """Indexed anew and asked anew, half of the questions at a time: no false alarm."""
    assert alarms(measure(), sound) == []


def test_lost_words_are_caught(sound: RetrievalResult):
    """Vectors alone: both languages lose the chunk with the evidence."""
    # swapped weights cost .03 here, which is inside the noise of so few pages; the shared set shows them
    found = dropped(measure(vector_weight={"*": 1.0}), sound)
    assert {("page", "mean"), ("chunk", "cs"), ("chunk", "en")} <= found


def test_lost_heading_paths_are_caught(sound: RetrievalResult, monkeypatch):
    """Pages are found as before, but no link leads to the right section."""
    lose_headings(monkeypatch)
    found = dropped(measure(), sound)
    assert ("section", "mean") in found

"""The check that no regular expression takes more than linear time finds those that do."""

import re
import signal

import pytest

from bench import patterns
from bench.patterns import Used, found

RULE = r"^(?:\s*(?:!\[[^\]\n]*\]\([^)\n]*\)|\*{3,}|-{3,}|_{3,}|<[^>\n]*>|<br\s*/?>))+\s*$"


@pytest.fixture(autouse=True)
def interrupted():
    """As the check has it when it runs by itself."""
    previous = signal.signal(signal.SIGVTALRM, patterns.interrupt)
    yield
    signal.signal(signal.SIGVTALRM, previous)


def test_a_pattern_that_takes_more_than_linear_time_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first is one that stopped the service for a minute with a table's rule; linear ones are no problem."""
    monkeypatch.setattr(patterns, "SIZES", (5_000, 20_000))
    monkeypatch.setattr(patterns, "LIMIT", 0.2)
    for pattern, way in ((RULE, "match"), (r"<source\b([^>]*)>(.*?)</source>", "finditer")):
        assert "what linear growth would be" in Used("here", re.compile(pattern, re.DOTALL), way).problem()
    for pattern, way in ((r"(?<!\s)\s++[.,]", "finditer"), (r"(?:-{3,}+|\s++)++$", "match")):
        assert Used("here", re.compile(pattern), way).problem() == ""


def test_patterns_of_modules_of_calls_and_of_functions_are_found_and_one_that_is_built_needs_an_example(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    used = {(each.place, each.way) for each in found()}
    assert ("app.text.reading._NOTHING", "match") in used
    assert ("app.text.language.parse", "match") in used
    assert ("app.pipeline.conversation._heading", "fullmatch") in used
    assert len(used) > 150
    monkeypatch.setattr(patterns, "BUILT", {})
    with pytest.raises(LookupError, match=r"BUILT in bench/built\.py has no example"):
        found(["app.proof"])

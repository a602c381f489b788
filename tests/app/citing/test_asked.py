"""What is quoted of a question that points back: its new words decide, and the earlier question says what they are about."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.citing.asked import weights_of
from app.citing.sections import Found, features_of, ranked, sure
from app.core.prompts import load_prompts
from app.core.types import Hit, Legs
from tests.app.pipeline.turns import hit, turn

ENGLISH = load_prompts(("en",)).language("en")
BEFORE = "How do I delete a site?"
SITES = hit(1, "You delete a site with one command.", title="Sites")
PAGES = replace(hit(2, "They leave the index in the next run.", path=("Removed pages",)), fused=0.7)
RIVAL = replace(hit(3, "Nothing is said here."), fused=0.9)


async def quoted(question: str, *hits: Hit, referred: str = BEFORE) -> tuple[Found, bool]:
    """The unit that is quoted first, and whether it is surely the answer."""
    weights = await weights_of(turn(question, hits=hits, referred=referred), ENGLISH)
    found = ranked(hits, weights, ENGLISH)
    return found[0], sure(features_of(found, weights, Legs()))


async def test_the_sentence_with_the_new_words_is_quoted_of_one_text() -> None:
    """Another sentence has more words of the earlier question."""
    text = "You delete a site from the index with one command, which is quite short.\n\nThe archives are kept for ten years and more."
    found, _ = await quoted("and archives", hit(1, text))
    assert text[found.unit.start :].startswith("The archives")


@pytest.mark.parametrize("question", ["and removed pages", "what about removed pages?"])
async def test_a_section_headed_by_the_new_words_comes_first(question: str) -> None:
    """It is what is asked, though the earlier question has its own section."""
    found, _ = await quoted(question, SITES, PAGES)
    assert found.hit == PAGES


async def test_the_answer_to_the_earlier_question_is_not_surely_that_to_the_next_one() -> None:
    """It has all words but the new one."""
    for question, referred, certain in ((BEFORE, "", True), ("and archives", BEFORE, False)):
        found, is_sure = await quoted(question, SITES, RIVAL, referred=referred)
        assert (found.hit, is_sure) == (SITES, certain)


async def test_a_question_without_new_words_is_about_the_earlier_one() -> None:
    """Words that ask for more of the same find an example of anything."""
    example = hit(2, "This example shows some more examples in detail, for example.", title="Example")
    found, _ = await quoted("and an example?", SITES, example)
    assert found.hit == SITES

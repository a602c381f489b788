"""Sections that are headed by what was asked come first."""

from __future__ import annotations

from dataclasses import replace

import pytest

from app.citing.sections import best_section, headed_first, section_reason, stems
from app.core.prompts import load_prompts
from app.core.types import Hit, Section
from tests.app.pipeline.turns import hit

PROMPTS = load_prompts(("cs", "en"))
HITS: tuple[Hit, ...] = (
    hit(1, path=("Indexing", "Can pages of another site be translated?"), title="Indexing"),
    hit(2, path=("Start", "How do I index another site?"), title="Start"),
    hit(3, path=("Začínáme", "Jak zaindexuji jiný web?"), title="Začínáme"),
    hit(4, path=("Storage", "Snapshots"), title="Storage of projects"),
    hit(5, path=("Languages", "Add a language"), title="Languages"),
    hit(6, path=("How it works",), title="How it works"),
    hit(7, path=("FAQ", "How do I add a language?"), title="FAQ"),
)


@pytest.mark.parametrize(
    ("question", "language", "first"),
    [
        ("How do I index another site?", "en", 2),
        ("index another site", "en", 2),
        ("jak zaindexuji jiny web", "cs", 3),
        ("storage of projects", "en", 4),
        ("How do I index another site of mine?", "en", 1),
        ("How do I index a site?", "en", 2),
        ("Snapshots", "en", 1),
        ("How it works", "en", 6),
        ("add a language", "en", 5),
        ("How do I add a language?", "en", 7),
        ("How?", "en", 1),
        ("", "en", 1),
    ],
)
def test_the_very_words_of_a_heading_lead_to_it(question: str, language: str, first: int) -> None:
    """Function words, diacritics and capitals don't matter; a word more is another question, as is a single one.

    The heading with the same function words comes first, one that says more after those that say as much.
    """
    found = headed_first(HITS, question, PROMPTS.language(language))
    assert found[0].chunk.id == f"c{first}"
    assert set(found) == set(HITS)


def test_of_sections_that_say_as_much_the_one_headed_by_it_is_linked() -> None:
    """The first section ends with a link to how another site is indexed; the second one is about it."""
    first, second = "Prints how to index another site.", "Another site: index it with `run`."
    sections = (Section(0, ("Start", "Run it"), "run"), Section(len(first), ("Start", "Index another site"), "other"))
    chunk = replace(hit(1).chunk, text=first + second, sections=sections)
    assert best_section(chunk, stems("index another site")) == sections[1]
    assert "words of the question: Index, another, site" in section_reason(chunk, stems("index another site"))

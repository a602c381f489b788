"""Readers know a documentation, and no passages or context: an answer's first line is told in their words."""

from __future__ import annotations

from app.citing.citations import Wording

WORDS = {"passage": "page", "passages": "pages", "context": "documentation"}
SAID = {
    "The passages do not mention it.": "The pages do not mention it.",
    "Passages say nothing in the given context": "Pages say nothing in the given documentation",
    "See [passage 1] and (passage 2), passage [3], context-aware passagesX.": (
        "See [passage 1] and (passage 2), passage [3], context-aware passagesX."
    ),
    "Run `context`: the passages say so.": "Run `context`: the passages say so.",
    "Yes.\nThe passages say so.": "Yes.\nThe passages say so.",
    f"{'Well ' * 100}passages": f"{'Well ' * 100}passages",
}


def said(text: str, size: int, known: str = "") -> str:
    wording = Wording(WORDS, lambda: known)
    pieces = [wording.feed(text[at : at + size]) for at in range(0, len(text), size)]
    return "".join([*pieces, wording.rest()])


def test_retrieval_s_words_are_replaced_in_the_first_line_however_it_is_cut() -> None:
    for size in (1, 3, 7, 1000):
        assert {text: said(text, size) for text in SAID} == SAID


def test_a_word_of_the_question_or_of_a_page_stays() -> None:
    assert said("A context has a name.", 4, known="kubectl config use-context") == "A context has a name."

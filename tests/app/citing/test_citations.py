"""Citations stand where readers expect them, and an answer's first line is told in the words of readers, however the stream is cut."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from app.citing.citations import Citations
from app.citing.placement import LONGEST_WAIT, Placement, Wording
from app.core.prompts import load_prompts
from app.text.answer_language import is_refusal
from app.text.segments import Line, Segment, Segmenter

PAGES = ("a", "b", "a", "c")  # of the passages 1 to 4
WORDS = frozenset({"passage", "source"})
LONG = "```\n" + "echo 1\n" * (LONGEST_WAIT // 7 + 1) + "```\n"


def segments_of(text: str, size: int) -> Iterator[Segment]:
    segmenter = Segmenter()
    for at in range(0, len(text), size):
        yield from segmenter.feed(text[at : at + size])
    yield from segmenter.rest()


def placed(text: str, size: int = 10_000) -> tuple[str, set[int]]:
    citations = Citations(PAGES, words=WORDS)
    made = Placement(citations)
    said = Line(made).feed(segments_of(text, size), ends=True)
    citations.count_hidden()
    return said, citations.used


CASES = [
    ("A [1][3], B [2] [2]. C [1, 3][4]", "A [1], B [2]. C [1, 3][4]"),
    ("A [1]. [3] says B [1]", "A [1]. [3] says B [1]"),
    ("A [1]. [3]. B", "A [1].  B"),
    ("f[1][1], `a[1] [1]` and [x][x]", "f[1][1], `a[1] [1]` and [x][x]"),
    ("Run:\n\n```sh\nls\n```\n\n[1][2]\n\nThen", "Run: [1][2]\n\n```sh\nls\n```\n\n\nThen"),
    ("1. Run:\n   ```sh\n   ls\n   ```\n   (Passage [1])\n2. More", "1. Run: [1]\n   ```sh\n   ls\n   ```\n2. More"),
    ("Run:\n```\nls\n``` [1]\nMore", "Run: [1]\n```\nls\n```\nMore"),
    ("It is 4.\n\n[1]\n\nMore", "It is 4. [1]\n\n\nMore"),
    ("Run [1]:\n```\nls\n```\n[1]\nMore", "Run [1]:\n```\nls\n```\nMore"),
    (f"Run:\n{LONG}[1]\nMore", f"Run:\n{LONG}More"),
    ("| a |\n|---|\n| b |\n\n[1]", "| a |\n|---|\n| b |\n\n[1]"),
    ("Passage [1] says so", "Passage [1] says so"),
]  # fmt: skip


def test_a_citation_stands_once_at_its_sentence() -> None:
    """Runs name a page once; a line of citations moves up to its sentence; values, code and tables stay as they are."""
    for text, expected in CASES:
        for size in (1, 2, 3, 7, 10_000):
            assert placed(text, size)[0] == expected, (text, size)


def test_passages_whose_citation_is_left_out_are_used_all_the_same() -> None:
    for text, left_out in (("A [1][3]", {3}), (f"Run:\n{LONG}[1]\n\n[4]", {1, 4}), ("A [3].\n\n[1]", {1})):
        assert placed(text)[1] == left_out, text


def test_only_code_below_an_uncited_sentence_waits() -> None:
    """Words go out as they come; code waits for what follows, unless its sentence cites or it is long."""
    for sentence, waits in (("Run this:", True), ("Run this [1]:", False), ("", False)):
        made, segmenter = Placement(Citations(PAGES)), Segmenter()
        text = f"{sentence}\n```\n" + "echo 1\n" * 20
        out = "".join(Line(made).feed(segmenter.feed(sign)) for sign in text)
        assert out.startswith(sentence)
        assert (len(text) - len(out) > 100) == waits, sentence
    made = Placement(Citations(PAGES))
    assert len(Line(made).feed(segments_of(f"Run:\n{LONG}", 1))) > LONGEST_WAIT


REPLACED = {"passage": "page", "passages": "pages", "context": "documentation"}
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
    wording = Wording(REPLACED, lambda: known)
    return Line(wording).feed(segments_of(text, size), ends=True)


def test_retrieval_s_words_are_replaced_in_the_first_line_however_it_is_cut() -> None:
    for size in (1, 3, 7, 1000):
        assert {text: said(text, size) for text in SAID} == SAID


def test_a_word_of_the_question_or_of_a_page_stays() -> None:
    assert said("A context has a name.", 4, known="kubectl config use-context") == "A context has a name."


@pytest.mark.parametrize("language", ["cs", "de", "en"])
def test_the_sentence_that_the_prompts_ask_for_is_a_refusal(language: str) -> None:
    """Whatever its case, spaces, quotation marks and end; only at the beginning."""
    prompts = load_prompts(("cs", "de", "en"), "")
    shipped, sentence = prompts.languages[language], prompts.languages[language].replies.no_answer
    for name in ("synthesize", "synthesize_short"):
        assert sentence in prompts.render(language, name, passages="")
    for said in (sentence, f"**{sentence}**", f"„{sentence.upper()[:-1]}“", f"\n {sentence.replace(' ', '  ')} [1]"):
        assert is_refusal(said, shipped), said
    assert not is_refusal(f"A bucket takes 4 GB [1]. {sentence}", shipped)
    assert not is_refusal(sentence.split()[0], shipped)

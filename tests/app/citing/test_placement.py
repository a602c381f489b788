"""Citations stand where readers expect them, however the stream is cut, and nothing waits that needn't."""

from __future__ import annotations

from app.citing.citations import LONGEST_WAIT, Citations, Placement

PAGES = ("a", "b", "a", "c")  # of the passages 1 to 4
WORDS = frozenset({"passage", "source"})
LONG = "```\n" + "echo 1\n" * (LONGEST_WAIT // 7 + 1) + "```\n"


def placed(text: str, size: int = 10_000) -> tuple[str, set[int]]:
    citations = Citations(PAGES, words=WORDS)
    made = Placement(citations)
    said = "".join([*(made.feed(text[at : at + size]) for at in range(0, len(text), size)), made.rest()])
    made.count_dropped()
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
        made = Placement(Citations(PAGES))
        text = f"{sentence}\n```\n" + "echo 1\n" * 20
        out = "".join(made.feed(sign) for sign in text)
        assert out.startswith(sentence)
        assert (len(text) - len(out) > 100) == waits, sentence
    made = Placement(Citations(PAGES))
    assert len("".join(made.feed(sign) for sign in f"Run:\n{LONG}")) > LONGEST_WAIT

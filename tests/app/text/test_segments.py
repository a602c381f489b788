"""Answers in segments, and the line of judges that these pass."""

from __future__ import annotations

import pytest

from app.text.segments import Line, Segment, Segmenter, segments

TEXTS = [
    "# Backups\n\nThey run at night [1]. They are kept for 30 days. [2] That is all.\n- One item. Another sentence\n",
    "Run this:\n\n```sh\nbackup --all\n```\n\n    indented = 1\n\n| a | b |\n|---|---|\n| 1 | 2. More |\n",
    "Above.\n\nA first sentence. A second one that goes on\n    with an indent. And so on.\n",
    "- An item. Its second sentence\n\n    More of the item. Its end.\n",
]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("size", [1, 3, 7])
def test_where_a_text_is_cut_depends_on_the_text_alone(text: str, size: int) -> None:
    segmenter = Segmenter()
    cut = [one for at in range(0, len(text), size) for one in segmenter.feed(text[at : at + size])]
    cut += segmenter.rest()
    assert cut == [*segments(text)]
    assert "".join(one.text for one in cut) == text


class Late:
    """Holds each segment until the next one has come, and signs it."""

    def __init__(self, sign: str) -> None:
        self._sign, self._held = sign, list[Segment]()

    def feed(self, segment: Segment) -> list[Segment]:
        held, self._held = self._held, [segment._replace(text=f"{segment.text}{self._sign}")]
        return held

    def rest(self) -> list[Segment]:
        held, self._held = self._held, []
        return held


def test_a_judge_gets_what_the_one_before_it_lets_pass() -> None:
    """Also at the end, where each gives what it has held."""
    line = Line(Late("a"), Late("b"))
    said = [Segment("1"), Segment("2"), Segment("3"), Segment("4")]
    assert [line.feed(said[:1]), line.feed(said[1:3]), line.feed(said[3:], ends=True)] == ["", "1ab", "2ab3ab4ab"]
    assert line.feed(said[:1], ends=True) == "1ab"

"""Thinking never reaches the answer, however the stream is cut."""

import pytest

from app.core.turn import Reasoning, Text
from app.models.responses import ThinkFilter


def run(pieces: list[str]) -> tuple[str, str]:
    think = ThinkFilter()
    events = [event for piece in pieces for event in think.feed(piece)] + think.flush()
    answer = "".join(event.text for event in events if isinstance(event, Text))
    return answer, "".join(event.text for event in events if isinstance(event, Reasoning))


@pytest.mark.parametrize("size", [1, 2, 3, 7, 100])
def test_thinking_is_split_off_at_every_piece_size(size: int) -> None:
    """The same answer comes out whether the tags arrive whole or letter by letter."""
    text = "\n<think>Hm, < 5 GB </thin or so.</think>\n\nThe limit is 5 GB."
    pieces = [text[i : i + size] for i in range(0, len(text), size)]
    assert run(pieces) == ("The limit is 5 GB.", "Hm, < 5 GB </thin or so.")


@pytest.mark.parametrize(
    "text", ["plain answer", "  indented", "a <think> quoted later </think> stays", "<thin", "<b>"]
)
def test_text_without_leading_thinking_is_untouched(text: str) -> None:
    """Only thinking at the very start is thinking: a page about it may quote the tag."""
    assert run(list(text)) == (text, "")
    assert ThinkFilter.remove(text) == text


def test_unclosed_thinking_is_no_answer() -> None:
    """A model cut off while it thinks has answered nothing."""
    assert run(["<think>still", " going"]) == ("", "still going")
    assert ThinkFilter.remove("<think>still going") == ""


def test_remove_handles_a_swallowed_opening_tag() -> None:
    """Some chat templates start inside the thinking and only the closing tag arrives."""
    assert ThinkFilter.remove("reasons</think>\nAnswer") == "Answer"
    assert ThinkFilter.remove("<think>a</think>Answer with <think>x</think>") == "Answer with <think>x</think>"

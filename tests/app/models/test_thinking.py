"""Thinking never reaches the answer, however the stream is cut."""

import pytest

from app.core.turn import Reasoning, Text
from app.models.reasoning import ThinkFilter


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


START, CHANNEL, MESSAGE, END = "<|start|>assistant", "<|channel|>", "<|message|>", "<|end|>"
ANALYSIS = f"{CHANNEL}analysis{MESSAGE}Let me see < 5."
COMMENTARY = f"{START}{CHANNEL}commentary to=functions.search <|constrain|>json{MESSAGE}{{}}"
QUOTED = f"Write `{CHANNEL}final{MESSAGE}` and `{END}` in it: 5 <|b|>."


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
@pytest.mark.parametrize(
    ("text", "answer", "thought"),
    [
        (f"{ANALYSIS}{END}{START}{CHANNEL}final{MESSAGE}The limit is 5 GB.", "The limit is 5 GB.", "Let me see < 5."),
        (f"{ANALYSIS}{END}{START}{CHANNEL}final{MESSAGE}5 GB.<|return|>", "5 GB.", "Let me see < 5."),
        (f"{START}{ANALYSIS}{START}{CHANNEL}final{MESSAGE}5 GB.{END}", "5 GB.", "Let me see < 5."),
        (f"\n{ANALYSIS}{END}{COMMENTARY}<|call|>{START}{CHANNEL}final{MESSAGE}5 GB.", "5 GB.", "Let me see < 5.{}"),
        (f"{CHANNEL}final{MESSAGE}5 GB.", "5 GB.", ""),
        (f"{CHANNEL}final <|constrain|>text{MESSAGE}5{END}{START}{CHANNEL}final{MESSAGE} GB.", "5 GB.", ""),
        (f"{ANALYSIS}{END}{START}{CHANNEL}final{MESSAGE}{QUOTED}<|return|>", QUOTED, "Let me see < 5."),
        (ANALYSIS, "", "Let me see < 5."),
        (f"{CHANNEL}anal", "", ""),
    ],
)
def test_of_the_channels_of_gpt_oss_the_final_one_is_the_answer(
    text: str, answer: str, thought: str, size: int
) -> None:
    """However the stream is cut, and in whole answers; a page about the format is quoted as it is."""
    assert run([text[i : i + size] for i in range(0, len(text), size)]) == (answer, thought)
    assert ThinkFilter.remove(text) == answer


@pytest.mark.parametrize(
    "text",
    [
        "analysis",
        "analysis of assistantfinal",
        "<|b|> is no mark",
        "<|chan",
        f"The mark {CHANNEL} comes before analysis{MESSAGE}.",
    ],
)
def test_text_that_only_looks_like_a_channel_is_untouched(text: str) -> None:
    assert run(list(text)) == (text, "")
    assert ThinkFilter.remove(text) == text


@pytest.mark.parametrize(
    ("pieces", "answer"),
    [
        (["analysis", "We", " see.", "assistant", "final", "5 GB of assistant", "final."], "5 GB of assistantfinal."),
        (["analysisWe see.assistantfinal5 GB."], "5 GB."),
        (["analysis", "We", " see."], ""),
    ],
)
def test_channels_without_their_marks_are_told_apart_by_their_names(pieces: list[str], answer: str) -> None:
    """Some servers leave out what isn't text, so that the names run into it; a model writes each name in one piece."""
    assert run(pieces) == (answer, "We see.")
    assert ThinkFilter.remove("".join(pieces)) == answer


def test_no_answer_waits_for_what_its_first_letters_may_become() -> None:
    assert ThinkFilter().feed("a") == [Text("a")]

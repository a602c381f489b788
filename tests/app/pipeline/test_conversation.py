"""The earlier conversation as helpers see it: what was said, without what we put around it."""

from __future__ import annotations

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message
from app.pipeline.conversation import KEPT_CHARACTERS, earlier

PROMPTS = load_prompts(("cs", "en"))


def said(answer: str) -> list[str]:
    """What is left of an answer in the middle of a conversation."""
    messages = (Message("user", "Q"), Message("assistant", answer), Message("user", "And?"))
    return [message.content for message in earlier(messages, PROMPTS)[1:]]


@pytest.mark.parametrize(
    "answer",
    [
        "Yes [1].\n\n**Sources**\n\n1. [A](https://x)",
        "Yes [1, 2].\r\n\r\n**Sources**\r\n\r\n1. [A](https://x)\r\n2. [B](https://y)",
        "Yes.\n\nSources:\n- [A](https://x)",
        "Yes.\n\n## Sources\n\n- A",
        "Yes.\n**Sources:**\n\n- [A](https://x)",
        "Yes.\n\n**Zdroje**\n1. [A](https://x)",
        "Yes.\n\nMožná souvisejí tyto stránky:\n\n- [Kvóty](https://x/r)",
        "Yes.\n\n**Sources**",
        "**Sources**\n\n1. [A](https://x)\n\nYes.",
    ],
)
def test_our_lists_and_numbers_are_left_out(answer: str) -> None:
    """In whatever form a model imitates them: the numbers would point to passages of today."""
    assert said(answer) == ["Yes."]


@pytest.mark.parametrize(
    "answer",
    [
        "Files are\n\n**Sources**\n\nof truth",
        "Run:\n\n```sh\necho ${array[1]} # [2]\n```",
        "Call `list[0]` first.",
        "1. Open it.\n2. Close it.",
        "See [2](https://docs.example.org).",
        "A \x007\x00 and \x00" + "9" * 500 + "\x00, then `b[1]`.",
    ],
)
def test_what_an_answer_says_stays(answer: str) -> None:
    assert said(answer) == [answer]


def test_an_answer_of_a_list_alone_is_no_message() -> None:
    assert said("**Sources**\n\n1. [A](https://x)") == []


def test_long_answers_are_cut() -> None:
    assert len(said("word " * 1000)[0]) == KEPT_CHARACTERS

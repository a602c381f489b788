"""The earlier conversation, as the language model may see it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from app.core.analysis import fold
from app.core.prompts import Language, Prompts
from app.core.turn import Message, Turn

KEPT_MESSAGES = 6
KEPT_CHARACTERS = 1500
FEWEST_TELLING = 2


def earlier(messages: Sequence[Message], prompts: Prompts) -> tuple[Message, ...]:
    """The last messages before the question, our own source lists removed, each cut to a sensible length."""
    last_question = max((i for i, m in enumerate(messages) if m.role == "user"), default=0)
    talk = [m for m in messages[:last_question] if m.role in {"user", "assistant"} and m.content.strip()]
    return tuple(Message(m.role, _clean(m, prompts)[:KEPT_CHARACTERS]) for m in talk[-KEPT_MESSAGES:])


def _clean(message: Message, prompts: Prompts) -> str:
    if message.role != "assistant":
        return message.content.strip()
    headings = "|".join(re.escape(language.sources) for language in prompts.languages.values())
    return re.split(rf"\n\s*\*\*(?:{headings})\*\*\s*\n", message.content)[0].strip()


def referred(messages: Sequence[Message], language: Language) -> str:
    """The earlier question that the last one refers to; empty when it stands on its own.

    It refers when it says so ("and ...", "it", "there") or names next to nothing itself ("For how long?").
    """
    questions = [m.content.strip() for m in messages if m.role == "user" and m.content.strip()]
    if len(questions) < 2:
        return ""
    words = [fold(word) for word in re.findall(r"[^\W_]+", questions[-1])]
    telling = [word for word in words if word not in language.stopwords]
    refers = (words[:1] and words[0] in language.openers) or language.references.intersection(words)
    return questions[-2] if refers or len(telling) < FEWEST_TELLING else ""


def prompted(system: str, turn: Turn, prompts: Prompts) -> list[Message]:
    """What a helper is asked: its prompt, and the question below the conversation that it may refer to."""
    history = earlier(turn.request.messages, prompts)
    return [Message("system", system), Message("user", conversation(turn.question, history))]


def conversation(question: str, history: Sequence[Message]) -> str:
    """The question, below the conversation that it may refer to; without one, the question alone."""
    if not history:
        return question
    lines = [f"{m.role}: {m.content}" for m in history]
    return "\n".join(["<conversation>", *lines, "</conversation>", "", question])

"""Small talk and its language, as a whole: nobody says beforehand which language a greeting is in."""

from __future__ import annotations

import pytest

from app.core.prompts import load_prompts
from app.core.turn import Message, Request, Turn
from app.pipeline.steps.retrieve import Detect
from app.text.language import LanguageDetector

PROMPTS = load_prompts(("cs", "en"))
STEP = Detect(LanguageDetector(PROMPTS.languages, "en"), PROMPTS)


async def told(*messages: str) -> tuple[str, bool]:
    """The language, and whether it is small talk."""
    lines = tuple(Message("assistant" if i % 2 else "user", text) for i, text in enumerate(messages))
    changes = await STEP(Turn(request=Request(lines)))
    return changes["asked"].language, bool(changes["smalltalk"])


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ahoj", "cs"),
        ("dobry den", "cs"),
        ("Díky, to je vše", "cs"),
        ("Můžeš mi pomoct?", "cs"),
        ("Dobrý den, mám dotaz", "cs"),
        ("ahoj, jak se máš?", "cs"),
        ("ano", "cs"),
        ("Hello", "en"),
        ("Hi there! What can you do?", "en"),
        ("Thanks a lot, that worked!", "en"),
        ("Hello, can you help me?", "en"),
    ],
)
async def test_small_talk_is_recognised_in_its_language(text: str, language: str) -> None:
    """Also as the first message, without diacritics, and in a conversation."""
    assert await told(text) == (language, True)
    assert (await told("Co je JupyterHub?" if language == "cs" else "What is a pod?", "-", text)) == (language, True)


async def test_a_message_without_any_letter_asks_for_nothing() -> None:
    """In the language so far."""
    assert await told("Co je JupyterHub?", "-", "👍") == ("cs", True)
    assert (await told("Co je JupyterHub?", "-", "512"))[1] is False


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ahoj, jak vytvořit projekt?", "cs"),
        ("Ahoj, gpu quota", "cs"),
        ("Dobrý den, mám dotaz na kvótu", "cs"),
        ("Díky, a proč?", "cs"),
        ("kam napsat o pomoc?", "cs"),
        ("Thanks, and how?", "en"),
        ("Can you do it?", "en"),
        ("Hi, what is a pod?", "en"),
        ("How does it work?", "en"),
        ("How it works", "en"),
        ("jak to funguje", "cs"),
        ("hello world example", "en"),
        ("thanks, and the quota?", "en"),
        ("díky, a jak smažu projekt?", "cs"),
    ],
)
async def test_a_question_behind_a_greeting_stays_a_question(text: str, language: str) -> None:
    assert await told(text) == (language, False)

"""Finds the question, its language, and the earlier question that it refers to."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import RequestError
from app.core.prompts import Prompts
from app.core.turn import Turn
from app.pipeline.conversation import referred
from app.pipeline.runner import Changes
from app.text.language import LanguageDetector, is_smalltalk


@dataclass(frozen=True)
class Detect:
    """Takes the last question; earlier ones decide its language only if its own words don't."""

    detector: LanguageDetector
    prompts: Prompts
    name = "detect"
    reads = ("request",)
    uses = ()
    writes = ("question", "language", "unsure", "referred", "smalltalk")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """The question, its language and whether that is a guess, the question it refers to, and the reply to small talk."""
        question = turn.request.question
        if not question:
            raise RequestError("The conversation has no question of the user.", param="messages")
        questions = [message.content for message in turn.request.messages if message.role == "user"]
        shown = {text: self.detector.shown(text) for text in (*questions, question)}
        language = ""
        for text in (*(text for text in questions if text.strip() != question), question):
            language = shown[text] or language or self.detector.guessed(text)
        words = self.prompts.language(language)
        return {
            "question": question,
            "language": language,
            "unsure": not any(shown[text] for text in questions),
            "referred": referred(turn.request.messages, words),
            "smalltalk": self.prompts.render(language, "smalltalk") if is_smalltalk(question, words) else "",
        }

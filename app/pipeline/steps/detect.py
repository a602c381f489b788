"""Finds the question, its language, and the earlier question that it refers to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from app.core.errors import RequestError
from app.core.prompts import Prompts
from app.core.turn import Message, Turn
from app.pipeline.conversation import referred
from app.pipeline.runner import Changes
from app.text.language import LanguageDetector, is_smalltalk


@dataclass(frozen=True)
class Detect:
    """Takes the last question. Its words decide the language, else the conversation, else the client, else a guess."""

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
        known = self._shown(question, turn.request.messages) or turn.request.language
        language = known or self.detector.guessed(question)
        words = self.prompts.language(language)
        return {
            "question": question,
            "language": language,
            "unsure": not known,
            "referred": referred(turn.request.messages, words),
            "smalltalk": self.prompts.render(language, "smalltalk") if is_smalltalk(question, words) else "",
        }

    def _shown(self, question: str, messages: Sequence[Message]) -> str:
        """The language that the question shows, else the newest question before it, else the newest answer; may be empty."""
        asked, answered = ([m.content for m in reversed(messages) if m.role == role] for role in ("user", "assistant"))
        return next(filter(None, map(self.detector.shown, (question, *asked, *answered[:1]))), "")

"""The question and its language."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import RequestError
from app.core.language import LanguageDetector
from app.core.types import Turn
from app.pipeline.step import Changes


@dataclass(frozen=True)
class Detect:
    """Takes the last question; earlier ones decide its language only when it shows none itself."""

    detector: LanguageDetector
    name = "detect"
    reads = ("request",)
    uses = ()
    writes = ("question", "language")
    optional = False

    async def __call__(self, turn: Turn) -> Changes:
        """The question and its language."""
        question = turn.request.question
        if not question:
            raise RequestError("The conversation has no question of the user.", param="messages")
        prior = ""
        for message in turn.request.messages:
            if message.role == "user" and message.content.strip() != question:
                prior = self.detector.detect(message.content, prior)
        return {"question": question, "language": self.detector.detect(question, prior)}

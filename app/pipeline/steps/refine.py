"""Refines the question for the answer and, in a conversation, for the search."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.replies import unquoted
from app.pipeline.runner import Changes
from app.text.language import LanguageDetector

LONGEST = 600


@dataclass(frozen=True)
class Refine:
    """Asks the language model to rewrite the question so that it stands on its own."""

    model: Model
    prompts: Prompts
    settings: Settings
    detector: LanguageDetector
    name = "refine"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("refined", "refined_language")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The refined question and its language. Raises `ModelError` for a reply that is empty or too long."""
        if turn.sure:
            return {}
        messages = helper_messages(self.prompts.render(turn.language, "refine_question"), turn, self.prompts)
        answer = unquoted(await ask_helper(self.name, self.model, messages, turn, self.settings))
        if not answer or len(answer) > max(LONGEST, 2 * len(turn.question)):
            raise ModelError(f"The refined question is {'empty' if not answer else 'too long'}: the original is used.")
        return {"refined": answer, "refined_language": self.detector.shown(answer)}

"""A clearer wording of the question: for the synthesis, and for the search where a conversation went before."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import prompted
from app.pipeline.replies import unquoted
from app.pipeline.runner import Changes

LONGEST = 600


@dataclass(frozen=True)
class Refine:
    """Asks the language model to rewrite the question so that it stands on its own."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "refine"
    reads = ("question", "language")
    uses = ()
    writes = ("refined",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The rewritten question; `ModelError` for an answer that can't be one."""
        messages = prompted(self.prompts.render(turn.language, "refine_question"), turn, self.prompts)
        answer = unquoted(await ask_helper(self.name, self.model, messages, turn, self.settings))
        if not answer or len(answer) > max(LONGEST, 2 * len(turn.question)):
            raise ModelError(
                f"The rewritten question is {'empty' if not answer else 'an essay'}: the original is used."
            )
        return {"refined": answer}

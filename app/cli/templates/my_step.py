"""The step my_step: puts the passage first that the language model chooses. Change it into what you need."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.runner import Changes


@dataclass(frozen=True)
class MyStep:
    """Asks the language model which passage answers the question best, and puts it first.

    The service passes `model`, `prompts` and `settings` by their names; it can also pass `embedder`, `reranker` and `detector`.
    Without a language model, the step is left out, unless `model` has the default None. Other fields are arguments: `args` of
    [[step]].
    """

    model: Model
    prompts: Prompts
    settings: Settings
    characters: int = 500  # that the model sees of each passage

    name = "my_step"
    reads = ("question", "language", "hits")  # fields of the turn that an earlier step must have written
    uses = ()  # fields that it reads if an earlier step wrote them
    writes = ("hits",)  # fields that it changes
    optional = True  # if it fails or takes too long, the answer continues without its changes
    helper_calls = 1  # maximum number of calls of the language model for a question

    async def __call__(self, turn: Turn) -> Changes:
        """The hits in their new order. Raises `ModelError` for a reply that names no passage."""
        if len(turn.hits) < 2:
            return {}
        passages = "\n\n".join(
            f"[{number}] {hit.chunk.title}\n{hit.chunk.text[: self.characters]}"
            for number, hit in enumerate(turn.hits, start=1)
        )
        system = self.prompts.render(turn.language, "my_step", passages=passages)
        messages = [Message("system", system), Message("user", turn.question)]
        reply = await ask_helper(self.name, self.model, messages, turn, self.settings)
        number = reply.strip(" \n[].")
        if not number.isdecimal() or not 1 <= int(number) <= len(turn.hits):
            raise ModelError(f"The reply has no number of a passage: {reply[:100]!r}. The order stays.")
        best = turn.hits[int(number) - 1]
        return {"hits": (best, *(hit for hit in turn.hits if hit is not best))}

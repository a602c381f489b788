"""Searches for a hypothetical answer, whose vector is nearer to the real passage than that of the question.

Gao et al. 2022, "Precise Zero-Shot Dense Retrieval without Relevance Labels" (arXiv:2212.10496).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Legs
from app.index.protocols import Generation
from app.models.protocols import Embedder, Model, for_index
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.runner import Changes
from app.pipeline.steps.retrieve import query_for

LONGEST = 2000


@dataclass(frozen=True)
class HypotheticalAnswer:
    """Asks the model for a passage that could be the answer, and searches for its nearest neighbours."""

    model: Model
    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "hyde"
    reads = ("question", "language", "generation")
    uses = ()
    writes = ("hypothetical",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The vector leg of the hypothetical answer. Raises `ModelError` if the reply is empty."""
        system = self.prompts.render(turn.language, "hyde")
        messages = helper_messages(system, turn, self.prompts)
        text = (await ask_helper(self.name, self.model, messages, turn, self.settings)).strip()
        if not text:
            raise ModelError("The model returned no hypothetical answer. Searching for the question alone.")
        generation: Generation = turn.generation
        vector = (await for_index(self.embedder, generation.info.recipe.embedder).embed_passages([text[:LONGEST]]))[0]
        found = await generation.search(replace(query_for(turn, self, vector), texts=()))
        return {"hypothetical": Legs(vector=found.vector)}

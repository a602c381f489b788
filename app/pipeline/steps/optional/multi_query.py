"""Searches for other wordings of the question too, to find pages that use other words.

Uses five wordings, and the union of the best 20 candidates of each.
"""

from __future__ import annotations

import asyncio
import re
from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.core.types import Vector
from app.index.protocols import Generation
from app.index.ranking.fuse import joined
from app.models.protocols import Embedder, Model, for_index
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.replies import unquoted
from app.pipeline.runner import Changes
from app.pipeline.steps.retrieve import query_for

VARIANTS = 5
DEPTH = 20
LONGEST = 300
_MARK = re.compile(r"^\s*(?:[-*•]|\(?\d{1,2}[.):])\s*")


@dataclass(frozen=True)
class MultiQuery:
    """Asks the model for other wordings and searches for all of them in parallel."""

    model: Model
    embedder: Embedder
    prompts: Prompts
    settings: Settings
    name = "multi_query"
    reads = ("question", "language", "generation")
    uses = ()
    writes = ("variants",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The merged legs of all wordings. Raises `ModelError` if the reply has no wordings."""
        wordings = await self._wordings(turn)
        generation: Generation = turn.generation
        vectors = await self._vectors(wordings, for_index(self.embedder, generation.info.recipe.embedder))
        queries = [
            replace(query_for(replace(turn, question=text, referred=""), self, vector), depth=DEPTH)
            for text, vector in zip(wordings, vectors, strict=True)
        ]
        return {"variants": joined(*await asyncio.gather(*(generation.search(query) for query in queries)))}

    async def _wordings(self, turn: Turn) -> list[str]:
        system = self.prompts.render(turn.language, "multi_query", count=str(VARIANTS))
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        if not (found := parse(answer)):
            raise ModelError(f"The reply has no other wordings: {answer[:200]!r}. Searching for the question alone.")
        return found

    @staticmethod
    async def _vectors(texts: list[str], embedder: Embedder) -> list[Vector | None]:
        try:
            return list(await embedder.embed_queries(texts))
        except ModelError:  # the words are searched; the probe reports the failing embedder
            return [None] * len(texts)


def parse(answer: str) -> list[str]:
    """The wordings, one per line, without list marks, quotes and repetitions; at most `VARIANTS`."""
    lines = (unquoted(_MARK.sub("", line)) for line in answer.splitlines())
    usable = dict.fromkeys(line for line in lines if re.search(r"\w", line) and not line.endswith(":"))
    return [line[:LONGEST] for line in usable][:VARIANTS]

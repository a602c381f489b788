"""A second search, at most one, with new keywords: where the first one found too little to answer from."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import prompted
from app.pipeline.runner import Changes
from app.pipeline.steps.keywords import codes_of, form_of, names_of, parse
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import Retrieve


@dataclass(frozen=True)
class SecondSearch:
    """Asks the language model for other keywords when no passage was good enough, searches and judges once more."""

    model: Model
    retrieve: Retrieve
    relevance: Relevance
    prompts: Prompts
    settings: Settings
    name = "second_search"
    reads = ("question", "language", "generation", "hits", "evidence")
    uses = tuple(dict.fromkeys((*Retrieve.uses, *Relevance.uses)))
    writes = ("more_keywords", "evidence", "evidence_needed", "hits", "related")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The hits of the second search where they say more; nothing where the first one was good enough."""
        if turn.hits:
            return {}
        more = await self._keywords(turn)
        # pages that the first search brought close stay in the race by their vectors
        again = replace(turn, keywords=more)
        again = replace(again, hits=(await self.retrieve(again))["hits"])
        judged = await self.relevance(again)
        if judged["evidence"] <= (turn.evidence or 0.0):
            return {"more_keywords": more}
        return {"more_keywords": more, "hits": again.hits, "related": (), **judged}

    async def _keywords(self, turn: Turn) -> dict[str, str]:
        codes = codes_of(turn, self.prompts)
        tried = "; ".join(turn.keywords.values()) or turn.question
        system = self.prompts.render(
            turn.language,
            "second_keywords",
            languages=names_of(codes, self.prompts),
            form=form_of(codes),
            tried=tried,
        )
        messages = prompted(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        if not (found := parse(answer, codes)):
            raise ModelError(f"No keywords can be read from {answer[:200]!r}: it stays with the first search.")
        return found

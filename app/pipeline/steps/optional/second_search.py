"""Searches a second time, with new keywords, if the first search found too little evidence."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.runner import Changes
from app.pipeline.steps.keywords import LONGEST, codes_of
from app.pipeline.steps.relevance import Relevance
from app.pipeline.steps.retrieve import Retrieve
from app.text.language_lines import form_of, names_of, parse


@dataclass(frozen=True)
class SecondSearch:
    """Asks the model for other keywords if no passage was good enough, then searches and checks the evidence again."""

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
        """The hits of the second search if they have more evidence; no changes if the first search was good enough."""
        if turn.hits:
            return {}
        more = await self._keywords(turn)
        # the vector leg of the first search stays
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
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        if not (found := parse(answer, codes, LONGEST)):
            raise ModelError(f"The reply has no keywords: {answer[:200]!r}. The first search stays.")
        return found

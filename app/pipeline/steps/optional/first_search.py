"""Searches before the model is asked, and decides whether the search needs the model's help."""

from __future__ import annotations

from dataclasses import dataclass, replace

from app.core.turn import Turn
from app.pipeline.runner import Changes
from app.pipeline.steps.relevance import FEWEST_WORDS, Relevance
from app.pipeline.steps.retrieve import Probe, Retrieve
from app.text.language import without_stopwords

SURE = 0.8  # evidence: with less, keywords find better pages (docs/decisions/037)


@dataclass(frozen=True)
class FirstSearch:
    """Stands in the place of `probe`. If the question alone finds its evidence, later steps don't ask the model for help."""

    probe: Probe
    retrieve: Retrieve
    relevance: Relevance
    name = "first_search"
    reads = ("question", "language", "generation")
    uses = Probe.uses
    writes = ("vector", "legs", "sure")
    optional = False
    helper_calls = 0

    async def __call__(self, turn: Turn) -> Changes:
        """What `probe` finds, and whether that is sure. A question that needs an earlier one never is."""
        found = await self.probe(turn)
        words = without_stopwords(turn.question, self.relevance.prompts.language(turn.language)).split()
        if turn.referred or len(words) < FEWEST_WORDS:
            return {**found, "sure": False}
        # no keywords yet, and no boosts: they say nothing of evidence
        searched = Turn(turn.request, turn.generation, turn.question, turn.language, turn.unsure, **found)
        judged = await self.relevance(replace(searched, **await self.retrieve(searched)))
        return {**found, "sure": judged["evidence"] >= SURE}

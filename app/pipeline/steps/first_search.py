"""A step that searches with the question before the language model is asked for help, and decides whether that help is needed."""

from dataclasses import dataclass

from app.core.turn import Turn
from app.pipeline.conversation import Searching
from app.pipeline.runner import Changes, ran_early
from app.pipeline.steps.relevance import FEWEST_WORDS, Relevance
from app.pipeline.steps.retrieve import Probe, Retrieve
from app.text.language import without_stopwords

SURE = 0.8  # evidence: with less, keywords find better pages (docs/decisions/037)


@dataclass(frozen=True)
class FirstSearch(Searching):
    """Stands in the place of `probe`. If the question alone finds its evidence, later steps don't ask the model for help.

    It doesn't look for evidence if no later step can be `helped`: the steps that ask are left out without a model.
    """

    helped: bool = True
    name = "first_search"
    reads = ("asked", "generation")
    writes = ("probe", "sure", "first_hits", "early")

    async def __call__(self, turn: Turn) -> Changes:
        """The findings of `probe`, the hits among them, and whether they are sure. A question that needs an earlier one never is.

        `retrieve` and `relevance` don't run again if nothing that they read is changed by then.
        """
        changes = await Probe(self.embedder, self.prompts, self.settings)(turn)
        if not self.helped:
            return changes
        # no keywords yet, and no boosts: they say nothing of evidence
        searched = Turn(turn.request, turn.generation, turn.asked, **changes)
        found, retrieved = await ran_early(Retrieve(self.embedder, self.prompts, self.settings), searched)
        changes = {**changes, "first_hits": found["hits"], "early": (retrieved,)}
        words = without_stopwords(turn.asked.text, self.prompts.language(turn.asked.language)).split()
        if turn.asked.referred or len(words) < FEWEST_WORDS:
            return {**changes, "sure": False}
        searched = searched.changed(**found)
        judged, related = await ran_early(Relevance(self.prompts, self.settings), searched)
        return {**changes, "early": (retrieved, related), "sure": judged["evidence"].share >= SURE}

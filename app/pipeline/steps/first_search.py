"""Steps that search with the question before the language model is asked for help: one decides whether the question stands alone, the
other whether that help is needed.
"""

from dataclasses import dataclass, replace

from app.core.turn import EarlyRun, Question, Turn
from app.pipeline.conversation import Searching, is_brief, question_before
from app.pipeline.runner import Changes, ran_early
from app.pipeline.steps.relevance import FEWEST_WORDS, Relevance, says
from app.pipeline.steps.retrieve import Probe, Retrieve
from app.text.language import without_stopwords

SURE = 0.8  # evidence: with less, keywords find better pages (docs/decisions/037)


@dataclass(frozen=True)
class CarryOver(Searching):
    """Searches with a brief question that points to no earlier one. If it finds nothing alone, but together with the question before it,
    it is taken to refer to that.
    """

    name = "carry_over"
    reads = ("asked", "generation")
    uses = ("early",)
    writes = ("asked", "early")
    optional = True

    def applies(self, turn: Turn) -> bool:
        """True behind an earlier question, if this one is brief and points back to none."""
        return len(turn.request.messages) > 1 and not turn.reply and self._before(turn) != ""

    def _before(self, turn: Turn) -> str:
        asked, language = turn.asked, self.prompts.language(turn.asked.language)
        if asked.referred or not is_brief(asked.text, language):
            return ""
        return question_before(turn.request.messages, language)

    async def __call__(self, turn: Turn) -> Changes:
        """The question with the earlier one, if it needs that, and the steps that have run, which don't run again for the same."""
        alone = await self._judged(turn, turn.asked)
        if alone.hits:
            return {"early": alone.early}
        together = await self._judged(turn, replace(turn.asked, referred=self._before(turn)))
        own = without_stopwords(turn.asked.text, self.prompts.language(turn.asked.language))
        # what has no word of the question itself is found by the earlier one alone
        if together.hits and await says(together.hits[0], own, turn.asked.language):
            return {"asked": together.asked, "early": together.early}
        return {"early": alone.early}

    async def _judged(self, turn: Turn, asked: Question) -> Turn:
        """The turn with the hits that are evidence enough for the question, and with the steps that have found them."""
        searched, early = Turn(turn.request, turn.generation, asked), list[EarlyRun]()
        tools = (self.embedder, self.prompts, self.settings)
        for step in (Probe(*tools), Retrieve(*tools), Relevance(self.prompts, self.settings)):
            changes, run = await ran_early(step, searched)
            searched = searched.changed(**changes)
            early.append(run)
        return searched.changed(early=tuple(early))


@dataclass(frozen=True)
class FirstSearch(Searching):
    """Stands in the place of `probe`. If the question alone finds its evidence, later steps don't ask the model for help.

    It doesn't look for evidence if no later step can be `helped`: the steps that ask are left out without a model.
    """

    helped: bool = True
    name = "first_search"
    reads = ("asked", "generation")
    uses = ("early",)
    writes = ("probe", "sure", "first_hits", "early")

    async def __call__(self, turn: Turn) -> Changes:
        """The findings of `probe`, the hits among them, and whether they are sure. A question that needs an earlier one never is.

        `retrieve` and `relevance` don't run again if nothing that they read is changed by then.
        """
        searched = Turn(turn.request, turn.generation, turn.asked, early=turn.early)
        changes, _ = await ran_early(Probe(self.embedder, self.prompts, self.settings), searched)
        if not self.helped:
            return changes
        # no keywords yet, and no boosts: they say nothing of evidence
        searched = searched.changed(**changes)
        found, retrieved = await ran_early(Retrieve(self.embedder, self.prompts, self.settings), searched)
        changes = {**changes, "first_hits": found["hits"], "early": (retrieved,)}
        words = without_stopwords(turn.asked.text, self.prompts.language(turn.asked.language)).split()
        if turn.asked.referred or len(words) < FEWEST_WORDS:
            return {**changes, "sure": False}
        searched = searched.changed(**found)
        judged, related = await ran_early(Relevance(self.prompts, self.settings), searched)
        return {**changes, "early": (retrieved, related), "sure": judged["evidence"].share >= SURE}

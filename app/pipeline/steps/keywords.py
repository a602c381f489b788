"""Asks the model for search keywords in every indexed language, so that a Czech question finds English pages."""

from __future__ import annotations

from dataclasses import dataclass

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Turn
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.conversation import helper_messages
from app.pipeline.runner import Changes
from app.text.language_lines import form_of, names_of, parse

LONGEST = 400


@dataclass(frozen=True)
class Keywords:
    """Gets keywords from the language model, one line per language."""

    model: Model
    prompts: Prompts
    settings: Settings
    name = "keywords"
    reads = ("question", "language")
    uses = ("sure",)
    writes = ("keywords",)
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """Keywords by language code. Raises `ModelError` if the reply has none."""
        if turn.sure:
            return {}
        codes = codes_of(turn, self.prompts)
        system = self.prompts.render(
            turn.language,
            "refine_keywords",
            languages=names_of(codes, self.prompts),
            form=form_of(codes),
        )
        messages = helper_messages(system, turn, self.prompts)
        answer = await ask_helper(self.name, self.model, messages, turn, self.settings)
        keywords = parse(answer, codes, LONGEST)
        if not keywords:
            raise ModelError(f"The reply has no keywords: {answer[:200]!r}. Searching for the question alone.")
        return {"keywords": keywords}


def codes_of(turn: Turn, prompts: Prompts) -> list[str]:
    """The languages of the keywords, the question's first."""
    return [turn.language, *(code for code in prompts.languages if code != turn.language)]

"""Boosts pages of the period that a question asks about; without one, prefers newer pages."""

from __future__ import annotations

import datetime as dt
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from app.core.errors import ModelError
from app.core.prompts import Prompts
from app.core.settings import Settings
from app.core.turn import Message, Turn
from app.core.types import Recency
from app.models.protocols import Model
from app.pipeline.calls import ask_helper
from app.pipeline.runner import Changes, Fallback
from app.pipeline.steps.optional.period_rules import OPERATORS, Period, PeriodRules
from app.text.language import without_stopwords

PERIOD_BOOST = 15.0
"""Factor for the score of pages from the time that a question names."""
RECENCY_LOSS = 0.5
"""How much the score of a page falls with each year of its age if a question names no time."""
FEWEST_WORDS = 2  # that tell what is asked about: with fewer left, the time is all that the question says


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True)
class AskedPeriod:
    """Finds the period by rules, or asks the model if the question names a time that the rules don't understand."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    rules: Mapping[str, PeriodRules]
    today: Callable[[], dt.date] = field(default=_today)
    name = "period"
    reads = ("question", "language")
    uses = ()
    writes = ("topic", "period", "recency")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The question without its period and the boost of that time's pages; without a period, the preference for newer pages.

        Raises `Fallback` with that preference if the model fails.
        """
        today = self.today()
        newer: Changes = {"recency": Recency(today.isoformat(), RECENCY_LOSS)}
        found = self.rules[turn.language].period(turn.question, today)
        if found is None and self.model is not None and self.rules[turn.language].hinted(turn.question, today):
            try:
                found = await self._asked(self.model, turn, today)
            except ModelError as error:
                raise Fallback(newer) from error
        if found is None:
            return newer
        boosted = {"period": found.boost(PERIOD_BOOST)}
        shorter = found.question != turn.question and self._tells(found.question, turn)
        return {"topic": found.question, **boosted} if shorter else boosted

    async def _asked(self, model: Model, turn: Turn, today: dt.date) -> Period | None:
        system = self.prompts.render(turn.language, "period", today=today.isoformat())
        messages = [Message("system", system), Message("user", turn.question)]
        found = parse(await ask_helper(self.name, model, messages, turn, self.settings), turn.question)
        return None if found and int(found.date[:4]) > today.year else found  # the number isn't a year

    def _tells(self, question: str, turn: Turn) -> bool:
        """Whether the question without its period still has enough content words."""
        telling = without_stopwords(question, self.prompts.language(turn.language)).split()
        return len([word for word in telling if re.search(r"\w", word)]) >= FEWEST_WORDS


def parse(answer: str, question: str) -> Period | None:
    """The period in the JSON object of a reply; None if the reply says that there is none.

    A question in the reply that is empty or longer than the asked one is ignored. Raises `ModelError` for other replies.
    """
    found = re.search(r"\{[^{}]*\}", answer)
    unread = f"The reply has no period: {answer[:200]!r}. The question is searched unchanged."
    try:
        said = json.loads(found[0] if found else answer)
        operator = said["operator"]
        if operator in (None, "", "none", "null"):
            return None
        day = dt.date.fromisoformat(said["date"]).isoformat()
        last = dt.date.fromisoformat((operator == "eq" and said.get("last")) or day).isoformat()
    except (ValueError, TypeError, KeyError) as error:
        raise ModelError(unread) from error
    if operator not in OPERATORS or last < day:
        raise ModelError(unread)
    left = said.get("question")
    fits = isinstance(left, str) and left.strip() and len(left.strip()) <= len(question)
    return Period(operator, day, last, left.strip() if fits else question)

"""The time that a question asks about: pages of that time count more, and without one newer pages do."""

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

FEWEST_WORDS = 2  # that tell what is asked about: with fewer left, the time is all that the question says


def _today() -> dt.date:
    return dt.datetime.now(dt.UTC).date()


@dataclass(frozen=True)
class AskedPeriod:
    """Finds the period by rules, and by the language model where the question names a time that they don't understand."""

    model: Model | None
    prompts: Prompts
    settings: Settings
    rules: Mapping[str, PeriodRules]
    today: Callable[[], dt.date] = field(default=_today)
    name = "period"
    reads = ("question", "language")
    uses = ()
    writes = ("question", "period", "recency")
    optional = True
    helper_calls = 1

    async def __call__(self, turn: Turn) -> Changes:
        """The question without the period, and what to lift; nothing but newer pages where none is asked for.

        Raises `Fallback` to the newer pages where the model can't tell.
        """
        today, loss = self.today(), self.settings.recency_loss
        newer: Changes = {"recency": Recency(today.isoformat(), loss)} if loss else {}
        found = self.rules[turn.language].period(turn.question, today)
        if found is None and self.model is not None and self.rules[turn.language].hinted(turn.question, today):
            try:
                found = await self._asked(self.model, turn, today)
            except ModelError as error:
                raise Fallback(newer) from error
        if found is None:
            return newer
        boosted = {"period": found.boost(self.settings.period_boost)}
        return {"question": found.question, **boosted} if self._tells(found.question, turn) else boosted

    async def _asked(self, model: Model, turn: Turn, today: dt.date) -> Period | None:
        system = self.prompts.render(turn.language, "period", today=today.isoformat())
        messages = [Message("system", system), Message("user", turn.question)]
        found = parse(await ask_helper(self.name, model, messages, turn, self.settings), turn.question)
        return None if found and int(found.date[:4]) > today.year else found  # a number that is no year

    def _tells(self, question: str, turn: Turn) -> bool:
        """Whether the question still says what it is about without its time."""
        telling = without_stopwords(question, self.prompts.language(turn.language)).split()
        return len([word for word in telling if re.search(r"\w", word)]) >= FEWEST_WORDS


def parse(answer: str, question: str) -> Period | None:
    """The period of a model's answer, a JSON object somewhere in it; None where it says that there is none.

    What it leaves of the question can't be longer than that: else the question stays as it was asked.
    Raises `ModelError` where that can't be read.
    """
    found = re.search(r"\{[^{}]*\}", answer)
    unread = f"No period can be read from {answer[:200]!r}: the question is searched as it is."
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

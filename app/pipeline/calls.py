"""Calls of a step to language models: counted, retried once after a rate limit, and their short replies parsed."""

import logging
import re
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TypeVar

from app.core.errors import ModelError, ModelRateLimited
from app.core.language import Vocabulary, vocabulary
from app.core.retries import OF_QUESTION, tried
from app.core.settings import Settings
from app.core.turn import Completion, Message, Turn
from app.models import Model
from app.models.protocols import CallOptions
from app.text.analysis import fold

log = logging.getLogger("app.pipeline")

LONGEST_ANSWER = 300  # tokens
LONGEST_REPLY = 20_000  # characters: some servers ignore max_tokens


async def ask_helper(
    step: str,
    model: Model,
    messages: Sequence[Message],
    turn: Turn,
    settings: Settings,
    *,
    max_tokens: int = LONGEST_ANSWER,
) -> str:
    """The reply of the model, at most `LONGEST_REPLY` characters. Raises `ModelError` if it fails or no helper call is left."""
    completion = await call_helper(
        step, lambda options: model.complete(messages, options), turn, settings, max_tokens=max_tokens
    )
    return completion.text[:LONGEST_REPLY]


async def call_helper(
    step: str,
    ask: Callable[[CallOptions], Awaitable[Completion]],
    turn: Turn,
    settings: Settings,
    *,
    max_tokens: int = LONGEST_ANSWER,
) -> Completion:
    """The whole completion, for a step that makes its own request; all that `ask` does counts as one call."""
    begun = sum(turn.calls.begun.values())
    if begun >= settings.tuning.helper_calls:
        raise ModelError(
            f"{step} was left out: a question may use {settings.tuning.helper_calls} helper calls (DOCS_TUNING__HELPER_CALLS)."
        )
    options = CallOptions(temperature=0, max_tokens=max_tokens, timeout=settings.tuning.helper_timeout)
    with turn.calls.call(step) as call:
        completion = await ask(options)
        call.usage = completion.usage
    return completion


def unquoted(answer: str) -> str:
    """The reply without the quotation marks that models put around it."""
    return answer.strip().strip("\"'„“”").strip()


def braced(answer: str) -> str:
    """The reply from its first opening to its last closing brace; empty without braces."""
    start, end = answer.find("{"), answer.rfind("}") + 1
    return answer[start:end] if 0 <= start < end else ""


def picked_numbers(answer: str, count: int, words: Vocabulary) -> list[int]:
    """The numbers from 1 to `count` in the reply, sorted; none if the reply says so.

    Raises `ModelError` for a reply in sentences, or with other numbers only.
    """
    numbers = replied_numbers(answer, words)
    picked = sorted({number for number in numbers or () if 1 <= number <= count})
    if numbers is None or (any(numbers) and not picked):
        raise ModelError(
            f"The reply is no list of numbers from 1 to {count}: {answer[:200]!r}. Nothing is left out or preferred."
        )
    return picked


def replied_numbers(answer: str, words: Vocabulary | None = None) -> tuple[int, ...] | None:
    """The numbers of a reply that only lists numbers, or says that there are none; None for any other reply."""
    words = words or vocabulary()
    text = re.sub(r"^[^\S\n]*[-•]\s+|[\[\]()*`\"'„“”]", "", fold(answer), flags=re.MULTILINE)
    text = " ".join(text.split()).rstrip(".").strip()
    if re.fullmatch(rf"(?:{words.none})|0|-|", text):
        return ()
    match = _list(words.labels, words.and_or).fullmatch(text)
    return tuple(map(int, re.findall(r"\d+", match[1]))) if match else None


@lru_cache(maxsize=8)
def _list(labels: str, and_or: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(fold(word)) for word in sorted(and_or))
    between = rf"(?: ?[,;] ?(?:(?:{joined}) )?| (?:(?:{joined}|&) )?)"
    return re.compile(rf"(?:(?:{labels}) ?:? ?)?(\d++(?:{between}\d++)*+)")


Result = TypeVar("Result")


async def retry_once(call: Callable[[], Awaitable[Result]]) -> Result:
    """The result of the call. Retries once after `ModelRateLimited` with a short wait; raises any other error."""
    return await tried(call, OF_QUESTION, lambda error: isinstance(error, ModelRateLimited))

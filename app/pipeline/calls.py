"""Calls the language model and counts the calls: helper calls, which are short and few, and the answer itself."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from app.core.errors import ModelError
from app.core.settings import Settings
from app.core.turn import Completion, Done, Message, Reasoning, Text, Turn, Usage
from app.models.protocols import CallOptions, Model

LONGEST_ANSWER = 300  # tokens
LONGEST_REPLY = 20_000  # characters: some servers ignore max_tokens


async def ask_helper(step: str, model: Model, messages: Sequence[Message], turn: Turn, settings: Settings) -> str:
    """The reply of the model, at most `LONGEST_REPLY` characters. Raises `ModelError` if it fails or no helper call is left."""
    return (await call_helper(step, lambda options: model.complete(messages, options), turn, settings)).text[
        :LONGEST_REPLY
    ]


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
    if begun >= settings.helper_calls:
        raise ModelError(
            f"{step} was left out: a question may use {settings.helper_calls} helper calls (DOCS_HELPER_CALLS)."
        )
    turn.calls.begun[step] = turn.calls.begun.get(step, 0) + 1
    options = CallOptions(temperature=0, max_tokens=max_tokens, timeout=settings.helper_timeout)
    started = time.perf_counter()
    try:
        completion = await ask(options)
    except ModelError as error:
        turn.calls.add(step, started, error=str(error))
        raise
    turn.calls.add(step, started, completion.usage)
    return completion


Events = AsyncGenerator[Text | Reasoning | Usage | Done, None]


async def recorded(events: Events, turn: Turn, step: str) -> Events:
    """The events of a streamed call; its duration and tokens are added to the turn's calls."""
    started, usage, error = time.perf_counter(), Usage(), "cancelled"
    turn.calls.begun[step] = turn.calls.begun.get(step, 0) + 1
    done: Done | None = None
    try:
        async with aclosing(events):
            async for event in events:
                if isinstance(event, Usage):
                    usage += event
                if isinstance(event, Done):
                    error, done = "", event
                else:
                    yield event
    except ModelError as failed:
        error = str(failed)
        raise
    finally:
        turn.calls.add(step, started, usage, error)
    if done:  # last, so that its reader finds the call recorded
        yield done

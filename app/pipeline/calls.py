"""Calls to the language model, counted: helper calls, which are short and few, and the answer itself."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing

from app.core.errors import ModelError
from app.core.settings import Settings
from app.core.turn import Call, Completion, Done, Message, Reasoning, Text, Turn, Usage
from app.models.protocols import CallOptions, Model

LONGEST_ANSWER = 300  # tokens
LONGEST_REPLY = 20_000  # characters: what follows comes from a model that doesn't heed the tokens


async def ask_helper(step: str, model: Model, messages: Sequence[Message], turn: Turn, settings: Settings) -> str:
    """What the model answers, `LONGEST_REPLY` characters at most. `ModelError` when it fails, or when the question has had all its helper calls."""
    return (await helped(step, lambda options: model.complete(messages, options), turn, settings)).text[:LONGEST_REPLY]


async def helped(
    step: str,
    ask: Callable[[CallOptions], Awaitable[Completion]],
    turn: Turn,
    settings: Settings,
    *,
    max_tokens: int = LONGEST_ANSWER,
) -> Completion:
    """As `ask_helper`, for a step that asks in its own way; whatever `ask` does is one call."""
    begun = sum(turn.calls.begun.values())
    if begun >= settings.helper_calls:
        raise ModelError(f"{step} wasn't asked: a question may have {settings.helper_calls} helper calls.")
    turn.calls.begun[step] = turn.calls.begun.get(step, 0) + 1
    options = CallOptions(
        temperature=settings.helper_temperature, max_tokens=max_tokens, timeout=settings.helper_timeout
    )
    started = time.perf_counter()
    try:
        completion = await ask(options)
    except ModelError as error:
        turn.calls.ended.append(Call(step, (time.perf_counter() - started) * 1000, error=str(error)))
        raise
    turn.calls.ended.append(Call(step, (time.perf_counter() - started) * 1000, completion.usage))
    return completion


Events = AsyncGenerator[Text | Reasoning | Usage | Done, None]


async def timed(events: Events, turn: Turn, step: str) -> Events:
    """The events of a streamed call; how long it took and its tokens are remembered."""
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
        turn.calls.ended.append(Call(step, (time.perf_counter() - started) * 1000, usage, error))
    if done:  # last, so that who reads it finds the call among the ended ones
        yield done

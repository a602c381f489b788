"""Holds an answer back until its language is certain, so that the model can be asked again for the right one."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from app.core.turn import Done, Event, Events, Text
from app.text.answer_language import AnswerLanguage, Verdict

LONGEST_HELD = 80  # characters


class WrongLanguage(Exception):
    """The answer is in another language. `text` is what was read of it; `events` are all its events if it was read to the end."""

    def __init__(self, text: str, events: tuple[Event, ...] = ()) -> None:
        super().__init__("The answer is in another language.")
        self.text, self.events = text, events


class FirstText:
    """Releases the text of an answer once its language is certain. Raises `WrongLanguage` before it releases any."""

    def __init__(self, check: AnswerLanguage) -> None:
        self._check = check
        self._held = ""
        self._pieces: list[str] = []
        self._holding = True

    def feed(self, text: str) -> str:
        """The text that can be shown now."""
        self._pieces.append(text)
        if not self._holding:
            return text
        self._held += text
        verdict = self._check.early(self._held)
        if verdict == "unsure" and len(self._held) < LONGEST_HELD:
            return ""
        return self._release(verdict)

    def rest(self) -> str:
        """The text that is still held back at the end."""
        return self._release("unsure") if self._holding else ""

    @property
    def switched(self) -> bool:
        """Whether a considerable part of the whole text is in another language."""
        return self._check.switched("".join(self._pieces))

    def _release(self, verdict: Verdict) -> str:
        self._holding = False
        if (self._check.beginning(self._held) if verdict == "unsure" else verdict) == "wrong":
            raise WrongLanguage(self._held)
        return self._held


async def check_language(events: Events, check: AnswerLanguage) -> Events:
    """The events; the first text waits until its language is certain, or 80 characters have come.

    Raises `WrongLanguage` before any text; `Done.language` reports a later switch.
    """
    first = FirstText(check)
    async with aclosing(events):
        async for event in events:
            if isinstance(event, Text):
                if text := first.feed(event.text):
                    yield Text(text)
            elif isinstance(event, Done):
                if text := first.rest():
                    yield Text(text)
                yield replace(event, language="switched") if first.switched else event
            else:
                yield event


async def whole_answer(events: Events) -> Events:
    """The events, after all of them have come. Raises `WrongLanguage` with them if the language switched."""
    async with aclosing(events):
        read = tuple([event async for event in events])
    if any(isinstance(event, Done) and event.language for event in read):
        raise WrongLanguage("".join(event.text for event in read if isinstance(event, Text)), read)
    for event in read:
        yield event

"""An answer held back while its language isn't sure, so that a wrong one can still be asked for again."""

from __future__ import annotations

from contextlib import aclosing
from dataclasses import replace

from app.core.turn import Done, Event, Events, Text
from app.text.answer_language import AnswerLanguage, Verdict

HELD = 80  # characters that a reader may have to wait for


class WrongLanguage(Exception):
    """The answer is in another language; `events` is all of it, where it was read to its end, `text` what was read."""

    def __init__(self, text: str, events: tuple[Event, ...] = ()) -> None:
        super().__init__("The answer is in another language.")
        self.text, self.events = text, events


class FirstText:
    """Lets an answer's text through once its language is sure. Raises `WrongLanguage` before any of it."""

    def __init__(self, check: AnswerLanguage) -> None:
        self._check = check
        self._held = ""
        self._said: list[str] = []
        self._holding = True

    def feed(self, text: str) -> str:
        """The text that may be shown by now."""
        self._said.append(text)
        if not self._holding:
            return text
        self._held += text
        verdict = self._check.early(self._held)
        if verdict == "unsure" and len(self._held) < HELD:
            return ""
        return self._release(verdict)

    def rest(self) -> str:
        """What was still held back, at the end."""
        return self._release("unsure") if self._holding else ""

    @property
    def switched(self) -> bool:
        """Whether a considerable part of all that was said is in another language."""
        return self._check.switched("".join(self._said))

    def _release(self, verdict: Verdict) -> str:
        self._holding = False
        if (self._check.beginning(self._held) if verdict == "unsure" else verdict) == "wrong":
            raise WrongLanguage(self._held)
        return self._held


async def checked(events: Events, check: AnswerLanguage) -> Events:
    """The events, the first text held until its language is sure, or 80 characters long.

    Raises `WrongLanguage` before any text; a switch later on is told by `Done`.
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


async def whole(events: Events) -> Events:
    """The events once all of them are there. Raises `WrongLanguage` with them when the language switched."""
    async with aclosing(events):
        read = tuple([event async for event in events])
    if any(isinstance(event, Done) and event.language for event in read):
        raise WrongLanguage("".join(event.text for event in read if isinstance(event, Text)), read)
    for event in read:
        yield event

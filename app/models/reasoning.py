"""The reasoning in the answers of models, which readers see apart from the text: in tags, or in the channels of gpt-oss.

In its format, harmony, an answer is `<|channel|>analysis<|message|>…<|end|><|start|>assistant<|channel|>final<|message|>…<|return|>`.
"""

from app.core.turn import Reasoning, Text

OPEN, CLOSE = "<think>", "</think>"
# characters kept before the first word: endless blank lines would be read again and again
MAX_BLANK = 100
START, CHANNEL, MESSAGE = "<|start|>", "<|channel|>", "<|message|>"
OPENINGS = (CHANNEL, START)
BARE_OPEN, BARE_CLOSE = "analysis", "assistantfinal"
"""What is left of channels where a server leaves out the marks: `analysisLet me see.assistantfinal5 GB.`"""
_FINAL = "final"
_ENDS = ("<|end|>", "<|return|>", "<|call|>")
_ENDS_OF = {True: tuple(end + opening for end in _ENDS for opening in OPENINGS), False: (*_ENDS, *OPENINGS)}
"""What ends a message, by whether it is the final one, which may quote single marks."""


class ThinkFilter:
    """Splits a stream of text into answer and reasoning, which stands in tags or in the channels of gpt-oss. Only a tag at the
    start counts, because a page may quote it.
    """

    def __init__(self, *, answering: bool = False) -> None:
        self._held = ""
        self._inside = False
        self._close = CLOSE
        self._channels: Channels | None = None
        self.answering = answering  # from then on all is text
        self._after_thinking = False

    @staticmethod
    def remove(text: str) -> str:
        """The answer without the reasoning before it."""
        if text.lstrip().startswith(OPENINGS):
            channels = Channels()
            said = [*channels.feed(text), *channels.flush()]
            return "".join(event.text for event in said if isinstance(event, Text)).strip()
        if _is_bare(start := text.lstrip()):
            return start.partition(BARE_CLOSE)[2].strip()
        head, close, tail = text.partition(CLOSE)
        if head.lstrip().startswith(OPEN):
            return tail.strip()
        # the chat templates of some servers drop the opening tag
        return tail.strip() if close and OPEN not in head else text

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Add a piece of text; the events that are certain so far."""
        if self.answering:
            return [Text(text)]
        if self._channels:
            return self._channels.feed(text)
        self._held += text
        return self._think() if self._inside else self._begin()

    def _begin(self) -> list[Text | Reasoning]:
        start = self._held.lstrip()
        if start.startswith(OPEN):
            self._inside, self._held = True, start[len(OPEN) :]
            return self._think()
        if start.startswith(OPENINGS):
            self._channels = Channels()
            return self._channels.feed(start)
        if _is_bare(start):
            self._inside, self._held, self._close = True, start[len(BARE_OPEN) :], BARE_CLOSE
            return self._think()
        # no part of the word "analysis" is held: it would make answers wait that begin like it
        if start == BARE_OPEN or any(tag.startswith(start) for tag in (OPEN, *OPENINGS)):  # empty, or part of a tag
            self._held = self._held[-MAX_BLANK:]
            return []
        return self._answer(start if self._after_thinking else self._held)

    def _think(self) -> list[Text | Reasoning]:
        thought, close, rest = self._held.partition(self._close)
        if close:
            self._inside, self._after_thinking, self._held = False, True, rest
            return [*([Reasoning(thought)] if thought else []), *self._begin()]
        thought = self._held[: len(self._held) - held(self._held, self._close)]
        self._held = self._held[len(thought) :]
        return [Reasoning(thought)] if thought else []

    def _answer(self, text: str) -> list[Text | Reasoning]:
        self.answering, self._held = True, ""
        return [Text(text)]

    def flush(self) -> list[Text | Reasoning]:
        """The rest of the text, at the end of the stream."""
        if self._channels:
            return self._channels.flush()
        rest, self._held = self._held, ""
        if not rest.strip():
            return []
        return [Reasoning(rest)] if self._inside else [Text(rest)]


def _is_bare(text: str) -> bool:
    """True if the text begins with the name of a channel as no sentence does."""
    return text.startswith(BARE_OPEN) and text[len(BARE_OPEN) : len(BARE_OPEN) + 1].isupper()


def held(text: str, *marks: str) -> int:
    """How many letters at the end of the text may begin one of these marks."""
    return max((n for mark in marks for n in range(1, len(mark)) if text.endswith(mark[:n])), default=0)


class Channels:
    """Splits a stream of text into answer and reasoning by its channels."""

    def __init__(self) -> None:
        self._rest, self._in_header, self._final = "", True, False

    def feed(self, text: str) -> list[Text | Reasoning]:
        """Add a piece of text; the events that are certain so far."""
        self._rest += text
        said: list[Text | Reasoning] = []
        while self._header() if self._in_header else self._message(said):
            pass
        return said

    def flush(self) -> list[Text | Reasoning]:
        """The rest of the text, at the end of the stream."""
        rest, self._rest = self._rest, ""
        for end in _ENDS:
            rest = rest.removesuffix(end)
        return [] if self._in_header or not rest else [self._event(rest)]

    def _header(self) -> bool:
        """Go on to the message; False if its header isn't complete."""
        header, mark, rest = self._rest.partition(MESSAGE)
        if mark:
            channel = header.rpartition(CHANNEL)[2].partition("<|")[0]
            self._final = channel.split()[:1] == [_FINAL]
            self._in_header, self._rest = False, rest
        return bool(mark)

    def _message(self, said: list[Text | Reasoning]) -> bool:
        """Say what is certain of the message; True if it ends here."""
        marks = _ENDS_OF[self._final]
        ends = [at for mark in marks if (at := self._rest.find(mark)) >= 0]
        at = min(ends, default=len(self._rest) - held(self._rest, *marks))
        body, self._rest, self._in_header = self._rest[:at], self._rest[at:], bool(ends)
        said += [self._event(body)] if body else []
        return bool(ends)

    def _event(self, text: str) -> Text | Reasoning:
        return Text(text) if self._final else Reasoning(text)

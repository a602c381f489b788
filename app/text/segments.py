"""Cuts an answer into segments while it streams: sentences and clauses of a line, lines of code, rows of tables and blank lines.

Where a text is cut depends on the text alone, never on the pieces in which it comes. Only `Segmenter.clause` cuts where a reader has waited long.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal, NamedTuple, Protocol

from app.text.blocks import closes, sentences

Kind = Literal["words", "row", "blank", "opening", "code", "closing", "sources"]
"""What a segment is; `sources` is the list of a model, which readers don't get."""

LONGEST_SENTENCE = 400  # characters; a longer one is cut at a clause
SHORTEST = 20  # characters of a clause
AHEAD = 80  # characters that tell whether a sentence ends before them

_MARKS = re.compile(r"(?:[ \t>]++|[-*+][ \t]++|\d{1,9}[.)][ \t]++)*+")
_NESTED = re.compile(r"[ \t]|[-*+>]|\d+[.)]")
_CITED = r"\[[^\[\]\n]{1,40}\](?!\()|【[^】\n]{1,40}】"
_BEHIND = re.compile(rf"(?:(?:{_CITED})+[.,;]?(?:[ \t]+|(?=\n)|\Z))+")  # the citations after a stop
_UNDECIDED = re.compile(rf"(?:{_CITED}|[ \t.,;])*(?:\[[^\[\]\n]{{0,40}}\]?|【[^】\n]{{0,40}}】?)?")
_AFTER_FENCE = re.compile(rf"[ \t(]*+(?:(?:[^\W\d_]{{1,30}}[ \t]++)?(?:{_CITED})|<\|)")
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, 0xFEFF)) | dict.fromkeys((0x85, 0x2028, 0x2029), " ")
_GAP = re.compile(r"(?<=\S)[ \t]++(?=\S)")


class Segment(NamedTuple):
    """A part of an answer, which ends where a blank or the text ends, or before one.

    `first` and `last` tell whether it begins and ends its line. If it is `open`, its sentence goes on in the next one.
    """

    text: str
    kind: Kind = "words"
    first: bool = True
    last: bool = True
    open: bool = False


class Judge(Protocol):
    """Decides what readers get of a text, segment by segment."""

    def feed(self, segment: Segment) -> Iterable[Segment]:
        """What is decided by now."""

    def rest(self) -> Iterable[Segment]:
        """What was held, at the end of the text. A segment that is fed afterwards is of a new one."""


class Line:
    """A line of judges: each gets what the one before it lets pass."""

    def __init__(self, *judges: Judge) -> None:
        self._judges = judges

    def feed(self, segments: Iterable[Segment], *, ends: bool = False) -> str:
        """What readers get by now; all of it if the text `ends` here."""
        for judge in self._judges:
            segments = [passed for segment in segments for passed in judge.feed(segment)]
            if ends:
                segments += judge.rest()
        return "".join([one.text for one in segments])


class Segmenter:
    """The one buffer of an answer."""

    def __init__(self) -> None:
        self._held = ""  # of the line
        self._begun = False  # a part of the line is cut off
        self._fence = ""  # that the code has begun with
        self._above = ""  # the line of words above, with a blank one if that follows: what is indented below is code

    def feed(self, text: str) -> Iterator[Segment]:
        """The segments that are whole by now."""
        whole = f"{self._held}{text}"
        *lines, self._held = (whole if text.isprintable() and "\r" not in whole else _clean(whole)).split("\n")
        for line in lines:
            yield from self._line(f"{line}\n")
        held = self._held
        blank = not held[-len(text) - 6 :].isalnum()  # else none has come, at which a sentence ends
        if blank and self._is_words():
            yield from self._begun_line(long=len(held) // AHEAD > (len(held) - len(text)) // AHEAD)

    def rest(self) -> Iterator[Segment]:
        """The segments of the end. A text that is fed afterwards is a new one."""
        held, self._held = self._held.replace("\r", "\n"), ""
        if held:
            yield from self._line(held)
        self._begun, self._fence, self._above = False, "", ""

    def clause(self) -> Iterator[Segment]:
        """The sentence that waits for its end, up to its last clause, else up to its last word."""
        if self._is_words() and (end := _clause(self._held[:LONGEST_SENTENCE])):
            yield self._cut(end, goes_on=True)

    def _cut(self, end: int, *, goes_on: bool = False) -> Segment:
        first, self._begun = not self._begun, True
        text, self._held = self._held[:end], self._held[end:]
        self._above = self._above if not first else text
        return Segment(text, "words", first, last=False, open=goes_on)

    def _is_words(self) -> bool:
        """True if sentences of an incomplete line can be told apart: rows, code and blank lines come as a whole."""
        if self._begun:
            return bool(self._held)
        head = _bare(self._held)
        is_code = bool(self._fence) or self._is_indented(self._held)
        return bool(head) and not is_code and not head.startswith(("```", "~~~", "|")) and head.strip("`~") != ""

    def _begun_line(self, *, long: bool) -> Iterator[Segment]:
        *whole, rest = _sentences(self._held)
        if whole and rest[:1] in {"[", "【"} and len(rest) < AHEAD and _UNDECIDED.fullmatch(rest):
            rest = whole.pop() + rest
        for sentence in whole:
            for text, goes_on in _clauses(sentence):
                yield self._cut(len(text), goes_on=goes_on)
        while long and len(self._held) > LONGEST_SENTENCE + AHEAD and (end := _clause(self._held[:LONGEST_SENTENCE])):
            yield self._cut(end, goes_on=True)

    def _line(self, line: str) -> Iterator[Segment]:
        """The segments of a line that is whole, or of its rest."""
        first, self._begun = not self._begun, False
        if first:
            yield from self._whole(line)
            return
        yield from _of_words(line, first=False)

    def _whole(self, line: str) -> Iterator[Segment]:
        head = _bare(line)
        sign = head[:1] if head[:1] in {"`", "~"} else ""
        length = len(head) - len(head.lstrip(sign)) if sign else 0
        if self._fence:
            if closes(line, self._fence):
                self._fence = ""
                yield Segment(line, "closing")
            elif self._above and head.startswith(self._fence) and _AFTER_FENCE.match(head, length):
                self._fence, at = "", len(line) - len(head) + length
                yield Segment(f"{line[:at]}\n", "closing")
                yield from self._whole(line[at:].lstrip())  # models write a citation there, or how their turn ends
            else:
                yield Segment(line, "code")
        elif not head.strip():
            self._above = self._above and f"{self._above.rstrip()}\n\n"
            yield Segment(line, "blank")
        elif length > 2 and (sign == "~" or sign not in head[length:]):
            self._fence = sign * length
            yield Segment(line, "opening")
        elif self._is_indented(line):
            yield Segment(line, "code")
        else:
            self._above = line
            yield from [Segment(line, "row")] if sign == "|" or head[:1] == "|" else _of_words(line, first=True)

    def _is_indented(self, line: str) -> bool:
        """True if the line is code without a fence."""
        apart = self._above.endswith("\n\n") and not _NESTED.match(self._above)
        return apart and line.startswith(("    ", "\t"))


def segments(text: str) -> Iterator[Segment]:
    """The segments of a whole text."""
    segmenter = Segmenter()
    yield from segmenter.feed(text)
    yield from segmenter.rest()


def _clean(text: str) -> str:
    """The text without control characters, with newlines as line ends; one that may be the first half of such waits at its end."""
    end = "\r" if text.endswith("\r") else ""
    return text.removesuffix(end).replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS) + end


def _of_words(line: str, *, first: bool) -> Iterator[Segment]:
    parts = [part for sentence in _sentences(line) for part in _clauses(sentence)]
    for number, (text, goes_on) in enumerate(parts, start=1):
        yield Segment(text, "words", first and number == 1, number == len(parts), goes_on)


def _bare(line: str) -> str:
    """The line without the marks of the blocks that it is in."""
    return line[_MARKS.match(line).end() :]  # type: ignore[union-attr]  # it matches nothing too


def _sentences(text: str) -> list[str]:
    """The sentences of a line, each with the citations behind its stop."""
    if not any(map(text.__contains__, ".!?…")):
        return [text]
    found = list[str]()
    for sentence in sentences(text):
        behind = _BEHIND.match(sentence) if found and sentence[:1] in {"[", "【"} else None
        at = behind.end() if behind and behind.end() <= AHEAD else 0
        if at:
            found[-1] += sentence[:at]
        if sentence[at:].strip() or not found:
            found.append(sentence[at:])
        else:
            found[-1] += sentence[at:]
    return found


def _clauses(sentence: str) -> Iterable[tuple[str, bool]]:
    """The parts of a sentence, each with whether it goes on; most have one."""
    while len(sentence) > LONGEST_SENTENCE and (end := _clause(sentence[:LONGEST_SENTENCE])):
        yield sentence[:end], True
        sentence = sentence[end:]
    yield sentence, False


def _clause(text: str) -> int:
    """The end of the last clause if little follows it, else of the last word, outside of code and brackets; 0 if there is none."""
    word = 0
    for gap in reversed([*_GAP.finditer(text, SHORTEST)]):
        before = text[: gap.start()]
        if word and 3 * gap.end() < 2 * len(text):
            break
        if _is_closed(before):
            if before[-1] in ",;:–—":
                return gap.end()
            word = word or gap.end()
    return word


def _is_closed(text: str) -> bool:
    return text.count("`") % 2 == 0 and all(text.count(one) <= text.count(other) for one, other in ("[]", "()", "【】"))

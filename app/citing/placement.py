"""What moves or leaves an answer, segment by segment: citations, the model's own list of sources, and retrieval's words.

A number that is repeated in a run of citations is left out. A line of citations alone moves to the end of the sentence
above it. If that sentence introduces code and cites nothing, the code waits until the text after it has come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import lru_cache

from app.citing.citations import BRACKET, Citations, inner
from app.text.blocks import ITEM
from app.text.segments import Segment

LONGEST_WAIT = 1000  # characters of code; longer code is shown at once
LONGEST = 450  # characters of an answer in which words of models about passages are rewritten
LONGEST_LIST = 4000  # characters; a longer text is more than a list of sources
_INDENT = ("  ", "\t")
_SOURCE = ("[", "【", "<", "http://", "https://")  # with which an item of a list of sources may begin
_OF_SOURCES = ("[", "【", "://", "www.")  # of which such a list has one
_LINE_END = Segment("\n", "blank", first=False)

_RUN = re.compile(
    rf"(?P<code>(`{{1,20}})(?!`)[^`\n]{{1,300}}(?<!`)\2(?!`))|{BRACKET.pattern}(?:[ \t]{{0,3}}[,;]?[ \t]{{0,3}}{BRACKET.pattern}){{0,20}}"
)
_BEHIND = re.compile(r"[ \t]*(?:[.:;,](?=\s|\Z)|(?=\n)|\Z)")
_SEPARATORS = re.compile(r"[\s,;.:()*_–—-]*+(?:[^\W\d_]++)?[\s,;.:()*_–—-]*+")


class OwnList:
    """Removes a list of sources at the end of a text, below one of the headings, because ours follows."""

    def __init__(self, headings: frozenset[str]) -> None:
        self._headings = headings  # in small letters
        self._held = list[Segment]()  # blank lines, and a heading with what can be its list

    def feed(self, segment: Segment) -> list[Segment]:
        """The segments that can't belong to such a list."""
        held = self._held
        headed = any(one.kind == "words" for one in held)
        if headed and sum(len(one.text) for one in held) > LONGEST_LIST:
            goes_on = False
        elif segment.kind == "blank":
            goes_on = True
        else:
            goes_on = segment.kind == "words" and (self._lists(segment) if headed else self._heads(segment))
        if goes_on:
            held.append(segment)
            return []
        self._held = []
        return [*held, *self.feed(segment)] if headed else [*held, segment]

    def _heads(self, segment: Segment) -> bool:
        name = segment.text.strip(" \t\n#*_:").casefold()
        return segment.first and segment.last and name in self._headings

    @staticmethod
    def _lists(segment: Segment) -> bool:
        text = segment.text
        return (
            not segment.first or bool(ITEM.match(text)) or text.lstrip().startswith(_SOURCE) or text.startswith(_INDENT)
        )

    def rest(self) -> list[Segment]:
        """What was held, as one segment of `sources` if it is such a list."""
        held, self._held = self._held, []
        listed = "".join(one.text for one in held)
        lists = [one.kind for one in held].count("words") > 1 and any(map(listed.__contains__, _OF_SOURCES))
        return [Segment(listed, "sources")] if lists else held


class Placement:
    """Moves and merges citations."""

    def __init__(self, citations: Citations) -> None:
        self._citations = citations
        self._end = list[Segment]()  # of the last line of text: its line end, and the blank lines and code after it
        self._line: str | None = (
            None  # how the line of text above begins, "" if no citation can move there; None if none has come
        )
        self._cites = set[str]()  # pages that it cites

    def feed(self, segment: Segment) -> Sequence[Segment]:
        """The segments that are decided by now."""
        if segment.kind in {"words", "row"}:
            alone = segment.first and segment.last and self._has_text and self._alone(segment.text)
            return self._moved(segment.text) if alone else self._text(segment)
        while segment.kind == "sources" and self._end and self._end[-1].kind == "blank":
            self._end.pop()
        self._end.append(segment)
        waits = self._line and sum([len(one.text) for one in self._end]) <= LONGEST_WAIT
        if waits and not (self._cites and {one.kind for one in self._end} != {"blank"}):
            return ()
        self._line = self._line and ""
        return self.rest()

    @property
    def _has_text(self) -> bool:
        """True if a line of text is above; a row isn't one."""
        return self._line is not None and not self._line.lstrip().startswith("|")

    def rest(self) -> Sequence[Segment]:
        """The line end and what is below it."""
        held, self._end = self._end, []
        return held

    def _text(self, segment: Segment) -> Sequence[Segment]:
        above: Sequence[Segment] = ()
        if segment.first or self._end:
            above, self._line, self._cites = self.rest(), segment.text, set()
        text = self._merged(segment.text, last=segment.last)
        if text.endswith("\n"):
            self._end, text = [_LINE_END], text[:-1]
        return [*above, segment._replace(text=text)]

    # ---- a line of citations alone ---------------------------------------------------------------------

    def _alone(self, line: str) -> bool:
        """True if the line has nothing but citations, and perhaps what models call a passage."""
        if ITEM.match(line) or line.strip()[:1].isdecimal():
            return False
        rest, cites = line, False
        for found in BRACKET.finditer(line):
            if self._pages(found[0]):
                rest, cites = rest.replace(found[0], " ", 1), True
        word = "".join(filter(str.isalpha, rest)).casefold()
        return cites and (not word or word in self._citations.words) and bool(_SEPARATORS.fullmatch(rest))

    def _moved(self, line: str) -> Sequence[Segment]:
        """Puts the citations of this line at the end of the sentence above, or counts them if readers have it already."""
        marks = list[str]()
        for found in BRACKET.finditer(line):
            pages = self._pages(found[0])
            if pages and pages <= self._cites:
                self._citations.hidden.append(inner(found[0]))
            elif pages:
                marks.append(self._unseen(found[0], self._cites))
            self._cites |= pages
        if marks and self._line:
            return [Segment(f" {''.join(marks)}", first=False, last=False)]
        self._citations.hidden += map(inner, marks)
        return ()

    # ---- within a line of text ---------------------------------------------------------------------------

    def _merged(self, text: str, *, last: bool) -> str:
        """The text with the citations of each run once for each page."""
        parts, at, before = list[str](), 0, set[str]()
        for run in _RUN.finditer(text):
            said = text[: run.start()]
            if (
                run["code"]
                or said[-1:].isalnum()
                or said[-1:] == "_"
                or not any(self._pages(one[0]) for one in BRACKET.finditer(run[0]))
            ):
                continue  # code, or an index, as in a[1][1]
            behind = _BEHIND.match(text, run.end())
            ends = behind if behind and (last or behind.end() < len(text)) else None
            # behind a stop, it repeats the one before that
            kept, before = self._run(
                run[0], before if ends and said.rstrip(" \t").endswith(("].", "】.", ").")) else set()
            )
            parts += [text[at : run.start()], kept]
            at = ends.end() if ends and not kept else run.end()
        return "".join([*parts, text[at:]])

    def _run(self, run: str, seen: set[str]) -> tuple[str, set[str]]:
        """What stays of a run of citations if these pages were cited before, and the pages that it cites."""
        parts, at, found = list[str](), 0, set[str]()
        for one in BRACKET.finditer(run):
            between, at = run[at : one.start()], one.end()
            pages = self._pages(one[0])
            if pages and pages <= seen | found:
                self._citations.hidden.append(inner(one[0]))
            else:
                parts += [between, self._unseen(one[0], seen | found)]
            found |= pages
        self._cites |= found
        return "".join(parts), found

    def _unseen(self, bracket: str, seen: set[str]) -> str:
        """The bracket with the passages whose pages aren't seen yet; unchanged if that is all of them."""
        numbers = self._citations.numbers(inner(bracket))
        left = [number for number in numbers if self._citations.pages[number - 1] not in seen]
        return bracket if len(left) == len(numbers) else "".join(f"[{number}]" for number in left)

    def _pages(self, bracket: str) -> set[str]:
        return {self._citations.pages[number - 1] for number in self._citations.numbers(inner(bracket))}


class Wording:
    """Rewrites the first line of a text. Words that the reader or a page uses stay: `known` gives all their text."""

    def __init__(self, words: Mapping[str, str], known: Callable[[], str]) -> None:
        self._words, self._known = words, known
        self._left = LONGEST if words else 0  # characters that may still be rewritten

    def feed(self, segment: Segment) -> Sequence[Segment]:
        """The segment in the words of readers, up to the first code."""
        if not self._left:
            return (segment,)
        text = segment.text[: self._left]
        prose = text.partition("`")[0]
        ends = segment.last or prose != text or len(segment.text) > len(text)
        self._left = 0 if ends else self._left - len(text)
        said = _pattern_of(tuple(self._words)).sub(self._word, prose)
        return (segment._replace(text=said + segment.text[len(prose) :]),)

    def rest(self) -> Iterable[Segment]:
        """Nothing: no word waits."""
        return ()

    def _word(self, found: re.Match[str]) -> str:
        word = self._words[found[0].casefold()]
        if found[0].casefold() in self._known().casefold():
            return found[0]
        return word.capitalize() if found[0][0].isupper() else word


@lru_cache(maxsize=32)
def _pattern_of(words: tuple[str, ...]) -> re.Pattern[str]:
    """The words, but not where they name a passage by its number: that is a citation."""
    longest_first = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![\w\[(-])(?:{longest_first})(?![\w-]|\s*[\[\d])", re.IGNORECASE)

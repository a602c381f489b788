"""Proves an answer, segment by segment: marks or removes what no passage proves, and ends it where it recites, loops or goes on as somebody else."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from app.core.settings_types import Unproven as Mode
from app.core.turn import Ending, Unsupported
from app.proof.check import CITATION, Checker
from app.text.analysis import WORD
from app.text.blocks import FENCE, ITEM, code_spans
from app.text.segments import LONGEST_SENTENCE, Segment

LONGEST_MARK = 10  # characters before the place of a passage: its number, signs of a list or quotation
RECITED = 8  # words in a row of the instructions
FEWEST_FAULTS = 2  # that make an answer a refusal
LONGEST_RUN = 200  # characters before a text that are compared with it
REPEATED = 6  # words of a sentence that nobody writes twice
LONGEST_CIRCLE = 80
ROUNDS = 4
LONGEST_ROUND = 8  # sentences or items

_TOKEN = re.compile(r"<\|[^|>\n]{1,30}\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>")
_SPEAKER = re.compile(
    r"[ \t]*(?:#{1,4}[ \t]*(?:Response|Instructions?|Input|Human|Assistant|User|Question|System)[ \t]*(?::|$)"
    r"|(?:User|Human|Assistant|System):)",
    re.MULTILINE,
)

Compare = Callable[[str], Awaitable[Mapping[int, float]]]
"""How near a statement is in meaning to the passages, by number; empty if that can't be told."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """A system message that no reader should get, and the `sites` whose passages it has."""

    text: str
    sites: tuple[str, ...] = ()

    def beside(self, sites: Iterable[str]) -> Instructions:
        """The same message with passages of these sites."""
        return replace(self, sites=tuple(sites))

    def names_place(self, line: str) -> bool:
        """True if a line says where a passage is from, as the line above each does: `[2] docs.example.org > Page`."""
        return any(0 <= line.find(f"{site} > ") <= LONGEST_MARK for site in self.sites)

    def recited(self, text: str) -> bool:
        """True if `RECITED` words of the text in a row are of the instructions."""
        told, known = _told(self.text)
        words, row = WORD.findall(text.casefold()), 0
        for at, word in enumerate(words, start=1):
            row = row + 1 if word in known else 0
            if row >= RECITED and f" {' '.join(words[at - RECITED : at])} " in told:
                return True
        return False


@lru_cache(maxsize=32)
def _told(text: str) -> tuple[str, frozenset[str]]:
    """The words of a text in a row, and each once."""
    words = WORD.findall(text.casefold())
    return f" {' '.join(words)} ", frozenset(words)


class Prover:
    """Judges the segments of an answer, and returns what readers get of each: a statement is judged before it is shown.

    `faults` is what isn't proved; `judged` counts the statements, of which a block of code is one, `wrong` those that aren't proved, and
    `held` those that say what the passages say;
    `ending` says why the rest of the answer is left out.
    A statement that words leave in doubt is decided by its meaning, which `compare` tells.
    """

    def __init__(
        self, checker: Checker, mode: Mode, sign: str, instructions: Instructions, compare: Compare | None = None
    ) -> None:
        self._checker, self._mode, self._sign = checker, mode, sign
        self._instructions, self._compare = instructions, compare
        self.faults: list[Unsupported] = []
        self.judged = self.wrong = self.held = 0
        self.ending: Ending = ""
        self._open = ""  # the sentence that goes on; what isn't proved is marked at its end, or never shown
        self._code: list[Unsupported] | None = None  # of the block of code above, or that is being written
        self._fence = ""  # that it has begun with, while it is open
        self._naming = False  # the line says where a passage is from
        self._said: list[str] = []  # sentences, without their citations
        self._shown = ""  # the end of what was shown
        self._repeated = 0  # sentences

    @property
    def refuted(self) -> bool:
        """True if more than half of the answer isn't proved, and that isn't one statement, or it recites the instructions."""
        few = self.wrong < FEWEST_FAULTS  # one can be a false alarm
        return self.ending == "recited" or (not few and 2 * self.wrong > self.judged)

    @property
    def disproved(self) -> bool:
        """True if no statement of the answer is proved."""
        return bool(self.wrong) and (self.wrong >= self.judged or not self.held)

    @property
    def empty(self) -> bool:
        """True if an answer says nothing that the passages say, and nothing else that can be judged: mostly, it refuses in other words."""
        return bool(self.judged) and not self.held and not self.wrong

    async def feed(self, segment: Segment) -> list[Segment]:
        """What readers get of the segment."""
        if self._mode == "off" or self.ending:
            return [] if self.ending else [segment]
        if segment.kind == "code":
            return self._coded(segment)
        if segment.kind == "blank":
            return [segment]
        if segment.kind in {"opening", "closing"}:
            found = FENCE.search(segment.text) if segment.kind == "opening" else None
            named, self._fence = [] if found is None else self.rest(), found[0] if found else ""
            return [*named, segment] if found else [segment, *self.rest()]
        if segment.first:
            self._naming = self._instructions.names_place(segment.text)
        if self._naming:
            return []
        named, turned = self.rest(), self._turned(segment)
        shown = await self._judged(turned) if turned.text.strip() else turned.text
        return [*named, turned._replace(text=shown)] if shown else named

    def rest(self) -> list[Segment]:
        """The sign below a block of code; inside it, a reader would copy it."""
        faults, self._code = self._code, None
        if not faults or self._mode != "mark":
            return []
        closing = [Segment("\n", "code"), Segment(f"{self._fence}\n", "closing")] if self._fence else []
        lines = ", ".join(f"`{fault.text}`" for fault in faults[:3] if "`" not in fault.text)
        return [*closing, Segment("\n", "blank"), Segment(f"{self._sign} {lines}\n"), Segment("\n", "blank")]

    def doubted(self, faults: Sequence[Unsupported]) -> list[Segment]:
        """What readers get below the answer of statements of it that a second opinion found unproved."""
        self.faults += faults
        self.wrong += len(faults)
        return [
            part
            for fault in faults
            for part in (Segment("\n\n", "blank"), Segment(f"{CITATION.sub('', fault.text)} {self._sign}"))
        ]

    def _coded(self, segment: Segment) -> list[Segment]:
        if not segment.text.strip():
            return [segment]
        if self._code is None:
            self._code = []
            self.judged += 1
        faults = self._checker.code(segment.text)
        self.wrong += bool(faults) and not self._code
        self.held += not faults
        self.faults += faults
        self._code += faults
        return [] if faults and self._mode == "remove" else [segment]

    def _turned(self, segment: Segment) -> Segment:
        """The segment up to a sign that somebody else speaks; such a sign at the beginning of the answer is left out."""
        text = segment.text
        match = _SPEAKER.match(text) if segment.first else None
        match = match or (_TOKEN.search(text) if "<" in text or "[" in text else None)
        if match is None:
            return segment
        if not self._shown and not text[: match.start()].strip():
            return self._turned(segment._replace(text=text[match.end() :].lstrip()))
        self.ending = "turned"
        return segment._replace(text=text[: match.start()])

    # ---- statements ------------------------------------------------------------------------------

    async def _judged(self, segment: Segment) -> str:
        """What is shown of a sentence, or of a part of one, with the sign if it isn't proved."""
        sentence, shown = self._open + segment.text, 0 if self._mode == "remove" else len(self._open)
        text = sentence[shown:]
        if self._instructions.recited(self._shown + text):
            self.ending = "recited"
            return ""
        self._shown = (self._shown + text)[-LONGEST_RUN:]
        goes_on, self._open = bool(self._open), sentence if segment.open else ""
        if segment.open:
            if goes_on and len(sentence) > LONGEST_SENTENCE and _circles(sentence):
                self.ending = "looped"
            return "" if self.ending or self._mode == "remove" else text
        nothing = "\n" if text.endswith("\n") and not segment.first else ""
        if self._is_said(sentence.strip()):
            return nothing
        self.judged += 1
        faults = self._checker.sentence(sentence.strip())
        if self._checker.undecided:
            bare = CITATION.sub("", faults[0].text)
            faults = self._checker.compared(faults[0], await self._compare(bare) if self._compare else {})
        self.faults += faults
        self.wrong += bool(faults)
        if not faults:
            self.held += self._checker.undecided or self._checker.held(sentence.strip())
            return text
        return nothing if self._mode == "remove" and not shown else self._marked(sentence, shown)

    def _marked(self, sentence: str, shown: int) -> str:
        """The end of a sentence with the sign, in place of its citations."""
        text = _without(sentence, _citations(sentence), shown)
        bare = text.rstrip()
        if bare.endswith("|"):
            return f"{bare[:-1].rstrip()} {self._sign} |{text[len(bare) :]}"
        return f"{bare} {self._sign}{text[len(bare) :]}"

    def _is_said(self, sentence: str) -> bool:
        """True if the sentence was said before, word for word; a short one counts if it is said again and again.

        The number of an item isn't compared, nor are citations.
        """
        if mark := ITEM.match(sentence):
            sentence = sentence[mark.end() :]
        bare = CITATION.sub("", sentence) if "[" in sentence else sentence
        words = bare.split()
        long = len(words) >= REPEATED
        known = long and bare in self._said
        self._said.append(bare)
        order = self._said[-2 * LONGEST_ROUND :]
        rounds = [size for size in range(1, len(order) // 2 + 1) if order[-size:] == order[-2 * size : -size]]
        again = known or bool(rounds)
        self._repeated += again
        circles = ROUNDS * len(set(words)) <= 2 * len(words) and _circles(bare.rstrip(".!?…"))
        if circles or self._repeated >= ROUNDS - 1:
            self.ending = "looped"
        return again and (long or rounds != [1] or bool(self.ending))


def _citations(sentence: str) -> list[re.Match[str]]:
    """The citations of a sentence; what looks like one in code is an index."""
    places = list(CITATION.finditer(sentence))
    spans = list(code_spans(sentence)) if places else []
    return [place for place in places if not any(start < place.end() <= end for start, end in spans)]


def _without(sentence: str, places: Sequence[re.Match[str]], shown: int) -> str:
    """The sentence from here on without these citations."""
    for place in reversed(places):
        if place.start() >= shown:
            sentence = sentence[: place.start()] + sentence[place.end() :]
    return sentence[shown:]


def _circles(text: str) -> bool:
    """True if the text ends with the same words again and again."""
    tail = text.rstrip()
    return any(tail.endswith(tail[-size:] * ROUNDS) for size in range(2, LONGEST_CIRCLE))

"""Proves an answer while it streams: marks or removes what no passage proves, and ends it where it recites, loops or goes on as somebody else."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from operator import methodcaller

from app.core.settings_types import Unproven as Mode
from app.core.turn import Ending, Unsupported
from app.proof.check import CITATION, Checker
from app.text.blocks import code_spans, sentences

RECITED = 8  # words in a row of the instructions
FEWEST_FAULTS = 2  # that make an answer a refusal
GROUP = 4  # words in a row of the instructions: what follows waits
LONGEST_GROUP = 80  # characters of the text that has them
LONGEST_RUN = 200  # characters before a text that are compared with it
REPEATED = 6  # words of a sentence that nobody writes twice
LONGEST_SENTENCE = 400  # characters; a longer one may go round in circles
LONGEST_CIRCLE = 80
ROUNDS = 4
LONGEST_ROUND = 8  # sentences or items
CLOSES = ".!?…: \t\n\"'”’“»)]*_`"  # what may stand between a sentence and its citations
HELD = 60  # characters of a line that can be a sign of another turn

_TOKEN = re.compile(r"<\|[^|>\n]{1,30}\|>|</?s>|\[/?INST\]|<(?:start|end)_of_turn>")
_TOKEN_UNSURE = re.compile(r"(?:<(?:\|[^|>\n]{0,30}\|?|/?s?|[a-z_]{1,14})?|\[/?I?N?S?T?)\Z")
_SPEAKER = re.compile(
    r"[ \t]*(?:#{1,4}[ \t]*(?:Response|Instructions?|Input|Human|Assistant|User|Question|System)[ \t]*(?::|$)"
    r"|(?:User|Human|Assistant|System):)",
    re.MULTILINE,
)
_SPEAKER_UNSURE = re.compile(
    r"[ \t]*(?:#{1,4}[ \t]*[A-Z]?[a-z]{0,12}[ \t]*|Us?e?r?|Hu?m?a?n?|As?s?i?s?t?a?n?t?|Sy?s?t?e?m?)\Z"
)
_SIGN = re.compile(r"[^\w ,;-]")
_FENCE = re.compile(r"^[ \t]*(?:(?:[-*+]|\d{1,3}[.)])[ \t]+)?(`{3,}|~{3,})")
_ENDING = re.compile(
    r"(?:[ \t]*(?:\[[^\[\]\n]{0,40}\]?|【[^】\n]{0,40}】?))*[.!?…:]?[\"'”’“»)\]*_`]{0,3}\s*(?:\[[^\[\]\n]{0,40}\]?\s*)*\Z"
)
_LEADING = re.compile(r"(?:\[[^\[\]\n]{1,40}\](?!\()|【[^】\n]{1,40}】)+[.]?[ \t]*")
_OPEN = re.compile(r"(?:\[[^\[\]\n]{1,40}\])*\[[^\[\]\n]{0,40}\Z")
_WORD = re.compile(r"\w+")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s")


class Instructions:
    """The words of a system message that no reader should get."""

    def __init__(self, text: str) -> None:
        words = _WORD.findall(text.casefold())
        self._groups = {tuple(words[i : i + GROUP]) for i in range(len(words) - GROUP + 1)}
        self._text, self._words = f" {' '.join(words)} ", frozenset(words)

    def begins(self, text: str) -> bool:
        """True if the last `GROUP` whole words of the text are in the instructions in this order."""
        last = text[-LONGEST_GROUP:].casefold().split()[-3:-1]
        if not self._words.issuperset([word for word in last if word.isalnum()]):
            return False  # mostly
        words = _WORD.findall(text[-LONGEST_GROUP:].casefold())
        return tuple((words[:-1] if text[-1:].isalnum() else words)[-GROUP:]) in self._groups

    def recited(self, text: str) -> bool:
        """True if `RECITED` words of the text in a row are of the instructions."""
        words = _WORD.findall(text.casefold())
        return any(
            f" {' '.join(words[i : i + RECITED])} " in self._text
            for i in range(max(len(words) - RECITED + 1, 0))
            if tuple(words[i : i + GROUP]) in self._groups
        )


class Prover:
    """Reads an answer piece by piece and returns what readers get of it.

    `faults` is what isn't proved; `judged` counts the statements; `ending` says why the rest of the answer is left out.
    While it `asks` about a statement, it reads nothing more: `decide` takes how near that is to the passages in meaning.
    """

    def __init__(self, checker: Checker, mode: Mode, sign: str, instructions: Instructions) -> None:
        self._checker, self._mode, self._sign = checker, mode, sign
        self._instructions = instructions
        self.faults: list[Unsupported] = []
        self.judged = 0
        self.ending: Ending = ""
        self._asked: tuple[str, int, Unsupported] | None = None  # a sentence, what was released of it, and its fault
        self._final = False  # nothing more comes
        self._held = ""  # of the line: not released
        self._line = ""  # of the sentence: what was released
        self._fence = ""
        self._code: list[Unsupported] = []  # of the open fence
        self._said: set[str] = set()  # sentences
        self._shown = ""  # the end of what was released
        self._begun = False  # something of the answer has come
        self._fresh = True  # nothing of the line has
        self._may_repeat = True  # the sentence can still be one that was said
        self._repeated, self._order = 0, list[str]()  # sentences, the last ones

    @property
    def refuted(self) -> bool:
        """True if more than half of the answer isn't proved, and that isn't one statement, or it recites the instructions."""
        few = len(self.faults) < FEWEST_FAULTS  # one can be a false alarm
        return self.ending == "recited" or (not few and 2 * len(self.faults) > self.judged)

    @property
    def disproved(self) -> bool:
        """True if no statement of the answer is proved."""
        return bool(self.faults) and len(self.faults) >= self.judged

    def feed(self, text: str) -> str:
        """The text that is decided by now."""
        if self._mode == "off" or self.ending:
            return "" if self.ending else text
        is_plain = text.strip(" ,;").isalpha() or not _SIGN.search(text)
        if is_plain and self._line and not self._may_repeat and not self._held.strip(" "):
            return self._plain(self._held + text)  # most pieces of most answers
        self._held += text
        return self._read(final=False)

    def _plain(self, text: str) -> str:
        """Words within a sentence; the space behind them waits, because a citation may follow."""
        body = text.rstrip(" ")
        shown = self._shown + body
        if self._mode == "remove" or len(self._line) > LONGEST_SENTENCE or self._instructions.begins(shown):
            self._held = text
            return self._read(final=False)
        self._held = text[len(body) :]
        self._line += body
        self._shown = shown[-LONGEST_RUN:]
        return body

    def end(self) -> str:
        """The rest of the text."""
        if self._mode == "off" or self.ending:
            return ""
        self._final = True
        return self._rest()

    @property
    def asks(self) -> str:
        """The statement that words leave in doubt, without its citations; empty if none waits."""
        return CITATION.sub("", self._asked[2].text) if self._asked else ""

    def decide(self, nearness: Mapping[int, float]) -> str:
        """The text that is decided once the meaning of the statement is compared with the passages, by number; empty if it can't be."""
        assert self._asked
        (sentence, shown, fault), self._asked = self._asked, None
        text = self._decided(sentence, shown, self._checker.compared(fault, nearness))
        if self.ending:  # a sign of another turn was behind it
            held, self._held = self._held, ""
            return text + self._sentences(held, whole=True)
        return text + self._rest()

    def _rest(self) -> str:
        text = self._read(final=self._final)
        ends = self._final and not self.asks and self._fence
        return text + (f"\n{self._fence}{self._closing()}" if ends else "")

    def doubted(self, faults: Sequence[Unsupported]) -> str:
        """What readers get below the answer of statements of it that a second opinion found unproved."""
        self.faults += faults
        return "".join(f"\n\n{CITATION.sub('', fault.text)} {self._sign}" for fault in faults)

    def _read(self, *, final: bool) -> str:
        parts = list[str]()
        while not (self.ending or self._asked) and (at := self._held.find("\n")) >= 0:
            line, self._held = self._held[: at + 1], self._held[at + 1 :]
            parts.append(self._whole(line))
        if (self._held or (final and self._line)) and not (self.ending or self._asked):
            if final:
                line, self._held = self._held, ""
            parts.append(self._whole(line) if final else self._begun_line())
        return "".join(parts)

    # ---- lines -----------------------------------------------------------------------------------

    def _whole(self, line: str) -> str:
        """A whole line, or the rest of one."""
        if not self._line and (fence := _FENCE.match(line)):
            return self._fenced(line, fence[1])
        if self._fence:
            return self._coded(line)
        return self._sentences(self._turned(line), whole=True)

    def _fenced(self, line: str, sign: str) -> str:
        if not self._fence:
            self._fence = sign
            return line
        closes, rest = line.strip().startswith(self._fence), line.strip(" \t\n`~")
        if closes and _TOKEN.match(rest):
            self.ending, line = "turned", f"{self._fence}\n"
        elif not closes or rest:
            return self._coded(line)
        self._fence = ""
        return line + self._closing(line.endswith("\n"))

    def _coded(self, line: str) -> str:
        if not line.strip():
            return line
        faults = self._checker.code(line)
        self.judged += 1
        self.faults += faults
        self._code += faults
        return "" if faults and self._mode == "remove" else line

    def _closing(self, ended: bool = True) -> str:
        """The sign below a block of code; inside it, a reader would copy it."""
        faults, self._code = self._code, []
        if not faults or self._mode != "mark":
            return ""
        lines = ", ".join(f"`{fault.text}`" for fault in faults[:3] if "`" not in fault.text)
        return f"{'' if ended else chr(10)}\n{self._sign} {lines}\n\n"

    def _begun_line(self) -> str:
        """What can be released of a line that isn't complete."""
        if self._fence or (not self._line and self._held.lstrip()[:1] in {"`", "~"}):
            return ""
        speaker = self._fresh and len(self._held) <= HELD and _SPEAKER_UNSURE.match(self._held)
        signs = "<" in self._held or "[" in self._held
        if speaker or (signs and _TOKEN_UNSURE.search(self._held[-HELD:])):
            return ""
        text, self._held = self._turned(self._held), ""
        return self._sentences(text, whole=False)

    def _turned(self, text: str) -> str:
        """The text up to a sign that somebody else speaks; such a sign at the beginning of the answer is left out."""
        match = _SPEAKER.match(text) if self._fresh else None
        match = match or (_TOKEN.search(text) if "<" in text or "[" in text else None)
        if match is None:
            return text
        if not self._begun and not text[: match.start()].strip():
            return self._turned(text[match.end() :].lstrip())
        self.ending = "turned"
        return text[: match.start()]

    # ---- sentences -------------------------------------------------------------------------------

    def _sentences(self, text: str, *, whole: bool) -> str:
        """The text with each sentence that ends in it judged; what may belong to the end of a sentence waits."""
        if text.strip():
            self._begun, self._fresh = True, False
        if whole:
            self._fresh = True
        parts = list[str]()
        pieces = self._split(text)
        for number, piece in enumerate(pieces[:-1], start=1):
            parts.append(self._judged(piece))
            if self._asked:  # the others wait
                self._held, self._fresh = "".join(pieces[number:]) + self._held, False
                return "".join(parts)
            if self.ending and self.ending != "turned":
                return "".join(parts)
        rest = pieces[-1]
        if whole or self.ending:
            return "".join([*parts, self._judged(rest)])
        return "".join([*parts, self._released(rest)])

    def _split(self, text: str) -> list[str]:
        """The pieces that end a sentence, and the rest. Citations behind a stop belong to the sentence before it."""
        whole = self._line + text
        if not any(map(whole.__contains__, ".!?…")):
            return [text]
        pieces = list[str]()
        for sentence in sentences(whole):
            if pieces and (leading := _LEADING.match(sentence)):
                pieces[-1] += leading[0]
                sentence = sentence[leading.end() :]  # noqa: PLW2901
            elif pieces and _OPEN.match(sentence):
                pieces[-1] += sentence
                sentence = ""  # noqa: PLW2901
            if sentence:
                pieces.append(sentence)
        if len(pieces) == 1 or not self._line:
            return [whole[len(self._line) :]] if len(pieces) < 2 else pieces
        return [pieces[0][len(self._line) :], *pieces[1:]] if len(pieces[0]) >= len(self._line) else [text]

    def _released(self, text: str) -> str:
        """The beginning of a sentence, as far as it can be shown before its end."""
        if self._instructions.begins(self._shown + text):
            if self._instructions.recited(self._shown + text):
                self.ending = "recited"
            self._held = text
            return ""
        if self._mode == "remove" or self._repeats(self._line + text):
            self._held = text
            return ""
        ending = _ENDING.search(text, max(len(text) - 2 * HELD, 0))
        if ending:
            text, self._held = text[: ending.start()], text[ending.start() :]
        if len(self._line) + len(text) > LONGEST_SENTENCE and _circles(self._line + text):
            self.ending = "looped"
            return ""
        self._line += text
        self._shown = (self._shown + text)[-LONGEST_RUN:]
        return text

    def _judged(self, text: str) -> str:
        """The end of a sentence, with the sign if it isn't proved."""
        sentence, shown, self._may_repeat = (self._line + text), len(self._line), True
        self._line = ""
        bare = sentence.strip()
        if not bare:
            return text
        if self._instructions.recited(self._shown + text):
            self.ending = "recited"
            return ""
        self._shown = (self._shown + text)[-LONGEST_RUN:]
        if self._is_said(bare):
            return ""
        faults = self._checker.sentence(bare)
        if self._checker.undecided:
            self._asked = sentence, shown, faults[0]
            return ""
        return self._decided(sentence, shown, faults)

    def _decided(self, sentence: str, shown: int, faults: Sequence[Unsupported]) -> str:
        """The end of a sentence that is judged."""
        text = sentence[shown:]
        self.judged += 1
        if not faults:
            return text
        self.faults += faults
        if self._mode == "remove" and not shown:
            return "\n" if text.endswith("\n") else ""
        return self._marked(sentence, shown)

    def _marked(self, sentence: str, shown: int) -> str:
        """The end of a sentence with the sign, in place of its citations."""
        text = _without(sentence, _citations(sentence), shown)
        bare = text.rstrip()
        if bare.endswith("|"):
            return f"{bare[:-1].rstrip()} {self._sign} |{text[len(bare) :]}"
        return f"{bare} {self._sign}{text[len(bare) :]}"

    # ---- what ends an answer ---------------------------------------------------------------------

    def _repeats(self, text: str) -> bool:
        """True if the text is the beginning of a sentence that was said already."""
        bare = text.strip()
        if "[" in text and len(text) <= LONGEST_RUN:  # without the citations at the end
            at = len(text[: text.index("[")].rstrip(CLOSES))
            bare = (text[:at] + _ENDING.sub("", text[at:])).strip()
        self._may_repeat = self._may_repeat and any(map(methodcaller("startswith", bare), self._said))
        return self._may_repeat and bool(bare)

    def _is_said(self, sentence: str) -> bool:
        """True if the sentence was said before, word for word; a short one counts if it is said again and again.

        The number of an item isn't compared, nor are citations.
        """
        if mark := _ITEM.match(sentence):
            sentence = sentence[mark.end() :]
        bare = CITATION.sub("", sentence) if "[" in sentence else sentence
        words = bare.split()
        long = len(words) >= REPEATED
        order = self._order = [*self._order[1 - 2 * LONGEST_ROUND :], bare]
        rounds = [size for size in range(1, len(order) // 2 + 1) if order[-size:] == order[-2 * size : -size]]
        again = bool(rounds) or (long and bare in self._said)
        self._repeated += again
        self._said |= {sentence, bare}
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

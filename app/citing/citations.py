"""Citations of an answer, numbered as in its list of sources, and their places in the text while it streams.

A number that is repeated in a run of citations is left out. A line of citations alone moves to the end of the sentence
above it. If that sentence introduces code and cites nothing, the code waits until the text after it has come.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from app.core.language import Language
from app.text.analysis import fold
from app.text.blocks import informal_sentences

LARGEST = 50  # more passages are never retrieved, so a larger number is a value, not a citation


@dataclass
class Citations:
    """Numbers the cited pages in the order of their first use."""

    pages: tuple[str, ...]  # the page of each passage
    first: int = 1  # number of the first source
    words: frozenset[str] = frozenset()  # what models call a passage
    and_or: frozenset[str] = frozenset()  # what models write between numbers
    used: set[int] = field(default_factory=set)  # numbers of the passages that were cited
    _order: list[str] = field(default_factory=list)
    _read: dict[str, list[int] | None] = field(default_factory=dict)

    @property
    def any(self) -> bool:
        """True if something was cited."""
        return bool(self._order)

    def cited(self, words: str) -> str | None:
        """The replacement for these words and their brackets; None if they are no citation.

        Removes a number that no passage has. These are values, not citations: 0, numbers over 50, a list without any
        number of a passage, a range that exceeds them.
        """
        ours = self._ours(words)
        if ours is None:
            return None
        self.used.update(ours)
        return "".join(f"[{number}]" for number in dict.fromkeys(self._number(passage) for passage in ours))

    def numbers(self, words: str) -> list[int]:
        """The passages that these words cite; empty if they are no citation."""
        return self._ours(words) or []

    def _ours(self, words: str) -> list[int] | None:
        if words not in self._read:  # the same few again and again
            self._read[words] = self._found(words)
        return self._read[words]

    def _found(self, words: str) -> list[int] | None:
        if not (words.isdecimal() and len(words) < 4) and not _pattern(self.words, self.and_or).fullmatch(words):
            return None
        numbers = list(self._numbers(words.partition("†")[0]))
        ours = [number for number in numbers if 1 <= number <= len(self.pages)]
        if not all(1 <= number <= max(LARGEST, len(self.pages)) for number in numbers):
            return None
        return None if len(numbers) > 1 and not ours else ours

    def invented(self, words: str) -> list[int]:
        """The numbers of a citation that no passage has."""
        return [number for number in self._numbers(words.partition("†")[0]) if number > len(self.pages)]

    def _numbers(self, words: str) -> Iterator[int]:
        """The numbers of a list, and all numbers of a range; 0 for a range that isn't from one passage to a later one."""
        for match in _RANGE.finditer(words):
            low, high = int(match[1]), int(match[2] or match[1])
            yield from range(low, high + 1) if low == high or low < high <= len(self.pages) else [0]

    def _number(self, passage: int) -> int:
        page = self.pages[passage - 1]
        if page not in self._order:
            self._order.append(page)
        return self._order.index(page) + self.first

    def listed(self) -> list[tuple[int, list[int]]]:
        """The cited pages, numbered as in the text, each with its cited passages; all pages if none was cited."""
        used = self.used or set(range(1, len(self.pages) + 1))
        order = self._order or list(dict.fromkeys(self.pages))
        passages = [[number for number in sorted(used) if self.pages[number - 1] == page] for page in order]
        return list(enumerate(passages, self.first))


def inner(bracket: str) -> str:
    """The words in the brackets of a citation, without the address behind it."""
    return bracket.partition("](")[0].strip("[]【】")


BRACKET = re.compile(r"(?:\[\[?[^\[\]`\n]{1,80}\]?\]|【[^【】`\n]{1,80}】)(?:\([^()\s]{0,2000}\))?")
"""Text that can be a citation, with the address that some models write behind it."""
_RANGE = re.compile(r"(\d{1,3})(?:\s{0,9}[-–—\u2011]\s{0,9}[^\W\d]{0,30}\s{0,9}(\d{1,3}))?")


@lru_cache(maxsize=8)
def _pattern(words: Iterable[str], and_or: Iterable[str]) -> re.Pattern[str]:
    """One number or a list of them: [2], [^2], [1, 2], [1–3], [passage 2], [1 and 2], [1†source]."""
    called = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    number = rf"(?:(?:{called})\.?\s*)?[\^#]?\d{{1,3}}" if called else r"[\^#]?\d{1,3}"
    between = "|".join((r"[,;&–—\u2011-]", *(rf"\b{re.escape(word)}\b" for word in sorted(and_or))))
    return re.compile(rf"\s*{number}(?:\s*(?:{between})\s*{number})*\s*(?:†.*)?", re.IGNORECASE)


_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
WORDS = re.compile(
    rf"( {{0,3}})({_MARKER} {{1,3}}|#{{1,6}} )?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?=[^\W_]|[^\x00-\x7f\s【]|`{{1,2}}[^`])(?!\d{{1,9}}(?:[.)]|\Z))"
)
WORDS_UNSURE = re.compile(
    rf" {{0,3}}(?:{_MARKER}? {{0,3}}|\d{{1,9}}|#{{1,6}} ?)?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?:\d{{1,9}}|`{{1,2}})?\Z"
)
ITEM = re.compile(rf"({_MARKER}) ")
BLANK = re.compile(r"[ \t]*\n")
FENCE = re.compile(r"(`{3,20})[^`\n|]{0,100}\n|(~{3,20})(?!~)[^\n|]{0,100}\n")  # with a bar, some clients read a table
FENCE_UNSURE = re.compile(r"(?:`{1,20}(?:(?<=```)[^`\n|]{0,100})?|~{1,20}(?:(?<=~~~)[^~\n|][^\n|]{0,99})?)\Z")
CLOSING = re.compile(r" {0,3}([`~]{3,})[ \t\n]*")
ANY_FENCE = re.compile(r"`{3,}|~{3,}")
ANEW = re.compile(
    rf"(?:^|(?<=\n))(?:#{{1,6}} |{_MARKER} (?=\S)|`{{3,12}}(?=[^`\n]{{0,50}}\n)|~{{3,12}}|(?<=\n\n)(?=\S)|(?<=[ \t]\n)(?=\S))"
)
SIGN = re.compile(r"[\n`\[<\\&!|【]|\(?(?:https?://|ftps?://|www\.)|//", re.IGNORECASE)
TAIL = re.compile(r"\(?(?:h|ht|htt|https?:?/?|f|ft|ftps?:?/?|ww?w?|/)\Z|\(\Z", re.IGNORECASE)
MORE: dict[str, tuple[re.Pattern[str], re.Pattern[str]]] = {  # complete, and possibly incomplete
    "`": (re.compile(r"(`{1,20})(?!`)[^`\n]{1,300}(?<!`)\1(?!`)(?=.|\n)"), re.compile(r"`{1,20}(?:[^`\n]{0,300}`{0,20})?\Z")),
    "[": (
        re.compile(r"(?:\[[^\[\]`<\\&!\n|:【]{0,80}\]){1,20}(?=[^\[(])|\[[^\[\]`<\\&!\n|:【]{0,80}\]\([^\s()<>\\&`|\"'【\[]{0,2000}\)(?=.|\n)"),
        re.compile(r"(?:\[[^\[\]`<\\&!\n|:【]{0,80}\]){0,20}(?:\[[^\[\]`<\\&!\n|:【]{0,80}|\]?\([^\s()<>\\&`|\"'【\[]{0,2000}\)?)?\Z"),
    ),
    "<": (re.compile(r"<(?=[^a-z/!?])|</?[a-z][a-z\d-]{0,30} ?/?>", re.IGNORECASE), re.compile(r"<(?:/?[a-z][a-z\d-]{0,30})? ?/?\Z", re.IGNORECASE)),
    "\\": (re.compile(r"\\(?:[!-/:-@\[-`{-~]|(?=.|\n))"), re.compile(r"\\\Z")),
    "&": (re.compile(r"&(?=[^#a-z])|&(?:[a-z][a-z\d]{1,31}|#\d{1,7}|#x[\da-f]{1,6});|&(?=[a-z]{1,31}[^a-z\d;])", re.IGNORECASE), re.compile(r"&[#a-z\d]{0,32}\Z", re.IGNORECASE)),
    "!": (re.compile(r"!(?=[^\[])"), re.compile(r"!\Z")),
    "【": (re.compile(r"【[^】\[\]`<\\&!\n|:]{0,80}】(?=[^(])"), re.compile(r"【[^】\[\]`<\\&!\n|:]{0,80}】?\Z")),
    "|": (re.compile(r"\|(?=[^\n]{0,300}\n[ \t]{0,20}[^\s|:>+*-])|\|(?=[^\n]{0,300}\n[ \t]{0,20}\n)"), re.compile(r"\|[^\n]{0,300}(?:\n[ \t]{0,20})?\Z")),
}  # fmt: skip
RUN = re.compile(r"[^\s<]{1,2000}(?=\s)")
RUN_UNSURE = re.compile(r"[^\s<]{1,2000}\Z")


LONGEST = 450  # characters; a longer text is an answer
LONGEST_CITING = 1500  # if its citations only show what the documentation is about
LONGEST_SENTENCE = 400
GREETING = 3  # words of a sentence before the refusal: "I am sorry."
_MARKS = re.compile(r"[*_`>#\\“”„]+")


def is_refusal(answer: str, language: Language, citations: Citations) -> bool:
    """True if the first sentence says that there is no answer, and no sentence that cites says anything else."""
    if (
        len(answer) > (LONGEST_CITING if citations.any else LONGEST)
        or "```" in answer
        or not language.replies.no_answer
    ):
        return False
    lines = [line for line in answer.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    said = [sentence for line in lines for sentence in informal_sentences(line.strip(), language.shared.abbreviations)]
    while len(said) > 1 and len(said[0].split()) <= GREETING and not _refuses(said[0], language, citations):
        said.pop(0)
    if not said or not _refuses(said[0], language, citations):
        return False
    parts = [
        part
        for sentence in said
        for part in _contrast(language.replies.contrast).split(sentence)
        if _cites(part, citations)
    ]
    return all(_refuses(part, language, citations) or _only(language.replies.only).search(fold(part)) for part in parts)


def _refuses(sentence: str, language: Language, citations: Citations) -> bool:
    if len(sentence) > LONGEST_SENTENCE:
        return False
    uncited = BRACKET.sub(lambda found: "" if citations.numbers(inner(found[0])) else found[0], sentence)
    plain = " ".join(_MARKS.sub(" ", fold(uncited)).replace("’", "'").split())
    return bool(re.search(language.replies.no_answer, plain))


def _cites(text: str, citations: Citations) -> bool:
    return any(citations.numbers(inner(match[0])) for match in BRACKET.finditer(text))


@lru_cache(maxsize=32)
def _contrast(words: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(word) for word in sorted(words))
    return re.compile(rf";|\b(?:{joined})\b" if joined else ";", re.IGNORECASE)


@lru_cache(maxsize=32)
def _only(words: frozenset[str]) -> re.Pattern[str]:
    joined = "|".join(re.escape(fold(word)) for word in sorted(words))
    return re.compile(rf"\b(?:{joined})\b" if joined else r"(?!)")


_LAST_WORD = re.compile(r"(?<![^\W_])[^\W_]{1,60}\s{0,9}\Z")
_END = re.compile(r"[\n`]")  # code stays as it is


class Wording:
    """Rewrites a text piece by piece. Words that the reader or a page uses stay: `known` gives all their text."""

    def __init__(self, words: Mapping[str, str], known: Callable[[], str]) -> None:
        self._words, self._known = words, known
        self._beginnings = _beginnings(tuple(words))
        self._held = ""
        self.left = LONGEST if words else 0
        """The number of characters that may still be rewritten."""

    def feed(self, text: str) -> str:
        """The text that is decided by now; a word that may be one of ours waits for what follows it."""
        text, self._held = self._held + text, ""
        if not self.left:
            return text
        if (end := _END.search(text, 0, self.left)) or len(text) >= self.left:
            at, self.left = end.start() if end else self.left, 0
            return self._replaced(text[:at]) + text[at:]
        last = _LAST_WORD.search(text)
        if last and last[0].strip().casefold() in self._beginnings:
            text, self._held = text[: last.start()], last[0]
        self.left -= len(text)
        return self._replaced(text)

    def rest(self) -> str:
        """The rest of the text at its end."""
        held, self._held = self._held, ""
        return self._replaced(held)

    def _replaced(self, text: str) -> str:
        return _pattern_of_words(tuple(self._words)).sub(self._word, text) if text else text

    def _word(self, found: re.Match[str]) -> str:
        word = self._words[found[0].casefold()]
        if found[0].casefold() in self._known().casefold():
            return found[0]
        return word.capitalize() if found[0][0].isupper() else word


@lru_cache(maxsize=32)
def _beginnings(words: tuple[str, ...]) -> frozenset[str]:
    """What the words begin with, and the words themselves."""
    return frozenset(word[:end] for word in words for end in range(len(word) + 1))


@lru_cache(maxsize=32)
def _pattern_of_words(words: tuple[str, ...]) -> re.Pattern[str]:
    """The words, but not where they name a passage by its number: that is a citation."""
    longest_first = "|".join(re.escape(word) for word in sorted(words, key=len, reverse=True))
    return re.compile(rf"(?<![\w\[(-])(?:{longest_first})(?![\w-]|\s*[\[\d])", re.IGNORECASE)


LONGEST_WAIT = 1000  # characters of code; longer code is shown at once
_RUN = re.compile(rf"{BRACKET.pattern}(?:[ \t]{{0,3}}[,;]?[ \t]{{0,3}}{BRACKET.pattern}){{0,20}}")
_AFTER_STOP = re.compile(r"[\]】)]\.[ \t]*\Z")
_GOES_ON = re.compile(r"[ \t]{0,3}[,;]?[ \t]{0,3}(?:(?:\[{1,2}|【)[^\[\]【】`\n]{0,80}\]?|\([^()\s]{0,2000})?\Z")
_OPENS = re.compile(r"\[{1,2}[^\[\]`\n]{0,80}\]?\Z|【[^【】`\n]{0,80}\Z")
_ADDRESS = re.compile(r"(?<=[\]】 ])\([^()\s]{0,2000}\Z")
_CODED = re.compile(r"(`{1,20})(?!`)[^`\n]{1,300}(?<!`)\1(?!`)")
_CODED_UNSURE = re.compile(r"`{1,20}(?:[^`\n]{0,300}`{0,20})?\Z")
_SIGN = re.compile(r"[\n`\[【]")
_SEPARATORS = re.compile(r"[\s,;.()*_–—-]*")
_ENDING = re.compile(r"[ \t]{0,9}[.:;,]?\Z")
_BEHIND = re.compile(r"[ \t]*(?:[.:;,](?=\s|\Z)|(?=\n)|\Z)")
_FENCE = re.compile(r"[ \t]*(?:(?:[-*+]|\d{1,9}[.)])[ \t]+)*(`{3,}(?=[^`\n]*\n?\Z)|~{3,})")
_LONGEST_LONE = 120
_WORD = re.compile(r"[^\W\d_]+")
_TABLE = re.compile(r"[ \t]*\|")
_NESTED = re.compile(r"[ \t]|[-*+>]|\d+[.)]")


class Placement:
    """Moves and merges the citations of a text that comes piece by piece. The result depends on the text alone."""

    def __init__(self, citations: Citations) -> None:
        self._citations = citations
        self._dropped: list[str] = []  # citations that readers don't get, but whose passages are used
        self._begin()

    def _begin(self) -> None:
        self._held = ""  # of the text: not decided
        self._end = ""  # of the last sentence: its last signs, and the blank lines and code after it
        self._line = ""  # the line of text, as far as it was read
        self._cites: set[str] = set()  # pages that it cites
        self._last: set[str] = set()  # pages of its last citations
        self._fence, self._in_line, self._code, self._final = "", False, False, False
        self._spoken = False  # a line of text has come

    def feed(self, text: str) -> str:
        """The text that is decided by now."""
        if self._in_line and not (self._held or _SIGN.search(text)):  # most pieces of most answers
            self._line = (self._line + text)[-_LONGEST_LONE:]
            return text
        self._held += text
        return "".join(self._read())

    def rest(self) -> str:
        """The rest of the text at its end. A text that is fed afterwards is a new one."""
        self._final = True
        text = "".join(self._read()) + self._held + self._end
        self._begin()
        return text

    def count_dropped(self) -> None:
        """Counts the passages of citations that readers don't get, after those that they got."""
        for words in self._dropped:
            self._citations.cited(words)
        self._dropped.clear()

    def _read(self) -> Iterator[str]:
        while self._held:
            step = self._words if self._in_line else self._fenced if self._fence else self._start
            if (part := step()) is None:
                return
            yield part

    def _take(self, end: int) -> str:
        text, self._held = self._held[:end], self._held[end:]
        return text

    def _released(self, text: str = "") -> str:
        text, self._end = self._end + text, ""
        return text

    # ---- the beginning of a line, and code -----------------------------------------------------------

    def _start(self) -> str | None:
        line = self._held[: self._held.find("\n") + 1] or self._held
        whole = self._final or line.endswith("\n")
        fence = _FENCE.match(line)
        coded = fence is not None or self._is_indented_code(line)
        if not coded and line.strip():
            return self._text(line, whole=whole)
        if not whole:
            return None
        self._fence, self._code = fence[1] if fence else "", self._code or coded
        return self._after_sentence(self._take(len(line)))

    def _text(self, line: str, *, whole: bool) -> str | None:
        """The beginning of a line of text; a line of citations alone moves."""
        unsure = not whole and len(line) < _LONGEST_LONE and not line.strip(" \t`~-*+.)0123456789")
        alone = None if unsure else self._alone(line, whole=whole)
        if alone is None:
            return None
        if alone and self._spoken and not _TABLE.match(self._line):
            return self._moved(self._take(len(line)))
        self._in_line, self._spoken, self._code = True, True, False
        self._line, self._cites, self._last = "", set(), set()
        return self._released()

    def _is_indented_code(self, line: str) -> bool:
        """True if the line is code without a fence: after a blank line that ends a paragraph, or after such code."""
        if not line.startswith(("    ", "\t")) or not self._line or _NESTED.match(self._line):
            return False
        return self._code or self._end.endswith("\n\n")

    def _after_sentence(self, text: str) -> str:
        """The text now, or later if a citation may have to go before it."""
        self._end += text
        waits = self._line and not (self._code and self._cites) and len(self._end) <= LONGEST_WAIT
        if not waits:
            self._line = ""
        return "" if waits else self._released()

    def _fenced(self) -> str | None:
        end = self._held.find("\n") + 1
        if not end and not self._final:
            return None
        line = self._take(end or len(self._held))
        behind = line.lstrip(" \t`~")
        closing = line[: len(line) - len(behind)] if behind.strip() else line
        found = CLOSING.fullmatch(closing.strip())
        if found and found[1].startswith(self._fence):
            if not behind.strip():
                self._fence = ""
            elif self._spoken and self._alone(behind, whole=True):
                self._fence, self._held = "", behind + self._held  # written right behind the fence
                line = f"{closing.rstrip()}\n"
        return self._after_sentence(line) if self._end else line

    # ---- a line of citations alone ---------------------------------------------------------------------

    def _alone(self, line: str, *, whole: bool) -> bool | None:
        """True if the line has nothing but citations; None if more of it must come first."""
        if len(line) > _LONGEST_LONE:
            return False
        rest, cites = line, False
        for found in BRACKET.finditer(line):
            if self._pages(found[0]):
                rest, cites = rest.replace(found[0], " ", 1), True
        if not whole:
            rest = _OPENS.sub("", _ADDRESS.sub("", rest))
        words = _WORD.findall(rest)
        left = _WORD.sub("", rest).replace(":", "")
        if _SEPARATORS.fullmatch(left) is None or len(words) > 1:
            return False
        known = self._citations.words
        word = words[0].casefold() if words else ""
        if word and not (word in known or (not whole and any(one.startswith(word) for one in known))):
            return False
        if re.match(r"[ \t]*(?:[-*+][ \t]|\d)", line):
            return False
        return cites if whole else None

    def _moved(self, line: str) -> str:
        """Puts the citations of this line at the end of the sentence above, or counts them if readers have it already."""
        marks = [found[0] for found in BRACKET.finditer(line) if self._pages(found[0])]
        new = self._without_repeated(marks)
        if not (new and self._line):
            self._dropped += map(inner, new)
            return ""
        lead = len(self._end) - len(self._end.lstrip(" \t"))
        self._end = self._end[lead:]
        return f" {''.join(new)}"

    # ---- within a line of text ---------------------------------------------------------------------------

    def _words(self) -> str | None:
        found = _SIGN.search(self._held)
        if found is None or found.start():
            return self._said(found.start() if found else len(self._held))
        if found[0] == "\n":
            self._in_line = False
            self._end += self._take(1)
            return ""
        if found[0] == "`":
            return self._coded()
        return self._run()

    def _coded(self) -> str | None:
        if found := _CODED.match(self._held):
            if found.end() == len(self._held) and not self._final:
                return None
            return self._said(found.end())
        if _CODED_UNSURE.match(self._held) and not self._final:
            return None
        return self._said(len(self._held) - len(self._held.lstrip("`")))

    def _said(self, end: int) -> str:
        text = self._released(self._take(end))
        self._line = (self._line + text)[-_LONGEST_LONE:]
        return text

    def _run(self) -> str | None:
        """The citations that begin here, each page once."""
        if not (found := _RUN.match(self._held)):
            return None if _OPENS.match(self._held) and not self._final else self._said(1)
        if not self._final and _GOES_ON.match(self._held, found.end()):
            return None
        if self._line[-1:].isalnum() or self._line[-1:] == "_":
            return self._said(found.end())  # an index, as in a[1][1]
        if _AFTER_STOP.search(self._line) and not self._final and _ENDING.match(self._held, found.end()):
            return None
        return self._merged(found)

    def _merged(self, run: re.Match[str]) -> str:
        parts, at = list[str](), run.start()
        behind = _BEHIND.match(self._held, run.end())
        # behind a stop, it repeats the one before that
        seen = self._last if behind and _AFTER_STOP.search(self._line) else set[str]()
        found: set[str] = set()
        for one in BRACKET.finditer(self._held, run.start(), run.end()):
            between, at = self._held[at : one.start()], one.end()
            pages = self._pages(one[0])
            if pages and pages <= seen | found:
                self._dropped.append(inner(one[0]))
            else:
                parts += [between, self._unseen(one[0], seen | found)]
            found |= pages
        self._cites |= found
        self._last = found
        end = behind.end() if behind and not parts else run.end()
        self._held = "".join(parts) + self._held[end:]
        return self._said(sum(map(len, parts)))

    def _unseen(self, bracket: str, seen: set[str]) -> str:
        """The bracket with the passages whose pages aren't seen yet; unchanged if that is all of them."""
        numbers = self._citations.numbers(inner(bracket))
        left = [number for number in numbers if self._citations.pages[number - 1] not in seen]
        return bracket if len(left) == len(numbers) else "".join(f"[{number}]" for number in left)

    def _without_repeated(self, marks: list[str]) -> list[str]:
        new = []
        for mark in marks:
            pages = self._pages(mark)
            if pages <= self._cites:
                self._dropped.append(inner(mark))
            else:
                new.append(self._unseen(mark, self._cites))
            self._cites |= pages
        return new

    def _pages(self, bracket: str) -> set[str]:
        return {self._citations.pages[number - 1] for number in self._citations.numbers(inner(bracket))}

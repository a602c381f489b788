"""Puts the citations of a model's text where readers expect them, while it streams.

A number that is repeated in a run of citations is left out. A line of citations alone moves to the end of the sentence
above it. If that sentence introduces code and cites nothing, the code waits until the text after it has come.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from app.citing.citations import BRACKET, CLOSING, Citations, inner

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
        match = CLOSING.fullmatch(closing.strip())
        if match and match[1].startswith(self._fence):
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
        for match in BRACKET.finditer(line):
            if self._pages(match[0]):
                rest, cites = rest.replace(match[0], " ", 1), True
        if not whole:
            rest = _OPENS.sub("", _ADDRESS.sub("", rest))
        words = _WORD.findall(rest)
        separators = _WORD.sub("", rest).replace(":", "")
        if _SEPARATORS.fullmatch(separators) is None or len(words) > 1:
            return False
        known = self._citations.words
        word = words[0].casefold() if words else ""
        if word and not (word in known or (not whole and any(known_word.startswith(word) for known_word in known))):
            return False
        if re.match(r"[ \t]*(?:[-*+][ \t]|\d)", line):
            return False
        return cites if whole else None

    def _moved(self, line: str) -> str:
        """Puts the citations of this line at the end of the sentence above, or counts them if readers have it already."""
        marks = [match[0] for match in BRACKET.finditer(line) if self._pages(match[0])]
        new = self._without_repeated(marks)
        if not (new and self._line):
            self._dropped += map(inner, new)
            return ""
        lead = len(self._end) - len(self._end.lstrip(" \t"))
        self._end = self._end[lead:]
        return f" {''.join(new)}"

    # ---- within a line of text ---------------------------------------------------------------------------

    def _words(self) -> str | None:
        match = _SIGN.search(self._held)
        if match is None or match.start():
            return self._said(match.start() if match else len(self._held))
        if match[0] == "\n":
            self._in_line = False
            self._end += self._take(1)
            return ""
        if match[0] == "`":
            return self._coded()
        return self._run()

    def _coded(self) -> str | None:
        if match := _CODED.match(self._held):
            if match.end() == len(self._held) and not self._final:
                return None
            return self._said(match.end())
        if _CODED_UNSURE.match(self._held) and not self._final:
            return None
        return self._said(len(self._held) - len(self._held.lstrip("`")))

    def _said(self, end: int) -> str:
        text = self._released(self._take(end))
        self._line = (self._line + text)[-_LONGEST_LONE:]
        return text

    def _run(self) -> str | None:
        """The citations that begin here, each page once."""
        if not (match := _RUN.match(self._held)):
            return None if _OPENS.match(self._held) and not self._final else self._said(1)
        if not self._final and _GOES_ON.match(self._held, match.end()):
            return None
        if self._line[-1:].isalnum() or self._line[-1:] == "_":
            return self._said(match.end())  # an index, as in a[1][1]
        if _AFTER_STOP.search(self._line) and not self._final and _ENDING.match(self._held, match.end()):
            return None
        return self._merged(match)

    def _merged(self, run: re.Match[str]) -> str:
        parts, at = list[str](), run.start()
        behind = _BEHIND.match(self._held, run.end())
        # behind a stop, it repeats the one before that
        seen = self._last if behind and _AFTER_STOP.search(self._line) else set[str]()
        run_pages: set[str] = set()
        for bracket in BRACKET.finditer(self._held, run.start(), run.end()):
            between, at = self._held[at : bracket.start()], bracket.end()
            pages = self._pages(bracket[0])
            if pages and pages <= seen | run_pages:
                self._dropped.append(inner(bracket[0]))
            else:
                parts += [between, self._unseen(bracket[0], seen | run_pages)]
            run_pages |= pages
        self._cites |= run_pages
        self._last = run_pages
        end = behind.end() if behind and not parts else run.end()
        self._held = "".join(parts) + self._held[end:]
        return self._said(sum(map(len, parts)))

    def _unseen(self, bracket: str, seen: set[str]) -> str:
        """The bracket with the passages whose pages aren't seen yet; unchanged if that is all of them."""
        numbers = self._citations.numbers(inner(bracket))
        unseen = [number for number in numbers if self._citations.pages[number - 1] not in seen]
        return bracket if len(unseen) == len(numbers) else "".join(f"[{number}]" for number in unseen)

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

"""Rewrites a model's Markdown while it streams: renumbers citations and removes addresses that no passage has.

Plain text passes at once. `inline.py` decides on simple things (a number, code or a link on one line of a paragraph) when
they are complete. All else waits for the end of its block, which a parser finds, and `judge.py` rewrites the block. The
result depends on the text alone, never on how it was cut into pieces.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import ClassVar, Literal

from app.citing.citations import Citations
from app.citing.inline import WHOLE_BLOCK, Inline
from app.citing.judge import LONGEST, Judge, neutral
from app.citing.links import Addresses
from app.citing.markdown import begins_anew
from app.citing.own_list import OwnList
from app.citing.placement import Placement
from app.citing.removals import Removals
from app.citing.signs import (
    ANEW,
    ANY_FENCE,
    BLANK,
    CLOSING,
    FENCE,
    FENCE_UNSURE,
    ITEM,
    SIGN,
    TAIL,
    WORDS,
    WORDS_UNSURE,
)

Where = Literal["start", "line", "fence", "block"]
_AHEAD = 64  # characters of a line show how it begins
_CONTROLS = dict.fromkeys((*range(9), 11, 12, *range(14, 32), 127, 0xFEFF)) | dict.fromkeys((0x85, 0x2028, 0x2029), " ")


class Rewriter:
    """Rewrites a text piece by piece. Without `citations`, numbers stay unchanged. `removals` collects what is removed."""

    def __init__(
        self,
        addresses: Addresses,
        citations: Citations | None = None,
        headings: frozenset[str] = frozenset(),
        removals: Removals | None = None,
    ) -> None:
        self._citations, self._judge, self._removals = citations, Judge(addresses, citations, removals), removals
        self._inline = Inline(self._judge, removals)
        self._own_list = OwnList(headings)
        self._placement = Placement(citations) if citations else None
        self._begin()

    def _begin(self) -> None:
        self._held = self._return = ""
        self._said = ""  # what readers got of the open block
        self._where: Where = "start"
        self._blank = True  # the line before is blank, or ends its block
        self._apart = True  # so do readers see it, who may read the block before differently
        self._begun = 0  # where the words of the line begin in `_said`
        self._fence = self._indent = ""
        self._opened = False  # its first line was read
        self._item = 0  # the indent of the open list item, if it is a plain one
        self._final = False
        self._looked, self._next_look = 0, 0  # how far the end of the block was searched for, and where to search again

    def feed(self, text: str) -> str:
        """The text that is decided by now."""
        text = self._own_list.feed(self._clean(text))
        return self._read(self._placement.feed(text) if self._placement else text)

    def rest(self) -> str:
        """The rest of the text at its end. A text that is fed afterwards is a new one."""
        rest, listed = self._own_list.rest()
        self._final = True
        if self._placement:
            rest = self._placement.feed(rest) + self._placement.rest()
        text = self._read(rest)
        if self._where == "fence" and self._held:
            text += self._read("\n")
        if self._where == "fence":
            text += self._indent + self._fence
        elif self._held:
            text += self._closed(self._judge.safe(self._held, self._said))
        if self._placement:
            self._placement.count_dropped()
        if listed and self._citations and not self._citations.any:
            Judge(self._judge.addresses, self._citations).safe(listed)  # its numbers are the only citations
        if listed and self._removals:
            self._removals.source_list(listed)
        self._begin()
        return text

    def _closed(self, text: str) -> str:
        """The end of a text, with a closing fence if it leaves one open."""
        fences = ANY_FENCE.findall(text)
        if not fences or begins_anew(f"{self._said}{text}\n\n", ""):
            return text
        return f"{text}\n{fences[-1]}"

    def _clean(self, text: str) -> str:
        """The text without control characters, with newlines as line ends."""
        if text.isprintable() and not self._return:
            return text
        text, self._return = self._return + text, ""
        if text.endswith("\r"):
            text, self._return = text[:-1], "\r"
        return text.replace("\r\n", "\n").replace("\r", "\n").translate(_CONTROLS)

    def _read(self, text: str) -> str:
        self._held += text
        parts = []
        while self._held and (part := self._STEPS[self._where](self)) is not None:
            parts.append(part)
        return "".join(parts)

    def _take(self, end: int, written: str | None = None) -> str:
        """Releases the held text up to there, or `written` in its place."""
        text, self._held = self._held[:end], self._held[end:]
        self._said += (said := text if written is None else written)
        return said

    # ---- the beginning of a line -----------------------------------------------------------------

    def _start(self) -> str | None:
        held = self._held
        if blank := BLANK.match(held):
            self._blank = self._apart = True
            return self._take(blank.end())
        if self._fences(held):
            return None if self._where == "start" else ""
        if found := WORDS.match(held):
            self._place(len(found[1]), found[2] or "")
            self._where, self._blank = "line", False
            begun = self._take(found.end())
            self._begun = len(self._said)
            return begun
        if len(held) < _AHEAD and (WORDS_UNSURE.match(held) or not held.strip(" \t")):
            return None
        return self._wait_for_block()

    def _place(self, indent: int, marker: str) -> None:
        """Notes the block that a line of words with this marker is in."""
        itemized = marker[:1] not in {"", "#"} and not indent and self._anew(marker, blank=self._apart)
        if not indent and self._anew(marker, blank=self._blank):
            self._said = ""
        if itemized:
            self._item = len(marker)
        elif marker or (self._blank and indent < self._item):
            self._item = 0

    def _fences(self, held: str) -> bool:
        """Whether a fence begins here, or could begin when more text comes."""
        indent = len(held) - len(held.lstrip(" "))
        if held[indent : indent + 1] not in {"`", "~"} or (indent and not 0 < self._item <= indent < self._item + 4):
            return False
        if found := FENCE.match(held, indent):
            if not indent:
                self._said, self._item = "", 0
            self._fence, self._where, self._opened = found[1] or found[2], "fence", False
            self._indent = " " * indent
            return True
        return bool(FENCE_UNSURE.match(held, indent))

    def _anew(self, marker: str, *, blank: bool) -> bool:
        """Whether a line with this marker begins a new block, or an item that earlier lines don't affect."""
        if blank or marker[:1] in {"#", "-", "*", "+"}:
            return bool(marker or blank)
        return bool(marker) and (marker[:-1].strip() in {"1.", "1)"} or bool(ITEM.match(self._said)))

    def _wait_for_block(self) -> str:
        self._where, self._looked, self._next_look = "block", 0, 0
        return ""

    # ---- within a line of words ------------------------------------------------------------------

    def _line(self) -> str | None:
        held = self._held
        found = SIGN.search(held)
        if found is None:
            tail = TAIL.search(held, max(0, len(held) - 8))
            end = tail.start() if tail else len(held)
            return self._take(end) if end else None
        if found.start():
            return self._take(found.start())
        sign = found[0]
        if sign == "\n":
            self._where, self._blank, self._apart = "start", False, False
            return self._take(1)
        decision = self._inline.decide(sign, held, self._said, within=len(self._said) > self._begun)
        if decision is WHOLE_BLOCK:
            return self._wait_for_block()
        return self._take(*decision) if decision else None

    # ---- a fence, and a block that waits -----------------------------------------------------------

    def _fenced(self) -> str | None:
        """One line of a fenced block."""
        end = self._held.find("\n") + 1
        if not end:
            return None
        line = self._held[:end]
        if self._opened and self._closes(line):
            self._where, self._blank, self._apart = "start", True, True
            self._take(end, closing := f"{self._indent}{self._fence}\n")
            self._said = self._said if self._indent else ""
            return closing
        if line.strip(" \t\n") and not line.startswith(" " * self._item):
            # the list item ends here, and its fence too
            self._where, self._blank, self._apart = "start", True, True
            return self._take(0, f"{self._indent}{self._fence}\n")
        self._opened = True
        return self._take(end, self._code(line))

    def _closes(self, line: str) -> bool:
        found = CLOSING.fullmatch(line[self._item :])
        return found is not None and found[1].startswith(self._fence)

    def _code(self, text: str) -> str:
        code = self._judge.code(text)
        return f"{code.rstrip()}…\n" if code != text and self._closes(code) else code

    def _block(self) -> str | None:
        """The block, if a line that begins another one has come."""
        held = self._held
        for found in ANEW.finditer(held, self._looked):
            at = found.start()
            if at > LONGEST or not (self._final or _known(held, at)):
                break
            if not at:
                continue
            self._looked = at + 1
            if at >= self._next_look:
                if self._ends(held[:at], found[0]):
                    return self._ended(at, self._judged(held[:at], found[0]))
                self._next_look = 2 * (at + len(self._said))
        else:
            self._looked = max(self._looked, len(held) - _AHEAD)
        return self._ended(LONGEST, self._neutral(held[:LONGEST])) if len(held) >= LONGEST + _AHEAD else None

    def _judged(self, text: str, line: str) -> str:
        """The safe block, which this line follows."""
        written = self._judge.safe(text, self._said)
        if line[:1].isdigit() and not begins_anew(self._said + written, line):
            written += "\n"  # as a paragraph, the block would include a numbered line
        return written

    def _neutral(self, text: str) -> str:
        if self._removals:
            self._removals.neutral(text, self._removals.count)
        return f"{neutral(text)}\n\n"

    def _ends(self, text: str, line: str) -> bool:
        """Whether the line after the text ends its block; only fences and numbers need the parser for that."""
        before = self._said + text
        if not line and before.rstrip(" \t\n").count("\n") + 1 >= before.count("\n"):
            return False  # no blank line is before it
        if line[:1].isdigit() or ANY_FENCE.search(before):
            return begins_anew(before, line)
        return True

    def _ended(self, end: int, written: str) -> str:
        self._take(end)
        self._said, self._where, self._blank, self._item = "", "start", True, 0
        self._apart = written.endswith("\n\n")
        return written

    # of the class, because methods kept in an object keep the object until the garbage collector runs
    _STEPS: ClassVar[Mapping[Where, Callable[[Rewriter], str | None]]] = {
        "start": _start, "line": _line, "fence": _fenced, "block": _block,
    }  # fmt: skip


def _known(text: str, at: int) -> bool:
    """Whether enough text has come to know how the line here begins."""
    return text[at : at + 1].isalpha() or "\n" in text[at : at + _AHEAD] or len(text) >= at + _AHEAD

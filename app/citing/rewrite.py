"""Rewrites a model's Markdown while it streams: renumbers citations, and removes addresses that no passage has and lists of sources.

Plain text passes at once. A sign within a line is decided as soon as the text behind it has come; the rest waits for the end of its block.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import methodcaller
from typing import ClassVar, Literal, NamedTuple

from app.citing.citations import (
    ANEW,
    ANY_FENCE,
    BLANK,
    CLOSING,
    FENCE,
    FENCE_UNSURE,
    ITEM,
    MORE,
    RUN,
    RUN_UNSURE,
    SIGN,
    TAIL,
    WORDS,
    WORDS_UNSURE,
    Citations,
    Placement,
)
from app.citing.links import LONGEST, SCHEME, TAG, Addresses, Judge, Removals, harmless, is_joined, neutral
from app.citing.markdown import begins_anew


class Decision(NamedTuple):
    """The first `end` characters are decided; `text` replaces them, None leaves them as they are."""

    end: int
    text: str | None = None


WHOLE_BLOCK = Decision(0)
"""Only the whole block shows what the sign means."""


class Inline:
    """Decides on numbers, code, links, tags and addresses on one line of a paragraph."""

    def __init__(self, judge: Judge, removals: Removals | None) -> None:
        self._judge, self._removals = judge, removals

    def decide(self, sign: str, text: str, before: str, *, within: bool) -> Decision | None:
        """The decision on the sign that `text` begins with; None if more text must come first.

        `before` is what readers got of the same block; `within` is true if the line has begun in it.
        """
        if sign == "//":
            return self._host(text)
        if sign not in MORE:
            return self._address(text, before, within=within)
        simple, unsure = MORE[sign]
        if match := simple.match(text):
            return self._simple(sign, match[0], text, before)
        return None if unsure.match(text) else WHOLE_BLOCK

    def _simple(self, sign: str, found: str, text: str, before: str) -> Decision:
        written: str | None = found
        if sign == "`":
            coded = next(self._judge.in_code(found, 0, len(found)), None)
            written = None if coded or ("|" in found) else found
        elif sign == "<":
            written = found if found == "<" or TAG.fullmatch(found) else f"\\{found}"
            if written != found and self._removals:
                self._removals.tag(found)
        elif sign == "&":
            written = found if found[-1] != ";" or harmless(found) else None
        elif sign in "[【":
            apart = before[-1:].isspace() or text[len(found)].isspace()
            written = self._link(found, before) if found[-1] == ")" else self._numbers(found, before, apart=apart)
        return WHOLE_BLOCK if written is None else Decision(len(found), written)

    def _link(self, link: str, before: str) -> str | None:
        """The link; None if it may have to change."""
        words, target = link[1:-1].split("](", 1)
        plain = not SCHEME.search(words) and "//" not in words and self._judge.bracket(f"[{words}]") is None
        return link if plain and not is_joined(before, len(before)) and target in self._judge.addresses else None

    def _numbers(self, brackets: str, before: str, *, apart: bool) -> str | None:
        """The brackets with our numbers; None if that depends on what is around them."""
        if SCHEME.search(brackets) or "//" in brackets:
            return None
        joined = is_joined(before, len(before))
        parts = [brackets] if brackets[0] == "【" else [f"[{part}" for part in brackets.split("[")[1:]]
        cited = [self._judge.bracket(part, joined=joined) for part in parts]
        if not apart and "" in cited:
            return None
        if self._removals:
            self._removals.citations(
                part for part, replacement in zip(parts, cited, strict=True) if replacement is not None
            )
        return "".join(
            part if replacement is None else replacement for part, replacement in zip(parts, cited, strict=True)
        )

    def _address(self, text: str, before: str, *, within: bool) -> Decision | None:
        if not RUN.match(text):
            return None if RUN_UNSURE.match(text) else WHOLE_BLOCK
        last = before[-1:]
        whole = last + text
        edit, end = self._judge.bare(whole, len(last) + (text[0] == "("), len(whole))
        end -= len(last)
        if edit is None:
            return Decision(end)
        if edit.text == " ":
            at = edit.start - len(last)
            return Decision(end, f"{text[:at]} {text[at:end]}")
        apart = last.isspace() or text[end].isspace()
        if edit.start == edit.end or not apart or not within:
            return WHOLE_BLOCK
        if self._removals:
            self._removals.edits(whole, [edit])
        return Decision(end, "")

    @staticmethod
    def _host(text: str) -> Decision | None:
        if len(text) == 2:
            return None
        return Decision(2) if text[2].isspace() else WHOLE_BLOCK


_ITEM = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)])(?:\s|\Z)|[\[【<]|https?://)")
_ITEM_UNSURE = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]?|ht{0,2}p?s?:?/{0,2})?\Z")
LONGEST_LIST = 4000  # characters; a longer text is more than a list of sources
_NAMES_SOURCE = re.compile(r"\[[^\[\]\n]+\]|://|www\.|【")


class OwnList:
    """Removes a list of sources at the end of a text, below one of the headings, because ours follows."""

    def __init__(self, headings: frozenset[str]) -> None:
        self._headings = headings  # in small letters
        self._held = ""
        self._fresh = True  # nothing has passed yet
        self._heading, self._looked = False, 0  # whether the heading was read, and how much of `_held`

    def feed(self, text: str) -> str:
        """The text that can't belong to such a list; line ends wait for the next text."""
        if not (self._held or self._fresh or "\n" in text):
            return text
        text, self._held = self._held + text, ""
        start = 0 if self._fresh else text.find("\n")
        while start >= 0:
            end = self._undecided(text, start)
            if end == len(text) and end - start <= LONGEST_LIST:
                self._held = text[start:]
                return text[:start]
            self._fresh, self._heading, self._looked = False, False, 0
            start = text.find("\n", max(end, start + 1))
        return text

    def _undecided(self, text: str, start: int) -> int:
        """Returns the end of the lines from here that can be a heading and its list, at most that of the text."""
        at = start + self._looked
        while at < len(text):
            newline = text.find("\n", at)
            line, whole = (text[at:newline], True) if newline >= 0 else (text[at:], False)
            if line.strip() and not (self._heading and _lists(line, whole=whole)):
                if self._heading or not self._heads(line, whole=whole):
                    return at - 1 if at > start else start
                self._heading = whole
            if not whole:
                break
            at = newline + 1
            self._looked = at - start
        return len(text)

    def _heads(self, line: str, *, whole: bool) -> bool:
        name = line.lstrip(" \t#*_").casefold()
        if whole:
            return name.rstrip(" \t\r*_:#") in self._headings
        return name.rstrip(" \t*_:#") in self._headings or any(map(methodcaller("startswith", name), self._headings))

    def rest(self) -> tuple[str, str]:
        """The rest at the end: text, and the list that was removed."""
        held, self._held, self._fresh = self._held, "", True
        self._heading, self._looked = False, 0
        lines = held.strip().splitlines()
        if len(lines) > 1 and self._heads(lines[0], whole=True) and _NAMES_SOURCE.search(held):
            return "", held
        return held, ""


def _lists(line: str, *, whole: bool) -> bool:
    """True if a line can be an item of a list, or continue one."""
    unsure = not whole and _ITEM_UNSURE.match(line)
    return bool(unsure or _ITEM.match(line) or line.startswith(("  ", "\t")))


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
        text = self._own_list.feed(text if text.isprintable() and not self._return else self._clean(text))
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
        if match := WORDS.match(held):
            self._place(len(match[1]), match[2] or "")
            self._where, self._blank = "line", False
            begun = self._take(match.end())
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
        """True if a fence begins here, or could begin when more text comes."""
        indent = len(held) - len(held.lstrip(" "))
        if held[indent : indent + 1] not in {"`", "~"} or (indent and not 0 < self._item <= indent < self._item + 4):
            return False
        if match := FENCE.match(held, indent):
            if not indent:
                self._said, self._item = "", 0
            self._fence, self._where, self._opened = match[1] or match[2], "fence", False
            self._indent = " " * indent
            return True
        return bool(FENCE_UNSURE.match(held, indent))

    def _anew(self, marker: str, *, blank: bool) -> bool:
        """True if a line with this marker begins a new block, or an item that earlier lines don't affect."""
        if blank or marker[:1] in {"#", "-", "*", "+"}:
            return bool(marker or blank)
        return bool(marker) and (marker[:-1].strip() in {"1.", "1)"} or bool(ITEM.match(self._said)))

    def _wait_for_block(self) -> str:
        self._where, self._looked, self._next_look = "block", 0, 0
        return ""

    # ---- within a line of words ------------------------------------------------------------------

    def _line(self) -> str | None:
        held = self._held
        match = SIGN.search(held)
        if match is None:
            tail = TAIL.search(held, max(0, len(held) - 8))
            end = tail.start() if tail else len(held)
            return self._take(end) if end else None
        if match.start():
            return self._take(match.start())
        sign = match[0]
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
        match = CLOSING.fullmatch(line[self._item :])
        return match is not None and match[1].startswith(self._fence)

    def _code(self, text: str) -> str:
        code = self._judge.code(text)
        return f"{code.rstrip()}…\n" if code != text and self._closes(code) else code

    def _block(self) -> str | None:
        """The block, if a line that begins another one has come."""
        held = self._held
        for match in ANEW.finditer(held, self._looked):
            at = match.start()
            if at > LONGEST or not (self._final or _known(held, at)):
                break
            if not at:
                continue
            self._looked = at + 1
            if at >= self._next_look:
                if self._ends(held[:at], match[0]):
                    return self._ended(at, self._judged(held[:at], match[0]))
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
        """True if the line after the text ends its block; only fences and numbers need the parser for that."""
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
    """True if enough text has come to know how the line here begins."""
    return text[at : at + 1].isalpha() or "\n" in text[at : at + _AHEAD] or len(text) >= at + _AHEAD

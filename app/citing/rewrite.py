"""Makes a model's Markdown safe, segment by segment: renumbers citations, and removes addresses that no passage has.

A segment that means the same whatever follows it passes at once. The rest waits for the end of its block, which a parser reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from app.citing.citations import ANY_FENCE, Citations
from app.citing.links import LONGEST, Addresses, Judge, Removals, neutral
from app.citing.markdown import begins_anew
from app.citing.placement import OwnList, Placement
from app.text.segments import Segment, segments

_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_WORDS = re.compile(
    rf"( {{0,3}})({_MARKER} {{1,3}}|#{{1,6}} )?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?=[^\W_]|[^\x00-\x7f\s【]|`{{1,2}}[^`])(?!\d{{1,9}}(?:[.)]|\Z))"
)
_ITEM = re.compile(rf"({_MARKER}) ")
_FENCE = re.compile(r"(`{3,20})[^`\n|]{0,100}\n|(~{3,20})(?!~)[^\n|]{0,100}\n")  # with a bar, some clients read a table
_CLOSING = re.compile(r" {0,3}([`~]{3,})[ \t\n]*")
_ANEW = re.compile(rf"#{{1,6}} |{_MARKER} (?=\S)|`{{3,12}}(?=[^`\n]{{0,50}}\n)|~{{3,12}}")


class Rewriter:
    """Rewrites the segments of a text. Without `citations`, numbers stay unchanged. `removals` collects what is removed."""

    def __init__(
        self, addresses: Addresses, citations: Citations | None = None, removals: Removals | None = None
    ) -> None:
        self._judge, self._removals = Judge(addresses, citations, removals), removals
        self._begin()

    def _begin(self) -> None:
        self._held = ""  # of a line of code, or of the block that waits
        self._waits = False
        self._said = ""  # what readers got of the open block
        self._fresh = True  # a line begins
        self._blank = True  # the line before is blank, or ends its block
        self._apart = True  # so do readers see it, who may read the block before differently
        self._fence = self._indent = ""
        self._opened = False  # its first line was read
        self._item = 0  # the indent of the open list item, if it is a plain one
        self._next_look = 0  # the length of a block that waits at which its end is searched for again

    def feed(self, text: str) -> str:
        """What readers get by now; the text ends where a blank ends, or before one."""
        fresh, self._fresh = self._fresh, text.endswith("\n")
        if self._waits:
            if not (fresh and self._ends(text)):
                self._held += text
                return self._neutral() if len(self._held) > LONGEST else ""
            return self._ended(text) + self._start(text)
        if self._fence or self._held:
            return self._fenced(text)
        return self._start(text) if fresh else self._words(text, "")

    def rest(self) -> str:
        """The rest of the text at its end. A text that is fed afterwards is a new one."""
        text, self._fresh = "", True
        if self._fence and self._held:
            text = self._fenced("\n")
        if self._fence:
            text += self._indent + self._fence
        elif self._held:
            text += self._closed(self._judge.safe(self._held, self._said))
        self._begin()
        return text

    def _closed(self, text: str) -> str:
        """The end of a text, with a closing fence if it leaves one open."""
        fences = ANY_FENCE.findall(text)
        if not fences or begins_anew(f"{self._said}{text}\n\n", ""):
            return text
        return f"{text}\n{fences[-1]}"

    # ---- the beginning of a line -----------------------------------------------------------------

    def _start(self, text: str) -> str:
        if not text.strip(" \t\n"):
            self._blank = self._apart = self._blank or text.endswith("\n")
            return self._take(text)
        indent = len(text) - len(text.lstrip(" "))
        if text[indent : indent + 1] in {"`", "~"} and (not indent or 0 < self._item <= indent < self._item + 4):
            if text[indent:].startswith(("```", "~~~")) and not self._fresh:
                self._held = text  # its line tells
                return ""
            if fence := _FENCE.match(text, indent):
                return self._opens(fence[1] or fence[2], indent, text)
        if match := _WORDS.match(text):
            return self._words(text, match[0], (len(match[1]), match[2] or ""))
        return self._wait(text)

    def _opens(self, fence: str, indent: int, text: str) -> str:
        if not indent:
            self._said, self._item = "", 0
        self._fence, self._indent, self._opened = fence, " " * indent, False
        return self._fenced(text)

    def _place(self, indent: int, marker: str) -> None:
        """Notes the block that a line of words with this marker is in."""
        itemized = marker[:1] not in {"", "#"} and not indent and self._anew(marker, blank=self._apart)
        if not indent and self._anew(marker, blank=self._blank):
            self._said = ""
        if itemized:
            self._item = len(marker)
        elif marker or (self._blank and indent < self._item):
            self._item = 0

    def _anew(self, marker: str, *, blank: bool) -> bool:
        """True if a line with this marker begins a new block, or an item that earlier lines don't affect."""
        if blank or marker[:1] in {"#", "-", "*", "+"}:
            return bool(marker or blank)
        return bool(marker) and (marker[:-1].strip() in {"1.", "1)"} or bool(_ITEM.match(self._said)))

    def _words(self, text: str, begun: str, place: tuple[int, str] | None = None) -> str:
        """A segment of a line of words; `begun` is what the line begins with, at a `place` that is not empty for the first segment."""
        written = self._judge.simple(text, len(begun) if place else 0, begins=place is not None)
        if written is None:
            return self._wait(text)
        if place:
            self._place(*place)
            self._blank = self._apart = False
        return self._take(written)

    def _take(self, written: str) -> str:
        self._said += written
        return written

    # ---- a fence, and a block that waits -----------------------------------------------------------

    def _fenced(self, text: str) -> str:
        """A line of a fenced block, or the end of one."""
        line, self._held = self._held + text, ""
        if not line.endswith("\n"):
            self._held = line
            return ""
        if not self._fence:  # its first line
            return self._start(line)
        if self._opened and self._closes(line):
            return self._left(f"{self._indent}{self._fence}\n")
        if line.strip(" \t\n") and not line.startswith(" " * self._item):
            # the list item ends here, and its fence too
            return self._left(f"{self._indent}{self._fence}\n") + self._start(line)
        self._opened = True
        return self._take(self._code(line))

    def _left(self, closing: str) -> str:
        """The end of the fence."""
        self._fence, self._blank, self._apart = "", True, True
        self._said = self._said + closing if self._indent else ""
        return closing

    def _closes(self, line: str) -> bool:
        match = _CLOSING.fullmatch(line[self._item :])
        return match is not None and match[1].startswith(self._fence)

    def _code(self, text: str) -> str:
        code = self._judge.code(text)
        return f"{code.rstrip()}…\n" if code != text and self._closes(code) else code

    def _wait(self, text: str) -> str:
        self._held, self._waits, self._next_look = text, True, 0
        return ""

    def _ends(self, line: str) -> bool:
        """True if the line ends the block that waits; only fences and numbers need the parser for that."""
        before, found = self._said + self._held, _ANEW.match(line)
        blank = not before[:-1].rpartition("\n")[2].strip(" \t")
        begun = found[0] if found else ""
        if not begun and not (blank and line[:1].strip()):
            return False
        if not (begun[:1].isdigit() or ANY_FENCE.search(before)):
            return True
        if len(self._held) < self._next_look:
            return False
        self._next_look = 2 * len(before)
        return begins_anew(before, begun)

    def _ended(self, line: str) -> str:
        """The block, which ends before this line."""
        written = self._judge.safe(self._held, self._said)
        found = _ANEW.match(line)
        if found and line[:1].isdigit() and not begins_anew(self._said + written, found[0]):
            written += "\n"  # as a paragraph, the block would include a numbered line
        return self._next(written)

    def _neutral(self) -> str:
        if self._removals:
            self._removals.neutral(self._held, self._removals.count)
        self._fresh = True
        return self._next(f"{neutral(self._held)}\n\n")

    def _next(self, written: str) -> str:
        self._held, self._waits, self._said, self._blank, self._item = "", False, "", True, 0
        self._apart = written.endswith("\n\n")
        return written


class Line:
    """A text as a line of segments, each of which is placed and made safe. A list of sources below one of the `headings` is left out."""

    def __init__(
        self,
        addresses: Addresses,
        citations: Citations | None = None,
        headings: frozenset[str] = frozenset(),
        removals: Removals | None = None,
    ) -> None:
        self._citations, self._addresses, self._removals = citations, addresses, removals
        self._safe = Rewriter(addresses, citations, removals)
        self._own_list = OwnList(headings) if headings else None
        self._placement = Placement(citations) if citations else None

    def feed(self, segment: Segment) -> str:
        """What readers get by now."""
        given: Sequence[Segment] = self._own_list.feed(segment) if self._own_list else [segment]
        placed = (text for one in given for text in self._placed(one))
        return "".join(self._safe.feed(text) for text in placed if text)

    def _placed(self, segment: Segment) -> Iterator[str]:
        return self._placement.feed(segment) if self._placement else iter([segment.text])

    def rest(self) -> str:
        """The rest of the text at its end. A text that is fed afterwards is a new one."""
        held, listed = self._own_list.rest() if self._own_list else ([], "")
        texts = [text for one in held for text in self._placed(one)]
        if self._placement:
            texts += self._placement.rest()
        text = "".join(self._safe.feed(one) for one in texts if one) + self._safe.rest()
        if self._placement:
            self._placement.count_dropped()
        if listed and self._citations and not self._citations.any:
            Judge(self._addresses, self._citations).safe(listed)  # its numbers are the only citations
        if listed and self._removals:
            self._removals.source_list(listed)
        return text.rstrip() if listed else text


def safe(text: str, addresses: Addresses) -> str:
    """A whole text of a page, safe for readers."""
    line = Line(addresses)
    return "".join(map(line.feed, segments(text))) + line.rest()

"""Makes a model's Markdown safe, segment by segment: renumbers citations, and removes addresses that no passage has.

A segment that means the same whatever follows it passes at once. The rest waits for the end of its block, which a parser reads.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from app.citing.citations import Citations
from app.citing.links import LONGEST, Addresses, Removals, Sanitizer
from app.citing.markdown import begins_anew
from app.text.blocks import FENCE
from app.text.segments import Line, Segment, segments

_MARKER = r"(?:[-*+]|\d{1,9}[.)])"
_WORDS = re.compile(
    rf"( {{0,3}})({_MARKER} {{1,3}}|#{{1,6}} )?(?:\*{{1,2}}|_{{1,2}}|\(|[“„\"])?(?=[^\W_]|[^\x00-\x7f\s【]|`{{1,2}}[^`])(?!\d{{1,9}}(?:[.)]|\Z))"
)
_ITEM = re.compile(rf"({_MARKER}) ")
# with a bar, some clients read a table
_OPENING = re.compile(r"(`{3,20})[^`\n|]{0,100}\n|(~{3,20})(?!~)[^\n|]{0,100}\n")
_CLOSING = re.compile(r" {0,3}([`~]{3,})[ \t\n]*")
_ANEW = re.compile(rf"#{{1,6}} |{_MARKER} (?=\S)|`{{3,12}}(?=[^`\n]{{0,50}}\n)|~{{3,12}}")


class Rewriter:
    """Rewrites the segments of a text. Without `citations`, numbers stay unchanged. `removals` collects what is removed."""

    def __init__(
        self, addresses: Addresses, citations: Citations | None = None, removals: Removals | None = None
    ) -> None:
        self._sanitizer = Sanitizer(addresses, citations, removals)
        self._begin()

    def _begin(self) -> None:
        self._held = ""  # of a line of code, or of the block that waits
        self._said = ""  # what readers got of the open block
        self._fresh = True  # a line begins
        self._blank = True  # the line before is blank, or ends its block, for readers too
        self._fence = ""  # that is open, behind its indent
        self._item = 0  # the indent of the open list item, if it is a plain one
        self._listed = ""  # the model's own list of sources
        self._next_look = 0  # the length of a block that waits at which its end is searched for again

    def feed(self, segment: Segment) -> Iterable[Segment]:
        """What readers get by now. A list of `sources` is counted at the end, if nothing else was cited."""
        if segment.kind == "sources":
            self._listed = segment.text
            return ()
        text = self._read(segment.text) if segment.text else ""
        return (segment._replace(text=text),) if text else ()

    def rest(self) -> Iterable[Segment]:
        """The rest of the text, with a closing fence if one is open."""
        text, self._fresh = "", True
        if self._fence and self._held:
            text = self._fenced("\n")
        if self._fence:
            text += self._fence
        elif self._held:
            text += self._closed(self._sanitizer.safe(self._held, self._said))
        self._sanitizer.count(self._listed)
        self._begin()
        return (Segment(text),) if text else ()

    def _read(self, text: str) -> str:
        """What readers get by now; the text ends where a blank ends, or before one."""
        fresh, self._fresh = self._fresh, text.endswith("\n")
        if self._fence:
            return self._fenced(text)
        if not self._held:
            return self._start(text) if fresh else self._words(text)
        if fresh and self._ends(text):
            return self._ended(text) + self._start(text)
        self._held += text
        return self._neutral() if len(self._held) > LONGEST else ""

    def _closed(self, text: str) -> str:
        """The end of a text, with a closing fence if it leaves one open."""
        fences = FENCE.findall(text)
        if not fences or begins_anew(f"{self._said}{text}\n\n", ""):
            return text
        return f"{text}\n{fences[-1]}"

    # ---- the beginning of a line -----------------------------------------------------------------

    def _start(self, text: str) -> str:
        if not text.strip(" \t\n"):
            self._blank = self._blank or text.endswith("\n")
            return self._take(text)
        indent = len(text) - len(text.lstrip(" "))
        fenced = text[indent : indent + 1] in {"`", "~"} and (not indent or 0 < self._item <= indent < self._item + 4)
        if fence := _OPENING.match(text, indent) if fenced else None:
            if not indent:
                self._said, self._item = "", 0
            self._fence = text[:indent] + (fence[1] or fence[2])
            return self._take(self._code(text))
        if head := _WORDS.match(text):
            return self._words(text, head)
        return self._wait(text)

    def _place(self, indent: int, marker: str) -> None:
        """Notes the block that a line of words with this marker is in."""
        anew = not indent and self._anew(marker)
        if anew:
            self._said = ""
        if anew and marker[:1] not in {"", "#"}:
            self._item = len(marker)
        elif marker or (self._blank and indent < self._item):
            self._item = 0
        self._blank = False

    def _anew(self, marker: str) -> bool:
        """True if a line with this marker begins a new block, or an item that earlier lines don't affect."""
        if self._blank or marker[:1] in {"#", "-", "*", "+"}:
            return bool(marker or self._blank)
        return bool(marker) and (marker[:-1].strip() in {"1.", "1)"} or bool(_ITEM.match(self._said)))

    def _words(self, text: str, head: re.Match[str] | None = None) -> str:
        """A segment of a line of words; the first one has a `head`: its indent, marker and opening signs."""
        written = self._sanitizer.simple(text, head.end() if head else 0, begins=head is not None)
        if written is None:
            return self._wait(text)
        if head:
            self._place(len(head[1]), head[2] or "")
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
        if self._closes(line):
            return self._left()
        if line.strip(" \t\n") and not line.startswith(" " * self._item):
            return self._left() + self._start(line)  # the list item ends here, and its fence too
        return self._take(self._code(line))

    def _left(self) -> str:
        """The end of the fence."""
        closing, self._fence, self._blank = f"{self._fence}\n", "", True
        self._said = self._said + closing if closing[0] == " " else ""
        return closing

    def _closes(self, line: str) -> bool:
        match = _CLOSING.fullmatch(line[self._item :])
        return match is not None and match[1].startswith(self._fence.lstrip())

    def _code(self, text: str) -> str:
        code = self._sanitizer.code(text)
        return f"{code.rstrip()}…\n" if code != text and self._closes(code) else code

    def _wait(self, text: str) -> str:
        self._held, self._next_look = text, 0
        return ""

    def _ends(self, line: str) -> bool:
        """True if the line ends the block that waits; only fences and numbers need the parser for that."""
        before, found = self._said + self._held, _ANEW.match(line)
        blank = not before[:-1].rpartition("\n")[2].strip(" \t")
        begun = found[0] if found else ""
        if not begun and not (blank and line[:1].strip()):
            return False
        if not (begun[:1].isdigit() or FENCE.search(before)):
            return True
        if len(self._held) < self._next_look:
            return False
        self._next_look = 2 * len(before)
        return begins_anew(before, begun)

    def _ended(self, line: str) -> str:
        """The block, which ends before this line."""
        written = self._sanitizer.safe(self._held, self._said)
        found = _ANEW.match(line)
        if found and line[:1].isdigit() and not begins_anew(self._said + written, found[0]):
            written += "\n"  # as a paragraph, the block would include a numbered line
        return self._next(written)

    def _neutral(self) -> str:
        self._fresh = True
        return self._next(f"{self._sanitizer.neutral(self._held)}\n\n")

    def _next(self, written: str) -> str:
        self._held, self._said, self._blank, self._item = "", "", written.endswith("\n\n"), 0
        return written


def safe(text: str, addresses: Addresses) -> str:
    """A whole text of a page, safe for readers."""
    return Line(Rewriter(addresses)).feed(segments(text), ends=True)

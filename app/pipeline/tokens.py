"""A model's Markdown as it streams: text goes on at once, what may be a link, citation or code when that is known.

Every decision rests on the text alone and never on where it was cut into pieces, so any pieces give the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Literal, NamedTuple

from app.pipeline.code_syntax import SPAN, closed_at, line_start, span_end, start_unsure
from app.pipeline.link_syntax import TARGET, WORDS, More, closing, destination_end, more, space_end, target_of
from app.pipeline.links import ADDRESS, address_in

Kind = Literal["text", "code", "bracket", "link", "end", "address", "tag", "definition"]

_SIGN = re.compile(r"[\n`\[\]<\\【:wW]")
_TICKS = re.compile("`+")
_SCHEME = re.compile(r"(?:https?|(?<![^\W_])ftps?)://\Z", re.IGNORECASE)
_WWW = re.compile(r"(?<![^\W_])www\.", re.IGNORECASE)
_NOTABLE = re.compile(r"[\n`\[\]<\\【:]")
_OPENING = frozenset("(!<hH")
_OPENINGS = frozenset({"ht", "tt", "tp", "ps", "ft", "ww", "s:", "p:", ":/", "//", "w."})
_TAIL = re.compile(
    r"(?:[(<]?(?:h|ht|htt|https?:?/?|https?://|(?<![^\W_])(?:f|ft|ftps?:?/?|ftps?://|ww?w?|www\.))|[(!<])\Z",
    re.IGNORECASE,
)
_LONGEST_TAIL = 9
_TAGS = "a|area|audio|base|embed|form|iframe|img|link|object|script|source|svg|track|use|video"
_SCHEMES = "https?|ftps?|mailto|javascript|data|vbscript"
_ANGLED = rf"(?:(?:{_SCHEMES}):|www\.)[^\s<>]{{0,{TARGET}}}|(?:{_TAGS})\s[^<>]{{0,600}}"
_ANGLE = re.compile(rf"<(?:/a\s*|{_ANGLED})>", re.IGNORECASE)
_ANGLE_UNSURE = re.compile(rf"<(?:/(?:a\s*)?|[a-z]{{0,10}}|{_ANGLED})?\Z", re.IGNORECASE)
_ESCAPED = re.compile(r"[!-/:-@\[-`{-~]")
_LENTICULAR = re.compile("[】\n]")
_ADDRESSED = re.compile(r"<?(?:\w[\w+.-]*://|mailto:|www\.|/|\.{1,2}/|#)", re.IGNORECASE)


class Token(NamedTuple):
    """A piece of the text. `words` are what a link or brackets enclose, `target` is where a link or tag leads.

    `joined`: right behind a word, as an index is. `end` closes brackets that were let through, and has a target.
    """

    kind: Kind
    text: str
    words: str = ""
    target: str = ""
    joined: bool = False


def _opens(text: str) -> bool:
    """Whether the end may open an address or a picture; a word like "of" doesn't."""
    last = text[-1:]
    if last in _OPENING or text[-2:].lower() in _OPENINGS:
        return True
    return last in {"f", "F", "w", "W"} and not text[-2:-1].isalnum()


class Tokens:
    """Reads pieces of a text; what is undecided is kept for the next."""

    def __init__(self, *, inline: bool = False) -> None:
        self._held = ""
        self._last = " " if inline else "\n"  # what stands before the held text; a line's prefix is its beginning
        self._fresh = not inline  # at the start of a line
        self._fence = ""
        self._indented = self._list = False
        self._blank = True
        self._ticks = self._left = 0  # backticks that may have opened code, and how long it may still be
        self._joined = self._final = False
        self._readers: dict[str, Callable[[str, int], Token]] = {
            "\n": self._line_end, "\\": self._escape, "`": self._opened, "[": self._brackets, "]": self._end,
            "【": self._lenticular, "<": self._angled,
        }  # fmt: skip

    def plain(self, text: str) -> str | None:
        """What is certain by now, where all of it is plain text; None where it has to be read."""
        if self._fresh or self._ticks:
            return None
        text = self._held + text
        if _NOTABLE.search(text) or "www." in text.lower():
            return None
        self._held = ""
        if _opens(text) and (tail := _TAIL.search(text, max(0, len(text) - _LONGEST_TAIL))):
            text, self._held = text[: tail.start()], tail[0]
        self._last = text[-1:] or self._last
        return text

    def feed(self, text: str) -> list[Token]:
        """What is certain by now."""
        at = len(self._last)  # it tells whether a word goes on
        text = self._last + self._held + text
        tokens: list[Token] = []
        try:
            while at < len(text):
                token = self._next(text, at)
                at += len(token.text)
                if token.text:
                    tokens.append(token)
        except More:
            pass
        self._held = text[at:]
        return tokens

    def rest(self) -> list[Token]:
        """All that is left, at the end."""
        self._final = True
        return self.feed("")

    def _next(self, text: str, at: int) -> Token:
        if self._fresh:
            return self._line(text, at)
        if self._fence or self._indented:
            return self._coded(text, at)
        if self._ticks:
            return self._spanned(text, at)
        start, sign = self._find(text, at)
        return self._special(text, at, sign) if start == at and sign else self._plain(text, at, start)

    def _find(self, text: str, at: int) -> tuple[int, str]:
        """Where the next special thing begins and the sign that tells it, else where text ends that is sure."""
        for found in _SIGN.finditer(text, at):
            start, sign = found.start(), found[0]
            if sign == "]":
                if text[start + 1 : start + 2] not in {"(", ""}:
                    continue
            elif sign in ":wW":
                scheme = _WWW.match(text, start) if sign != ":" else _SCHEME.search(text, max(at, start - 5), start + 3)
                if scheme is None:
                    continue
                start, sign = scheme.start(), scheme[0]
                start -= start > at and text[start - 1] == "("
            elif sign == "[" and start > at and text[start - 1] == "!":
                start -= 1
            return start, sign
        return self._sure(text, at), ""

    def _sure(self, text: str, at: int) -> int:
        """Where what may become an address or picture begins, else the end."""
        if self._final or not _opens(text):
            return len(text)
        tail = _TAIL.search(text, max(at, len(text) - _LONGEST_TAIL))
        return tail.start() if tail else len(text)

    def _plain(self, text: str, at: int, end: int, kind: Kind = "text") -> Token:
        if end == at:
            raise More
        joined = self._last.isalnum()
        self._last = text[end - 1]
        return Token(kind, text[at:end], joined=joined)

    # ---- lines and code ------------------------------------------------------------------------

    def _line(self, text: str, at: int) -> Token:
        """The beginning of a line, up to what it says: fences, indented code, lists."""
        if start_unsure(text, at, fenced=bool(self._fence)):
            more(final=self._final)
        self._fresh = False
        if self._fence:
            end = closed_at(text, at, self._fence)
            if not end:
                return self._coded(text, at)
            self._fence, self._fresh = "", text[end - 1] == "\n"
            return self._plain(text, at, end, "code")
        indent, quote, item, fence, end = line_start(text, at)
        if not (quote or item or fence) and text[end : end + 1] in {"\n", ""}:
            self._blank = True
            return Token("text", indent)
        width = len(indent.expandtabs(4))
        if width >= 4 and not quote and not self._list and (self._blank or self._indented):
            self._indented, self._blank = True, False
            return self._plain(text, at, at + len(indent), "code")
        if item:
            self._list = True
        elif self._blank and not width:
            self._list = False
        self._indented = self._blank = False
        self._fence = fence
        self._last = "\n"
        return Token("code" if fence else "text", text[at:end])

    def _coded(self, text: str, at: int) -> Token:
        """Code up to the end of the line."""
        newline = text.find("\n", at)
        if newline >= 0:
            self._fresh = True
            return self._plain(text, at, newline + 1, "code")
        end = self._sure(text, at)
        addresses = () if self._final else ADDRESS.finditer(text, at)
        open_at = next((found.start() for found in addresses if found.end() == len(text)), end)
        return self._plain(text, at, min(end, open_at), "code")

    def _opened(self, text: str, at: int) -> Token:
        ticks = _TICKS.match(text, at)
        assert ticks is not None
        if ticks.end() == len(text):
            more(final=self._final)
        self._ticks, self._left = len(ticks[0]), SPAN
        return self._plain(text, at, ticks.end())

    def _spanned(self, text: str, at: int) -> Token:
        """What follows backticks: code when as many close it soon, in the same paragraph; else they are mere signs."""
        end = span_end(text, at, self._ticks, self._left, final=self._final)
        if end is None:
            end, _ = self._find(text, at)
            self._left -= end - at
            return self._plain(text, at, end)
        self._ticks = 0
        return self._plain(text, at, end, "code") if end else self._next(text, at)

    # ---- what a line has -------------------------------------------------------------------------

    def _special(self, text: str, at: int, sign: str) -> Token:
        read = self._readers.get(sign)
        return read(text, at) if read else self._address(text, at, sign)

    def _line_end(self, text: str, at: int) -> Token:
        self._fresh = True
        return self._plain(text, at, at + 1)

    def _escape(self, text: str, at: int) -> Token:
        if at + 1 == len(text):
            more(final=self._final)
        return self._plain(text, at, at + (2 if _ESCAPED.match(text, at + 1) else 1))

    def _brackets(self, text: str, at: int) -> Token:
        opening = text.index("[", at)
        close = closing(text, opening, final=self._final)
        if not close:
            return self._plain(text, at, opening + 1)
        joined = self._last.isalnum() or self._last == "_" or (self._last == "]" and self._joined)
        after = text[close + 1 : close + 2]
        if not after:
            more(final=self._final)
        words = text[opening + 1 : close]
        target = target_of(text, close + 1, final=self._final) if after == "(" else None
        if target:
            self._last, self._joined = ")", False
            return Token("link", text[at : target[1]], words, target[0], joined)
        if opening > at:
            return self._plain(text, at, opening)
        if after == ":" and self._last == "\n" and (defined := self._definition(text, at, close + 2)):
            return defined
        self._last, self._joined = "]", joined
        return Token("bracket", text[at : close + 1], words, joined=joined)

    def _definition(self, text: str, at: int, behind: int) -> Token | None:
        """The whole line `[label]: address`."""
        start = space_end(text, behind, final=self._final)
        end = destination_end(text, start, final=self._final)
        if not _ADDRESSED.match(text, start):
            return None
        newline = text.find("\n", end, end + TARGET) + 1
        if not newline and len(text) < end + TARGET:
            more(final=self._final)
        self._fresh, self._last = bool(newline), "\n"
        label = text[at + 1 : behind - 2]
        return Token("definition", text[at : newline or end + TARGET], label, text[start:end].strip("<>"))

    def _lenticular(self, text: str, at: int) -> Token:
        found = _LENTICULAR.search(text, at, at + WORDS)
        if found is None and len(text) < at + WORDS:
            more(final=self._final)
        if found is None or found[0] == "\n":
            return self._plain(text, at, at + 1)
        self._last = "】"
        return Token("bracket", text[at : found.end()], text[at + 1 : found.start()])

    def _end(self, text: str, at: int) -> Token:
        if at + 1 == len(text):
            more(final=self._final)
        target = target_of(text, at + 1, final=self._final) if at + 1 < len(text) else None
        if not target:
            return self._plain(text, at, at + 1)
        self._last = ")"
        return Token("end", text[at : target[1]], target=target[0])

    def _angled(self, text: str, at: int) -> Token:
        if found := _ANGLE.match(text, at):
            self._last = ">"
            return Token("tag", found[0], target=found[0][1:-1])
        if _ANGLE_UNSURE.match(text, at):
            more(final=self._final)
        return self._plain(text, at, at + 1)

    def _address(self, text: str, at: int, scheme: str) -> Token:
        start = at + (text[at] == "(")
        found = ADDRESS.match(text, start)
        if (found.end() if found else start + len(scheme)) == len(text):
            more(final=self._final)
        address = address_in(found[0]) if found else ""
        end = start + len(address)
        if start > at and text[end : end + 1] != ")":
            return self._plain(text, at, start)
        if not address[len(scheme) :]:  # "https://…"
            return self._plain(text, at, start + len(scheme))
        end += start - at
        self._last = text[end - 1]
        return Token("address", text[at:end], target=address)

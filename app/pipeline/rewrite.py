"""A model's text as readers may see it: with our numbers, without addresses and a source list of its own."""

from __future__ import annotations

import re
from collections.abc import Callable

from app.pipeline.citations import Citations
from app.pipeline.links import ADDRESS, Addresses, address_in
from app.pipeline.tokens import Token, Tokens

_ATTRIBUTE = re.compile(
    r"\b(?:href|src|srcset|action|formaction|data|poster|background)\s*=\s*(?:\"([^\"]*)\"|'([^']*)'|([^\s>]*))",
    re.IGNORECASE,
)
_CALL = re.compile(r"[^:/.#?]*")  # the parentheses of `items[i](x)`
_VALUES = re.compile(r"[\[\]\d\s,;.-]+")
_ITEM = re.compile(r"\s*(?:(?:[-*+•]|\d{1,3}[.)])(?:\s|\Z)|[\[【<]|https?://)")
_ITEM_UNSURE = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)]?|ht{0,2}p?s?:?/{0,2})?\Z")
_NAMES_SOURCE = re.compile(r"\[[^\]\n]+\]|://|www\.|【")


class Rewriter:
    """Rewrites a text as it goes by; holds back only what may be the beginning of something to rewrite."""

    def __init__(self, citations: Citations, addresses: Addresses, headings: frozenset[str] = frozenset()) -> None:
        self._citations, self._addresses = citations, addresses
        self._own_list = OwnList(headings)
        self._tokens = Tokens()
        self._writers: dict[str, Callable[[Token], str]] = {
            "code": self._code, "bracket": self._bracket, "link": self._link, "end": self._end, "tag": self._tag,
            "address": self._address, "definition": self._definition,
        }  # fmt: skip
        self._unlinked = 0  # tags that were taken out and not yet closed

    def feed(self, text: str) -> str:
        """The text that is certain by now."""
        if self._own_list.idle and (plain := self._tokens.plain(text)) is not None:
            return plain
        return self._written(self._tokens.feed(self._own_list.feed(text)))

    def rest(self) -> str:
        """What was still held back, at the end; what is fed after it begins anew."""
        rest, listed = self._own_list.rest()
        text = self._written([*self._tokens.feed(rest), *self._tokens.rest()])
        if listed and not self._citations.any:
            self._inline(listed)  # all that it tells of what was used
        self._tokens = Tokens()
        return text

    def _written(self, tokens: list[Token]) -> str:
        return "".join(token.text if token.kind == "text" else self._writers[token.kind](token) for token in tokens)

    def _inline(self, text: str) -> str:
        tokens = Tokens(inline=True)
        return self._written([*tokens.feed(text), *tokens.rest()])

    def _end(self, token: Token) -> str:
        return token.text if _CALL.fullmatch(token.target) or token.target in self._addresses else "]"

    def _address(self, token: Token) -> str:
        return token.text if token.target in self._addresses else ""

    def _definition(self, token: Token) -> str:
        numbered = token.words.strip("^ ").isdigit()  # it would make links of our numbers
        return "" if numbered or token.target not in self._addresses else token.text

    def _code(self, token: Token) -> str:
        text = token.text
        if "://" not in text and "www." not in text.lower():
            return text
        text, at = f"x{text}" if token.joined else f" {text}", 1  # a word that goes on begins no address
        written = []
        while found := ADDRESS.search(text, at):
            address = address_in(found[0])
            written += [text[at : found.start()], address if address in self._addresses else ""]
            at = found.start() + len(address)
        return "".join([*written, text[at:]])

    def _bracket(self, token: Token) -> str:
        words, closing = token.words, token.text[-1]
        if not token.joined:
            if (cited := self._citations.cited(words)) is not None:
                return cited
            if words[:1] + words[-1:] == "[]" and (cited := self._citations.cited(words[1:-1])) is not None:
                return cited
        if _VALUES.fullmatch(words):
            return token.text
        return f"{token.text[0]}{self._inline(words)}{closing}"

    def _link(self, token: Token) -> str:
        if token.joined and _CALL.fullmatch(token.target):
            return token.text
        if (cited := self._citations.cited(token.words)) is not None:
            return cited
        words = self._inline(token.words)
        if token.target not in self._addresses:
            return words
        opening = token.text.index("[") + 1
        return f"{token.text[:opening]}{words}{token.text[opening + len(token.words) :]}"

    def _tag(self, token: Token) -> str:
        name = re.match(r"/?\w+", token.target)
        if token.target[:1] == "/":
            closes, self._unlinked = self._unlinked > 0, max(self._unlinked - 1, 0)
            return "" if closes else token.text
        if name and token.target[name.end() : name.end() + 1].isspace():
            targets = ["".join(found) for found in _ATTRIBUTE.findall(token.target)]
            stays = all(target in self._addresses for target in targets)
            self._unlinked += not stays and name[0].lower() == "a"
        else:
            stays = token.target in self._addresses
        return token.text if stays else ""


class OwnList:
    """Takes out a list of sources that a model wrote at the end, below one of the headings: ours follows."""

    def __init__(self, headings: frozenset[str]) -> None:
        self._headings = headings  # in small letters
        self._held = ""
        self._fresh = True  # nothing has passed yet

    @property
    def idle(self) -> bool:
        """Whether text without a line end can't be of such a list."""
        return not (self._held or self._fresh)

    def feed(self, text: str) -> str:
        """The text that can't be of such a list; line ends wait for what follows them."""
        if self.idle and "\n" not in text:
            return text
        text, self._held = self._held + text, ""
        start = 0 if self._fresh else text.find("\n")
        while start >= 0:
            end = self._undecided(text, start)
            if end == len(text):
                self._held = text[start:]
                return text[:start]
            self._fresh = False
            start = text.find("\n", max(end, start + 1))
        return text

    def _undecided(self, text: str, start: int) -> int:
        """How far the lines from here may be blank, a heading and its list: all of the text, or up to a line that isn't."""
        heading = False
        at = start
        while at < len(text):
            newline = text.find("\n", at)
            line, whole = (text[at:newline], True) if newline >= 0 else (text[at:], False)
            if (
                not line.strip()
                or (heading and (_ITEM.match(line) or (not whole and _ITEM_UNSURE.match(line))))
                or (heading and line[:2] in {"  ", "\t"})
            ):
                pass
            elif not heading and self._heads(line, whole=whole):
                heading = whole
            else:
                return at - 1 if at > start else start
            at = newline + 1 if whole else len(text)
        return len(text)

    def _heads(self, line: str, *, whole: bool) -> bool:
        name = line.lstrip(" \t#*_").casefold()
        if whole:
            return name.rstrip(" \t\r*_:#") in self._headings
        return any(heading.startswith(name) or name.rstrip(" \t*_:#") == heading for heading in self._headings)

    def rest(self) -> tuple[str, str]:
        """What was still held back, at the end: text, and the list that was taken out."""
        held, self._held, self._fresh = self._held, "", True
        lines = held.strip().splitlines()
        if len(lines) > 1 and self._heads(lines[0], whole=True) and _NAMES_SOURCE.search(held):
            return "", held
        return held, ""

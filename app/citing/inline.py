"""Decides on a sign within a line as soon as the text behind it has come, without waiting for the block to end."""

from __future__ import annotations

from typing import NamedTuple

from app.citing.judge import SCHEME, TAG, Judge, harmless, is_joined
from app.citing.removals import Removals
from app.citing.signs import MORE, RUN, RUN_UNSURE


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
            self._removals.citations(part for part, one in zip(parts, cited, strict=True) if one is not None)
        return "".join(part if one is None else one for part, one in zip(parts, cited, strict=True))

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

"""Removes characters that nobody sees, from pages, questions and answers: they hide instructions from readers, and words from searches.

They are those with the Unicode property Default_Ignorable_Code_Point, and annotations. Some stay where writing needs them, as in UAX #31.
"""

from __future__ import annotations

import re
import unicodedata

_CLASS = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
_RUN = re.compile(rf"[{_CLASS}]+")
_LONGEST_KEPT = 4  # characters of a run; a longer one has no use in any writing
_NON_JOINER, _JOINER, _SPACE = "\u200c", "\u200d", "\u200b"
_AS_TEXT, _AS_PICTURE, _KEYCAP = "\ufe0e", "\ufe0f", "\u20e3"
_VIRAMA = 9  # canonical combining class
_WITHOUT_SPACES = re.compile(r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u1950-\u19df\u1a20-\u1aaf]")  # Thai to Lanna
_IDEOGRAPH = re.compile(r"[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")
_MONGOLIAN = re.compile(r"[\u1800-\u18af]")
_SYMBOL = re.compile(r"[©®‼⁉〰〽\U0001f3fb-\U0001f3ff]")  # with a picture, but of another category than other symbols


def visible(text: str) -> str:
    """The text without the characters that nobody sees. The rest is as it was."""
    return text if text.isascii() else _RUN.sub(_kept, text)


def _kept(run: re.Match[str]) -> str:
    """What stays of a run: signs that change the letters or symbols around them."""
    if len(run[0]) > _LONGEST_KEPT:
        return ""
    text = run.string
    before, behind = text[run.start() - 1 : run.start()] if run.start() else "", text[run.end() : run.end() + 1]
    kept = ""
    for sign in run[0]:
        if _is_used(sign, (before + kept)[-1:], behind):
            kept += sign
    return kept


def _is_used(sign: str, before: str, behind: str) -> bool:
    if not before:
        return False
    if sign in (_NON_JOINER, _JOINER):
        joins_letters = behind.isalpha() and (_is_arabic(before) or unicodedata.combining(before) == _VIRAMA)
        before_virama = before.isalpha() and bool(behind) and unicodedata.combining(behind) == _VIRAMA
        pictures = (
            sign == _JOINER and bool(behind) and _is_symbol(behind) and (_is_symbol(before) or before == _AS_PICTURE)
        )
        return joins_letters or before_virama or pictures
    if sign in (_AS_TEXT, _AS_PICTURE):
        return _is_symbol(before) or (before in "0123456789#*" and behind == _KEYCAP)
    if sign == _SPACE:
        return bool(behind and _WITHOUT_SPACES.match(before) and _WITHOUT_SPACES.match(behind))
    if unicodedata.name(sign, "").startswith("VARIATION SELECTOR"):
        return bool(_IDEOGRAPH.match(before)) or unicodedata.category(before) == "Sm"
    return "\u180b" <= sign <= "\u180f" and bool(_MONGOLIAN.match(before))


def _is_arabic(sign: str) -> bool:
    """True for letters that join, and the vowel signs above them, which Arabic and Syriac share with no other script."""
    return unicodedata.bidirectional(sign) == "AL" or "\u064b" <= sign <= "\u065f"


def _is_symbol(sign: str) -> bool:
    return unicodedata.category(sign) in ("So", "Sm") or bool(_SYMBOL.match(sign))


class Visible:
    """The same for a text that comes piece by piece: the result is that of the whole text."""

    def __init__(self) -> None:
        self._last = self._held = ""  # the last sign that was released, and the run behind it

    def feed(self, text: str) -> str:
        """The text that is decided by now; a run at the end waits for what follows it."""
        if text.isascii() and not self._held:
            self._last = text[-1:] or self._last
            return text
        whole = self._held + text
        end = len(whole)
        while end and _RUN.match(whole, end - 1):
            end -= 1
        self._held = whole[end : end + _LONGEST_KEPT + 1]
        seen = visible(self._last + whole[:end])[len(self._last) :]
        self._last = whole[end - 1 : end] or self._last
        return seen

    def rest(self) -> str:
        """The rest of the text at its end."""
        held, self._held = self._held, ""
        return visible(self._last + held)[len(self._last) :]

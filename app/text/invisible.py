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
_WITHOUT_SPACES = ("THAI", "LAO", "MYANMAR", "KHMER", "TAI LE", "NEW TAI LUE", "TAI THAM")  # scripts
_SYMBOLS = "©®‼⁉〰〽🏻🏼🏽🏾🏿"  # with a picture, but of another category than other symbols


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
        return bool(behind) and all(_name(one).startswith(_WITHOUT_SPACES) for one in (before, behind))
    if _name(sign).startswith("VARIATION SELECTOR"):
        return _name(before).startswith("CJK") or unicodedata.category(before) == "Sm"
    return "\u180b" <= sign <= "\u180f" and _name(before).startswith("MONGOLIAN")


def _name(sign: str) -> str:
    """The name of a sign, which begins with its script."""
    return unicodedata.name(sign, "")


def _is_arabic(sign: str) -> bool:
    """True for letters that join, and the vowel signs above them, which Arabic and Syriac share with no other script."""
    return unicodedata.bidirectional(sign) == "AL" or "\u064b" <= sign <= "\u065f"


def _is_symbol(sign: str) -> bool:
    return unicodedata.category(sign) in ("So", "Sm") or sign in _SYMBOLS


class Visible:
    """The same for a text that comes piece by piece: the result is that of the whole text."""

    def __init__(self) -> None:
        self._tail = (
            "\n"  # the last sign that was released, and the run behind it; at first a sign that changes nothing
        )

    def feed(self, text: str) -> str:
        """The text that is decided by now; a run at the end waits for what follows it."""
        whole = self._tail + text
        if whole.isascii():
            self._tail = whole[-1]
            return text
        end = len(whole)
        while _RUN.match(whole, end - 1):
            end -= 1
        self._tail = whole[end - 1 : end + _LONGEST_KEPT + 1]
        return visible(whole[:end])[1:]

    def rest(self) -> str:
        """The rest of the text at its end."""
        return visible(self._tail)[1:]

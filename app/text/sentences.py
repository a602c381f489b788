"""Splits text into sentences; abbreviations of all languages don't end one."""

from __future__ import annotations

import re
from collections.abc import Collection

from app.core.language import vocabulary

# a stop, closing marks, space, then the start of a sentence: a word, a bullet or a link
_END = re.compile(r"""[.!?…]["'”’“»)\]*_`]{0,3}\s+(?=["'“„«(\[*_`]{0,3}(?P<first>\w)|[-*+]\s|!?\[)""")
_STOP = re.compile(r"(?<=[.!?])\s+")
_LAST_WORD = re.compile(r"(?<![\w.])([\w.]+)\.$")


def sentences(text: str, abbreviations: Collection[str] | None = None) -> list[str]:
    """The text in sentences, in order, each with the white space after it: they join back to the text.

    The abbreviations are in lower case, without their last stop; the default is those of the shipped languages.
    """
    abbreviations = vocabulary().abbreviations if abbreviations is None else abbreviations
    found, start = list[str](), 0
    for match in _END.finditer(text):
        if _is_end(text[max(start, match.start() - 40) : match.start() + 1], match["first"] or "", abbreviations):
            found.append(text[start : match.end()])
            start = match.end()
    return [*found, text[start:]] if start < len(text) else found


def quotable_sentences(text: str, abbreviations: Collection[str] | None = None) -> list[str]:
    """The sentences of a paragraph without the white space between them; none ends within a code span."""
    found: list[list[str]] = []
    in_code = False
    for sentence in sentences(text, abbreviations):
        if in_code:
            found[-1].append(sentence.rstrip())
        else:
            found.append([sentence.rstrip()])
        in_code ^= sentence.count("`") % 2 == 1
    return [" ".join(pieces) for pieces in found]


def informal_sentences(text: str, abbreviations: Collection[str]) -> list[str]:
    """The sentences without the white space between them; they can begin with lower case, as people type."""
    found, start = list[str](), 0
    for gap in _STOP.finditer(text):
        if _last_word(text[max(start, gap.start() - 40) : gap.start()]) not in abbreviations:
            found.append(text[start : gap.start()])
            start = gap.end()
    return [*found, text[start:]]


def _is_end(before: str, following: str, abbreviations: Collection[str]) -> bool:
    if following.islower():
        return False
    last = _last_word(before)
    if not last:
        return True
    if last.isdigit():  # "3. listopadu", "1. First": an ordinal or a list item, unless a sentence surely begins
        return following.isupper() and len(last) > 2
    return last not in abbreviations and not (len(last) == 1 and last.isalpha())


def _last_word(text: str) -> str:
    """The word before the stop at the end of the text, in lower case; empty if there is no such stop."""
    word = _LAST_WORD.search(text)
    return word[1].rpartition("\n")[2].lower().strip(".") if word else ""

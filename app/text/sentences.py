"""Where sentences of English and Czech end."""

from __future__ import annotations

import re

# a stop, closing marks, space, then what a sentence begins with: a word, a bullet or a link
_END = re.compile(r"""[.!?…]["'”’“»)\]*_`]{0,3}\s+(?=["'“„«(\[*_`]{0,3}(?P<first>\w)|[-*+]\s|!?\[)""")
_ENGLISH = "e.g i.e etc vs cf resp approx no nr fig sec ch vol eq dr mr mrs ms prof st inc ltd max min tel"
_CZECH = (
    "např tzn tzv tj apod aj atd mj č čl odst obr str tab kap sv ing mgr bc doc phd csc roč zn pozn srov příp popř cca"
)
_ABBREVIATIONS = frozenset(f"{_ENGLISH} {_CZECH}".split())
_LAST_WORD = re.compile(r"(?<![\w.])([\w.]+)\.$")


def sentences(text: str) -> list[str]:
    """The text in sentences, in order, each with the white space after it: they join back to the text."""
    found, start = list[str](), 0
    for match in _END.finditer(text):
        if _is_end(text[max(start, match.start() - 40) : match.start() + 1], match["first"] or ""):
            found.append(text[start : match.end()])
            start = match.end()
    return [*found, text[start:]] if start < len(text) else found


def _is_end(before: str, following: str) -> bool:
    if following.islower():
        return False
    word = _LAST_WORD.search(before)
    if word is None:
        return True
    last = word[1].rpartition("\n")[2].lower().strip(".")
    if last.isdigit():  # "3. listopadu", "1. First": an ordinal number or a list item, unless a new sentence is sure
        return following.isupper() and len(last) > 2
    return last not in _ABBREVIATIONS and not (len(last) == 1 and last.isalpha())

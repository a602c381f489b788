"""Whether an answer is in the language it was asked for in: on its prose alone, and only where that is sure.

Documentation in any language is full of English words, so what is code, quoted, a link or a name says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from app.core.analysis import fold
from app.core.prompts import Language
from app.core.turn import LanguageCheck

Verdict = Literal["right", "wrong", "unsure"]

SURE = 3  # function words of one language, none of another: more text won't change that
MAJORITY = 2  # times the words of another language, where there are words of both
PROSE = 0.2  # least share of function words: prose has 20 to 50 %, in a language that shares some under 15 %
FEWEST_OWN = 2
FEWEST_WORDS = 6  # fewer without a function word may be names
CERTAIN = 0.9  # probability by letter statistics
LONGEST_WORD = 4  # letters, in scripts that put no blanks between words
SWITCHED = 0.2  # share of the prose
SEED = 0
MODELS_WRITE = ("cs", "de", "en", "es", "fr", "hu", "it", "nl", "pl", "pt", "ru", "sk", "uk", "zh-cn")

_SILENT = re.compile(
    r"(?P<fence>`{3,}|~{3,}).*?(?:(?P=fence)|\Z)|`[^`\n]*(?:`|\Z)|https?://\S+|\]\([^)\s]*\)?|\[[\d\s,;]*\]?"
    r"|„[^“”\n]*[“”]?|“[^”\n]*”?|\"[^\"\n]*\"?|«[^»\n]*»?|[!-~]*[/@\\=<>{}_][!-~]*|\w+\.\w[!-~]*|[!-~]*\d[!-~]*",
    re.DOTALL,
)
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")


@dataclass(frozen=True, slots=True)
class _Count:
    words: int
    own: int
    foreign: int

    @property
    def is_foreign(self) -> bool:
        return self.foreign >= SURE and self.foreign > MAJORITY * self.own


class AnswerLanguage:
    """Tells texts of one language from all others, those that aren't configured included."""

    def __init__(self, code: str, languages: Mapping[str, Language]) -> None:
        own = languages[code].words
        others = frozenset[str]().union(*(known.words for other, known in languages.items() if other != code))
        # a word that two languages share tells nothing
        self._own, self._foreign = own - others, others - own
        self._letters = languages[code].letters
        self._code = code

    def early(self, text: str) -> Verdict:
        """The verdict on the beginning of an answer, once more text wouldn't change it."""
        count = self._count(_SILENT.sub(" ", text))
        if count.own >= SURE and not count.foreign:
            return "right"
        return "wrong" if count.foreign > SURE and not count.own else "unsure"

    def beginning(self, text: str) -> Verdict:
        """The verdict on as much of an answer as one may wait for."""
        prose = _SILENT.sub(" ", text)
        count = self._count(prose)
        if count.is_foreign:
            return "wrong"
        if not count.foreign and count.own >= max(FEWEST_OWN, PROSE * count.words):
            return "right"
        return "wrong" if count.words >= FEWEST_WORDS and _statistical(prose) not in {"", self._code} else "unsure"

    def switched(self, text: str) -> bool:
        """Whether a considerable part of a whole answer's prose, by paragraphs, is in another language."""
        counts = [self._count(paragraph) for paragraph in re.split(r"\n\s*\n", _SILENT.sub(" ", text))]
        foreign = sum(count.words for count in counts if count.is_foreign)
        return foreign > 0 and foreign >= SWITCHED * sum(count.words for count in counts)

    def outcome(self, text: str) -> LanguageCheck:
        """What became of a whole answer that was asked for again."""
        return "wrong" if self.beginning(text) == "wrong" or self.switched(text) else "corrected"

    def _count(self, prose: str) -> _Count:
        words = _WORD.findall(prose)
        own = foreign = 0
        for word in words:
            folded = fold(word)
            if folded in self._own:
                own += 1
            elif folded in self._foreign:
                foreign += 1
            elif strange := sum(not (letter.isascii() or letter in self._letters) for letter in word.lower()):
                foreign += 1 + strange // LONGEST_WORD
        return _Count(len(words), own, foreign)


def _statistical(text: str) -> str:
    """The language by letter statistics; empty where they aren't certain."""
    from langdetect.lang_detect_exception import LangDetectException

    detector = _factory().create()
    try:
        detector.append(text)
        best = detector.get_probabilities()[0]
    except (LangDetectException, IndexError):  # nothing in the text that any profile knows
        return ""
    return str(best.lang) if best.prob >= CERTAIN else ""


@cache
def _factory() -> Any:
    from langdetect import PROFILES_DIRECTORY, DetectorFactory

    factory = DetectorFactory()
    factory.seed = SEED
    factory.load_json_profile([Path(PROFILES_DIRECTORY, code).read_text(encoding="utf-8") for code in MODELS_WRITE])
    return factory
